"""The route of the bit picture; a process imports it with the first such request."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Ledger
from fanin.domain.access import AccessGroup
from fanin.entry.http.calls import Call
from fanin.entry.http.route import HttpRoute
from fanin.errors import GONE
from fanin.wire.json_types import NATURAL
from fanin.wire.picture import PICTURE

# fmt: off
ROUTES: Final = (
    HttpRoute(
        "GET", f"{names.API_ROOT}/batches/{{batch_id}}/picture", "getPicture",
        "A node of the summary tree, and the parts below it", Call(Ledger.picture), PICTURE,
        optional={
            "level": NATURAL.with_keywords(description="of the node; 0 shows items; by default the root"),
            "number": NATURAL.with_keywords(default=0, description="of the node on its level"),
        },
        errors=GONE,
        group=AccessGroup.READ,
    ),
)
# fmt: on
