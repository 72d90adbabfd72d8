"""The routes of bounded buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fanin import names
from fanin.app.api import Buffers, Fanin
from fanin.domain import limits
from fanin.domain.access import AccessGroup
from fanin.domain.buffer import Work
from fanin.entry.http.calls import Call
from fanin.entry.http.results import of_buffer
from fanin.entry.http.route import HttpRequest, HttpRoute, LoggedAction, Repeat
from fanin.entry.http.v1.parameters import KEY, paged
from fanin.errors import BufferNotFound, ChannelRefused, IdempotencyKeyReused, LimitReached
from fanin.wire import buffers as wire
from fanin.wire.json_types import TEXT

_ROOT: Final = f"{names.API_ROOT}/buffers"
_ONE: Final = _ROOT + "/{name}"
_NAME: Final = {"name": TEXT.with_keywords(pattern=f"^{limits.BUFFER_NAME}$")}


def _take(fanin: Fanin, request: HttpRequest) -> Sequence[Work]:
    body, name = dict(request.body), request.path["name"]
    if "waiter" in body:
        body.pop("wait", None)
        return fanin.buffers.poll(name, **body)
    body.pop("waits", None)
    return fanin.buffers.take(name, **body)


# fmt: off
ROUTES: Final = (
    HttpRoute(
        "PUT", _ONE, "defineBuffer", "Make a bounded buffer, or change its limit",
        Call(Buffers.define, "limit", "queue"),
        wire.BUFFER, body=wire.DEFINE_BUFFER, named=_NAME, errors=(ChannelRefused,),
        action=LoggedAction(of_buffer),
        group=AccessGroup.ADMINISTER,
    ),
    HttpRoute(
        "GET", _ONE, "getBuffer", "A buffer and how full it is",
        Call(Buffers.status), wire.LEVEL, named=_NAME,
        errors=(BufferNotFound, ChannelRefused),
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "DELETE", _ONE, "deleteBuffer", "Drop a buffer with the work in it",
        Call(Buffers.delete), None, 204, named=_NAME,
        action=LoggedAction(),
        group=AccessGroup.ADMINISTER,
    ),
    HttpRoute(
        "GET", _ROOT, "listBuffers", "List the buffers", Call(Buffers.list), wire.BUFFERS, optional=paged(),
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "POST", f"{_ONE}/put", "putWork", "Put work in, if there is room for all of it",
        Call(Buffers.put, "payloads"), wire.ACCEPTED, 201, body=wire.PUT_WORK, headers=KEY, named=_NAME,
        errors=(BufferNotFound, ChannelRefused, LimitReached, IdempotencyKeyReused),
        data_path=True,
        group=AccessGroup.PRODUCE,
        location=lambda request, _: f"{_ROOT}/{request.path['name']}",
        repeat=Repeat.KEYED,
    ),
    HttpRoute(
        "POST", f"{_ONE}/take", "takeWork", "Take work out, waiting for it if there is none",
        _take, wire.TAKEN, body=wire.TAKE_WORK, named=_NAME, errors=(BufferNotFound, ChannelRefused),
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
    HttpRoute(
        "POST", f"{_ONE}/done", "doneWork", "Give back the slots of work that is done",
        Call(Buffers.done, "tokens", "failures"),
        wire.RELEASED, body=wire.DONE_WORK, named=_NAME, errors=(BufferNotFound, ChannelRefused),
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
)
# fmt: on
