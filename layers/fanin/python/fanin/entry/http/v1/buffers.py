"""The routes of bounded buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fanin import names
from fanin.app.api import Fanin
from fanin.domain import limits
from fanin.domain.access import AccessGroup
from fanin.domain.buffer import Accepted, Buffer, BufferPage, Level, Released, Work
from fanin.entry.http.results import of_buffer
from fanin.entry.http.route import LoggedAction, Request, Route
from fanin.entry.http.v1.parameters import KEY, page_of, paged
from fanin.entry.observe import count, gauge, logger
from fanin.errors import BufferNotFound, ChannelRefused, IdempotencyKeyReused, LimitReached
from fanin.wire import buffers as wire
from fanin.wire.json_types import TEXT

_ROOT: Final = f"{names.API_ROOT}/buffers"
_ONE: Final = _ROOT + "/{name}"
_NAME: Final = {"name": TEXT.with_keywords(pattern=f"^{limits.BUFFER_NAME}$")}


def _define(fanin: Fanin, request: Request) -> Buffer:
    return fanin.buffers.define(request.path["name"], **request.body)


def _status(fanin: Fanin, request: Request) -> Level:
    level = fanin.buffers.status(request.path["name"])
    gauge(names.METRIC_BUFFER_DEPTH, level.pending)
    return level


def _delete(fanin: Fanin, request: Request) -> None:
    fanin.buffers.delete(request.path["name"])


def _list(fanin: Fanin, request: Request) -> BufferPage:
    page = fanin.buffers.list(**page_of(request))
    count(names.METRIC_BUFFERS_UNREADABLE, len(page.unreadable))
    for name in page.unreadable:
        logger.error("buffer not listed: its record cannot be read", extra={"buffer": name})
    return page


def _put(fanin: Fanin, request: Request) -> Accepted:
    try:
        return fanin.buffers.put(request.path["name"], request.read(), key=request.key, caller=request.caller)
    except LimitReached:
        count(names.METRIC_BUFFER_REJECTS)
        raise


def _take(fanin: Fanin, request: Request) -> Sequence[Work]:
    body, name = dict(request.body), request.path["name"]
    if "waiter" in body:
        body.pop("wait", None)
        work = fanin.buffers.poll(name, **body)
    else:
        body.pop("waits", None)
        work = fanin.buffers.take(name, **body)
    for one in work:
        gauge(names.METRIC_BUFFER_WAIT, one.waited_ms)
    return work


def _done(fanin: Fanin, request: Request) -> Released:
    failures = wire.failures_of(request.body)
    return fanin.buffers.done(request.path["name"], request.body["receipts"], failures=failures)


# fmt: off
ROUTES: Final = (
    Route(
        "PUT", _ONE, "defineBuffer", "Make a bounded buffer, or change its limit",
        _define, wire.BUFFER, body=wire.DEFINE_BUFFER, named=_NAME, errors=(ChannelRefused,),
        action=LoggedAction(of_buffer),
        group=AccessGroup.ADMINISTER,
    ),
    Route(
        "GET", _ONE, "getBuffer", "A buffer and how full it is", _status, wire.LEVEL, named=_NAME,
        errors=(BufferNotFound, ChannelRefused),
        group=AccessGroup.READ,
    ),
    Route(
        "DELETE", _ONE, "deleteBuffer", "Drop a buffer with the work in it", _delete, None, 204, named=_NAME,
        action=LoggedAction(),
        group=AccessGroup.ADMINISTER,
    ),
    Route(
        "GET", _ROOT, "listBuffers", "List the buffers", _list, wire.BUFFERS, optional=paged(),
        group=AccessGroup.READ,
    ),
    Route(
        "POST", f"{_ONE}/put", "putWork", "Put work in, if there is room for all of it",
        _put, wire.ACCEPTED, 201, body=wire.PUT_WORK, headers=KEY, named=_NAME,
        errors=(BufferNotFound, ChannelRefused, LimitReached, IdempotencyKeyReused),
        data_path=True,
        group=AccessGroup.PRODUCE,
        location=lambda request, _: f"{_ROOT}/{request.path['name']}",
    ),
    Route(
        "POST", f"{_ONE}/take", "takeWork", "Take work out, waiting for it if there is none",
        _take, wire.TAKEN, body=wire.TAKE_WORK, named=_NAME, errors=(BufferNotFound, ChannelRefused),
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
    Route(
        "POST", f"{_ONE}/done", "doneWork", "Give back the slots of work that is done",
        _done, wire.RELEASED, body=wire.DONE_WORK, named=_NAME, errors=(BufferNotFound, ChannelRefused),
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
)
# fmt: on
