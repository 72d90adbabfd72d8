"""The route of the bit picture; a process imports it with the first such request."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Fanin
from fanin.domain.access import AccessGroup
from fanin.domain.picture import Picture
from fanin.entry.http.route import Request, Route
from fanin.entry.http.v1.parameters import GONE
from fanin.wire.json_types import NATURAL
from fanin.wire.picture import PICTURE


def _picture(fanin: Fanin, request: Request) -> Picture:
    return fanin.ledger.picture(request.batch_id, **request.query)


# fmt: off
ROUTES: Final = (
    Route(
        "GET", f"{names.API_ROOT}/batches/{{batch_id}}/picture", "getPicture",
        "A node of the summary tree, and the parts below it", _picture, PICTURE,
        optional={
            "level": NATURAL.with_keywords(description="of the node; 0 shows items; by default the root"),
            "number": NATURAL.with_keywords(default=0, description="of the node on its level"),
        },
        errors=GONE,
        group=AccessGroup.READ,
    ),
)
# fmt: on
