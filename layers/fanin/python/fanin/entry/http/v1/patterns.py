"""The routes of the patterns: scatter-gather, frames, bounded buffers, the directory and its routing."""

from collections.abc import Sequence
from typing import Final

from fanin import errors, names
from fanin.app.api import Buffers, Directory, Fanin, Frames, Routing, Scatters
from fanin.domain import limits
from fanin.domain.access import AccessGroup
from fanin.domain.buffer import Work
from fanin.entry.http.calls import Call
from fanin.entry.http.results import of_buffer, of_deletion
from fanin.entry.http.route import (
    HttpRequest,
    HttpRoute,
    LoggedAction,
    Repeat,
    consumes,
    paged,
    produces,
    reads,
)
from fanin.wire import patterns as wire
from fanin.wire.json_types import TEXT

_SCATTERS: Final = f"{names.API_ROOT}/scatters"
_SCATTER: Final = _SCATTERS + "/{batch_id}"
_REPLIES: Final = paged(limits.MAX_REPLIES, limits.MAX_REPLIES)
_FRAMES: Final = f"{names.API_ROOT}/frames"
_BUFFERS: Final = f"{names.API_ROOT}/buffers"
_BUFFER: Final = _BUFFERS + "/{name}"
_BUFFER_NAME: Final = {"name": TEXT.with_keywords(pattern=f"^{limits.BUFFER_NAME}$")}
_OF_BUFFER: Final = (errors.BufferNotFound, errors.ChannelRefused)
_NOT_STARTED: Final = (errors.ChannelRefused, errors.IdempotencyKeyReused)
_TOPIC: Final = f"{names.API_ROOT}/directory/{{topic}}"
_TOPIC_NAME: Final = {"topic": wire.NAME}
_REGISTRATION: Final = _TOPIC + "/{name}"
_REGISTRATION_NAMES: Final = {**_TOPIC_NAME, "name": wire.NAME}
_ROUTES: Final = f"{names.API_ROOT}/routes"
_ROUTE: Final = _ROUTES + "/{name}"
_ROUTE_NAME: Final = {"name": wire.NAME.with_keywords(maxLength=limits.MAX_ROUTE)}


def _take(fanin: Fanin, request: HttpRequest) -> Sequence[Work]:
    """Take work out, and wait for it if there is none; work that is not reported as done comes again."""
    body, name = dict(request.body), request.path["name"]
    if "waiter" in body:
        body.pop("wait", None)
        return fanin.buffers.poll(name, **body)
    body.pop("waits", None)
    return fanin.buffers.take(name, **body)


