"""The routes of redrives: send failed items again, and see how far that is."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Fanin
from fanin.domain.access import AccessGroup
from fanin.domain.redrives import Redriving, Redrivings
from fanin.entry.http.results import of_redrive
from fanin.entry.http.route import LoggedAction, Request, Route
from fanin.entry.http.v1.parameters import GONE, page_of, paged
from fanin.errors import ChannelRefused
from fanin.wire import redrives as wire

_BATCH: Final = f"{names.API_ROOT}/batches/{{batch_id}}"


def _redrive(fanin: Fanin, request: Request) -> Redriving:
    return fanin.redrives.redrive(request.batch_id, request.read())


def _only_counts(request: Request) -> bool:
    return bool(request.body.get("dry_run"))


def _list(fanin: Fanin, request: Request) -> Redrivings:
    return fanin.redrives.redrives(request.batch_id, **page_of(request))


# fmt: off
ROUTES: Final = (
    Route(
        "POST", f"{_BATCH}/redrive", "redriveBatch", "Send failed items again, each failure once",
        _redrive, wire.REDRIVING, body=wire.REDRIVE, errors=(*GONE, ChannelRefused),
        action=LoggedAction(of_redrive, unless=_only_counts),
        group=AccessGroup.OPERATE,
    ),
    Route(
        "GET", f"{_BATCH}/redrives", "listRedrives", "Redrives of a batch's failures, and their counts",
        _list, wire.REDRIVINGS, optional=paged(), errors=GONE,
        group=AccessGroup.READ, also=(AccessGroup.OPERATE,),
    ),
)
# fmt: on
