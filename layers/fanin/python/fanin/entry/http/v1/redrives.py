"""The routes of redrives: send failed items again, and see how far that is."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Redrives
from fanin.domain.access import AccessGroup
from fanin.entry.http.calls import Call
from fanin.entry.http.results import of_redrive
from fanin.entry.http.route import HttpRequest, HttpRoute, LoggedAction
from fanin.entry.http.v1.parameters import paged
from fanin.errors import GONE, ChannelRefused
from fanin.wire import redrives as wire

_BATCH: Final = f"{names.API_ROOT}/batches/{{batch_id}}"


def _only_counts(request: HttpRequest) -> bool:
    return bool(request.body.get("dry_run"))


# fmt: off
ROUTES: Final = (
    HttpRoute(
        "POST", f"{_BATCH}/redrive", "redriveBatch", "Send failed items again, each failure once",
        Call(Redrives.redrive, "request"), wire.REDRIVING, body=wire.REDRIVE, errors=(*GONE, ChannelRefused),
        action=LoggedAction(of_redrive, unless=_only_counts),
        group=AccessGroup.OPERATE,
    ),
    HttpRoute(
        "GET", f"{_BATCH}/redrives", "listRedrives", "Redrives of a batch's failures, and their counts",
        Call(Redrives.redrives), wire.REDRIVINGS, optional=paged(), errors=GONE,
        group=AccessGroup.READ, also=(AccessGroup.OPERATE,),
    ),
)
# fmt: on