# fmt: off
ROUTES: Final = (
    HttpRoute(
        "PUT", _BUFFER, "defineBuffer", Call(Buffers.define, "limit", "queue"), wire.BUFFER,
        body=wire.DEFINE_BUFFER, named=_BUFFER_NAME, errors=(errors.ChannelRefused,),
        action=LoggedAction(of_buffer),
    ),
    reads(_BUFFER, "getBuffer", Call(Buffers.status), wire.LEVEL, named=_BUFFER_NAME, errors=_OF_BUFFER),
    HttpRoute(
        "DELETE", _BUFFER, "deleteBuffer", Call(Buffers.delete), None, 204, named=_BUFFER_NAME,
        action=LoggedAction(),
    ),
    reads(_BUFFERS, "listBuffers", Call(Buffers.list), wire.BUFFERS, optional=paged()),
    produces(
        "POST", f"{_BUFFER}/put", "putWork", Call(Buffers.put, "payloads"), wire.ACCEPTED, 201,
        body=wire.PUT_WORK, keyed=True, named=_BUFFER_NAME,
        errors=(*_OF_BUFFER, errors.LimitReached, errors.IdempotencyKeyReused),
        location=lambda request, _: f"{_BUFFERS}/{request.path['name']}", repeat=Repeat.KEYED,
    ),
    consumes(
        "POST", f"{_BUFFER}/take", "takeWork", _take, wire.TAKEN, body=wire.TAKE_WORK, named=_BUFFER_NAME,
        errors=_OF_BUFFER,
    ),
    consumes(
        "POST", f"{_BUFFER}/done", "doneWork", Call(Buffers.done, "tokens", "failures"), wire.RELEASED,
        body=wire.DONE_WORK, named=_BUFFER_NAME, errors=_OF_BUFFER,
    ),
    consumes(
        "PUT", _REGISTRATION, "register", Call(Directory.register, "request"), wire.REGISTRATION,
        body=wire.REGISTER, named=_REGISTRATION_NAMES, errors=(errors.ChannelRefused,),
    ),
    reads(
        _REGISTRATION, "getRegistration", Call(Directory.get), wire.REGISTRATION, named=_REGISTRATION_NAMES,
        errors=(errors.NotRegistered,),
    ),
    consumes(
        "DELETE", _REGISTRATION, "deregister", Call(Directory.deregister), wire.DELETED,
        named=_REGISTRATION_NAMES, action=LoggedAction(of_deletion), also=(AccessGroup.OPERATE,),
    ),
    reads(
        _TOPIC, "listTopic", Call(Directory.page), wire.REGISTRATIONS, named=_TOPIC_NAME,
        optional={"attributes": wire.ATTRIBUTES, **paged()},
    ),
    HttpRoute(
        "PUT", _ROUTE, "putRoute", Call(Routing.put, "request"), wire.ROUTE, body=wire.PUT_ROUTE,
        named={"name": wire.ROUTE_NAME}, errors=(errors.LimitReached,), action=LoggedAction(),
    ),
    reads(
        _ROUTE, "getRoute", Call(Routing.get), wire.ROUTE, named=_ROUTE_NAME, errors=(errors.RouteNotFound,),
    ),
    HttpRoute(
        "DELETE", _ROUTE, "deleteRoute", Call(Routing.delete), wire.DELETED, named=_ROUTE_NAME,
        action=LoggedAction(of_deletion),
    ),
    reads(_ROUTES, "listRoutes", Call(Routing.page), wire.ROUTES, optional=paged()),
    produces(
        "POST", f"{names.API_ROOT}/events", "putEvent", Call(Routing.publish, "event"), wire.SENT, 202,
        body=wire.PUT_EVENT, repeat=Repeat.NEVER,
    ),
    produces(
        "POST", _FRAMES, "openFrame", Call(Frames.open, "request"), wire.FRAME, 201, body=wire.OPEN_FRAME,
        keyed=True, errors=_NOT_STARTED,
        location=lambda _, frame: f"{_FRAMES}/{frame.frame_id}",
    ),
    reads(
        _FRAMES + "/{frame_id}", "getFrame", Call(Frames.status), wire.FRAME, optional=paged(),
        also=(AccessGroup.PRODUCE,),
    ),
    consumes(
        "POST", f"{names.API_ROOT}/claims", "claimEnvelopes", Call(Frames.claim, "tickets", "lease"),
        wire.CLAIMS, body=wire.CLAIM_ENVELOPES, errors=errors.GONE,
    ),
    produces(
        "POST", _SCATTERS, "startScatter", Call(Scatters.start, "scatter"), wire.SCATTERED, 201,
        body=wire.SCATTER, keyed=True,
        errors=(*_NOT_STARTED, errors.BatchGone, errors.CorrelationIdAlive, errors.NotRegistered),
        location=lambda _, scattered: f"{_SCATTERS}/{scattered.batch.batch_id}",
    ),
    reads(_SCATTER, "getScatter", Call(Scatters.status), wire.SCATTERED),
    reads(f"{_SCATTER}/replies", "listReplies", Call(Scatters.replies), wire.GATHERED, optional=_REPLIES),
    reads(
        f"{_SCATTER}/missing", "listMissingRecipients", Call(Scatters.missing_recipients),
        wire.MISSING_RECIPIENTS, optional=_REPLIES,
    ),
    reads(
        f"{_SCATTER}/failed", "listFailedRecipients", Call(Scatters.failed_recipients),
        wire.FAILED_RECIPIENTS, optional=_REPLIES,
    ),
    consumes(
        "POST", f"{names.API_ROOT}/replies", "reply", Call(Scatters.reply, "replies"), wire.REPLY_RECEIPTS,
        body=wire.REPLIES, errors=errors.GONE,
    ),
    consumes(
        "POST", f"{names.API_ROOT}/claim-checks", "claimPayload", Call(Scatters.claim, "request"),
        wire.CLAIM_CHECK, 201, body=wire.CLAIM_CHECK_REQUEST, errors=errors.GONE,
    ),
)
# fmt: on
