"""The routes of bounded buffers."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.services import Services
from fanin.domain import limits
from fanin.entry.http.route import Request, Route
from fanin.entry.http.schemas import text, whole
from fanin.entry.observe import count, gauge
from fanin.errors import BufferNotFound, ChannelRefused, IdempotencyKeyReused, LimitReached
from fanin.wire import buffers as wire
from fanin.wire.ledger import Json

_ROOT: Final = f"{names.API_ROOT}/buffers"
_ONE: Final = _ROOT + "/{name}"
_KEY: Final = text(limits.MAX_IDEMPOTENCY_KEY, least=1) | {
    "description": "a repeat with the same key returns the same items"
}


def _define(services: Services, request: Request) -> Json:
    body = request.body
    buffer = services.buffers.define(request.path["name"], body["limit"], queue=body.get("queue"))
    return wire.encode_buffer(buffer)


def _status(services: Services, request: Request) -> Json:
    level = services.buffers.status(request.path["name"])
    gauge(names.METRIC_BUFFER_DEPTH, level.pending)
    return wire.encode_level(level)


def _delete(services: Services, request: Request) -> None:
    services.buffers.delete(request.path["name"])


def _list(services: Services, request: Request) -> Json:
    query = request.query
    page = services.buffers.list(cursor=query.get("cursor"), limit=query.get("limit", 100))
    return wire.encode_buffers(page)


def _put(services: Services, request: Request) -> Json:
    key = request.headers.get(names.IDEMPOTENCY_HEADER)
    try:
        accepted = services.buffers.put(request.path["name"], request.body["payloads"], key=key)
    except LimitReached:
        count(names.METRIC_BUFFER_REJECTS)
        raise
    return wire.encode_accepted(accepted)


def _take(services: Services, request: Request) -> Json:
    body = request.body
    work = services.buffers.take(
        request.path["name"],
        most=body.get("most", 1),
        wait=body.get("wait", limits.MAX_WAIT),
        visibility_timeout=body.get("visibility_timeout"),
    )
    for one in work:
        gauge(names.METRIC_BUFFER_WAIT, one.waited_ms)
    return wire.encode_work(work)


def _done(services: Services, request: Request) -> Json:
    return wire.encode_released(services.buffers.done(request.path["name"], request.body["receipts"]))


# fmt: off
ROUTES: Final = (
    Route(
        "PUT", _ONE, "defineBuffer", "Make a bounded buffer, or change its limit",
        _define, "Buffer", body="DefineBuffer", errors=(ChannelRefused,),
    ),
    Route(
        "GET", _ONE, "getBuffer", "A buffer and how full it is", _status, "Level",
        errors=(BufferNotFound, ChannelRefused),
    ),
    Route("DELETE", _ONE, "deleteBuffer", "Drop a buffer with the work in it", _delete, None, 204),
    Route(
        "GET", _ROOT, "listBuffers", "List the buffers", _list, "Buffers",
        optional={"cursor": text(least=1), "limit": whole(1, limits.MAX_PAGE) | {"default": 100}},
    ),
    Route(
        "POST", f"{_ONE}/put", "putWork", "Put work in, if there is room for all of it",
        _put, "Accepted", 201, body="Put", headers={names.IDEMPOTENCY_HEADER: _KEY},
        errors=(BufferNotFound, ChannelRefused, LimitReached, IdempotencyKeyReused),
    ),
    Route(
        "POST", f"{_ONE}/take", "takeWork", "Take work out, waiting for it if there is none",
        _take, "Taken", body="Take", errors=(BufferNotFound, ChannelRefused),
    ),
    Route(
        "POST", f"{_ONE}/done", "doneWork", "Give back the slots of work that is done",
        _done, "Released", body="Done", errors=(BufferNotFound, ChannelRefused),
    ),
)
# fmt: on
