"""Shapes of the patterns: scatter-gather, frames, bounded buffers, the directory and its routing."""

from collections.abc import Mapping
from typing import Any, Final

from fanin.domain import buffer, directory, limits, scatter
from fanin.domain.claim_checks import ClaimCheck, ClaimCheckRequest
from fanin.domain.frames import DEFAULT_TTL, Claim, ClaimEnvelopes, Frame, OpenFrame, Ticket
from fanin.domain.ids import MAX_COUNT
from fanin.errors import InvalidRequest
from fanin.wire import json_types as t
from fanin.wire.batches import ON_END, TOTAL_NAMES
from fanin.wire.marks import VALUES
from fanin.wire.shapes import Inline, Shape, answer, plain, request, wrapped

_PAYLOAD: Final = t.ANYTHING.described("any JSON value of up to 200 KB")
_CLAIM: Final = t.CHANNEL.described("key of a claim")

RECIPIENT: Final = request(
    "Recipient",
    scatter.Recipient,
    channel=t.CHANNEL.described("URL or ARN of an SQS queue, or topic/name of a registration"),
    name=t.text(limits.MAX_USER_KEY).or_else(""),
)
SCATTER: Final = request(
    "Scatter",
    scatter.Scatter,
    body=t.text(limits.MAX_REPLY, least=1),
    recipients=t.many(RECIPIENT, limits.MAX_RECIPIENTS).left_out_if_empty(),
    topic=t.or_null(t.text(limits.MAX_NAME, least=1)),
    where=t.METADATA.left_out_if_empty(),
    type=t.text(limits.MAX_USER_KEY),
    attributes=t.map_of(t.text(limits.MAX_USER_KEY, least=1), maxProperties=limits.MAX_ATTRIBUTES),
    correlation_id=t.or_null(t.text(limits.MAX_CORRELATION_ID, least=1)),
    timeout=t.whole(limits.MIN_TIMEOUT, limits.MAX_TIMEOUT),
    max_retries=t.whole(0, limits.MAX_RETRIES),
    quorum=t.JsonType[int | float | None](
        {
            "type": ["integer", "number", "null"],
            "description": "enough replies: a number of them, or a share between 0 and 1",
            "exclusiveMinimum": 0,
            "maximum": limits.MAX_RECIPIENTS,
        }
    ),
    user_key=t.text(limits.MAX_USER_KEY),
    metadata=t.METADATA,
    on_end=ON_END,
    totals=TOTAL_NAMES,
)
SCATTERED: Final = answer(
    "Scattered",
    scatter.Scattered,
    "batch correlation_id starting ready recipients received failed missing retries max_retries quorum",
    starting=t.BOOLEAN.described("a large topic is being listed: recipients is 0 until then"),
)


def _encode_reply(reply: scatter.Reply) -> t.Json:
    said = {"payload": reply.payload} if reply.claim is None else {"claim": reply.claim}
    totals = {"totals": VALUES.encode(reply.totals)} if reply.totals else {}
    return {"item": reply.item, **said, **totals}


def _decode_reply(body: t.Json) -> scatter.Reply:
    return scatter.Reply(body["item"], body.get("payload"), body.get("claim"), body.get("totals", {}))


REPLY: Final = Shape(
    "Reply",
    {"item": t.ITEM_ID, "payload": _PAYLOAD, "claim": _CLAIM, "totals": VALUES},
    _encode_reply,
    _decode_reply,
    required=["item"],
)
"""A payload, which may be null, or the claim of one: the two are told apart by which is there."""
REPLIES: Final = wrapped("ReplyList", "replies", t.many(REPLY, limits.MAX_REPLIES))
REPLY_RECEIPT: Final = answer(
    "ReplyReceipt",
    scatter.ReplyReceipt,
    "item batch_id state first duplicate different late",
    item=t.ITEM_ID,
    batch_id=t.BATCH_ID,
)
REPLY_RECEIPTS: Final = wrapped("ReplyReceipts", "replies", t.many(REPLY_RECEIPT))
GATHERED_REPLY: Final = answer("GatheredReply", scatter.GatheredReply, payload=_PAYLOAD)
GATHERED: Final = answer("Gathered", scatter.Gathered)
MISSING_RECIPIENT: Final = answer("MissingRecipient", scatter.MissingRecipient)
MISSING_RECIPIENTS: Final = answer("MissingRecipients", scatter.MissingRecipients)
FAILED_RECIPIENT: Final = answer("FailedRecipient", scatter.FailedRecipient)
FAILED_RECIPIENTS: Final = answer("FailedRecipients", scatter.FailedRecipients)
CLAIM_CHECK_REQUEST: Final = request(
    "ClaimCheckRequest",
    ClaimCheckRequest,
    item=t.ITEM_ID,
    size=t.whole(1, limits.MAX_CLAIM),
    content_type=t.text(limits.MAX_USER_KEY, least=1),
)
CLAIM_CHECK: Final = answer("ClaimCheck", ClaimCheck)

OPEN_FRAME: Final = request(
    "OpenFrame",
    OpenFrame,
    size=t.whole(1, MAX_COUNT),
    source=t.text(limits.MAX_METADATA_VALUE).left_out_if_empty(),
    destination=t.text(limits.MAX_METADATA_VALUE).left_out_if_empty(),
    reply_to=t.text(limits.MAX_METADATA_VALUE).described("URL or ARN of an SQS queue").left_out_if_empty(),
    ttl=t.whole(limits.MIN_IDLE_TTL, limits.MAX_LIFETIME).with_keywords(default=DEFAULT_TTL),
    user_key=t.text(limits.MAX_USER_KEY).left_out_if_empty(),
    totals=TOTAL_NAMES,
)
FRAME: Final = answer(
    "Frame",
    Frame,
    frame_id=t.BATCH_ID,
    missing=t.many(t.many(t.NATURAL, 2).described("half-open range of indices")),
)
TICKET: Final = request("Ticket", Ticket, frame_id=t.BATCH_ID, index=t.whole(0, MAX_COUNT))
CLAIM_ENVELOPES: Final = request(
    "ClaimEnvelopes",
    ClaimEnvelopes,
    tickets=t.many(TICKET, limits.MAX_CLAIMS).called("claims"),
    lease=t.whole(1, limits.MAX_ENVELOPE_LEASE).with_keywords(default=limits.DEFAULT_ENVELOPE_LEASE),
)
CLAIM: Final = answer("EnvelopeClaim", Claim, ticket=Inline(TICKET), item=t.ITEM_ID)
CLAIMS: Final = wrapped("EnvelopeClaims", "claims", t.many(CLAIM))

DEFINE_BUFFER: Final = plain(
    "DefineBuffer",
    {"limit": t.whole(1, limits.MAX_LIMIT)},
    {"queue": t.or_null(t.CHANNEL).described("URL or ARN; without one the service makes a queue")},
)
BUFFER: Final = answer("Buffer", buffer.Buffer, limit=t.whole(1, limits.MAX_LIMIT), batch_id=t.BATCH_ID)
BUFFERS: Final = answer("BufferPage", buffer.BufferPage, without={"unreadable": ()})
LEVEL: Final = answer("BufferLevel", buffer.Level, buffer=Inline(BUFFER), count=t.INTEGER)
PUT_WORK: Final = wrapped(
    "PutWork", "payloads", t.many(t.text(limits.MAX_PAYLOAD, least=1), limits.MAX_WORK, least=1)
)
ACCEPTED: Final = answer("AcceptedWork", buffer.Accepted, items=t.many(t.ITEM_ID))
TAKE_WORK: Final = plain(
    "TakeWork",
    {},
    {
        "most": t.whole(1, limits.MAX_WORK).with_keywords(default=1),
        "wait": t.whole(0, limits.MAX_WAIT).with_keywords(default=limits.MAX_WAIT, description="seconds"),
        "visibility_timeout": t.or_null(t.whole(1, limits.MAX_VISIBILITY_TIMEOUT)).described(
            "seconds until the work comes again; null for the queue's own"
        ),
        "waiter": t.TEXT.with_keywords(
            pattern="^[0-9a-f]{16}$",
            description="name of a caller that asks again and again instead of waiting; with it, the answer"
            " comes at once",
        ),
        "waits": t.whole(0, limits.MAX_WAIT).with_keywords(
            default=0, description="seconds for which the waiter counts as a consumer that waits"
        ),
    },
)
WORK: Final = answer("Work", buffer.Work)
TAKEN: Final = wrapped("TakenWork", "work", t.many(WORK))
FAILED_WORK: Final = request(
    "FailedWork", buffer.FailedWork, receipt=t.TEXT, reason=t.text(limits.MAX_REASON)
)
DONE_WORK: Final = request(
    "DoneWork",
    buffer.DoneWork,
    tokens=t.many(t.TEXT, limits.MAX_RECEIPTS).called("receipts"),
    failures=t.many(FAILED_WORK, limits.MAX_RECEIPTS).described(
        "work that is given up; it does not come again"
    ),
)
RELEASED: Final = answer("ReleasedSlots", buffer.Released)

NAME: Final = t.text(limits.MAX_NAME, least=1).with_keywords(pattern=f"^{limits.NAME}$")

ROUTE_NAME: Final = t.text(limits.MAX_ROUTE, least=1).with_keywords(pattern=f"^{directory.ROUTE_NAME}$")

REGISTER: Final = request(
    "Register",
    directory.Register,
    channel=t.CHANNEL.described("URL or ARN of an SQS queue"),
    attributes=t.METADATA,
    lease=t.whole(limits.MIN_LEASE, limits.MAX_LEASE),
)
"""What an instance registers with; ``topic`` and ``name`` are given to ``decode``."""
REGISTRATION: Final = answer(
    "Registration",
    directory.Registration,
    since=t.TIME,
    until=t.TIME,
    left=t.or_null(t.one_of(directory.Left)).called("reason"),
)
REGISTRATIONS: Final = answer("RegistrationPage", directory.Registrations)
DELETED: Final = wrapped("Deletion", "deleted", t.BOOLEAN)
PUT_ROUTE: Final = request(
    "PutRoute",
    directory.PutRoute,
    pattern=t.OBJECT.with_keywords(
        minProperties=1, examples=[{"source": ["shop"], "detail": {"total": [{"numeric": [">", 100]}]}}]
    ),
    topic=NAME,
    policy=t.one_of(directory.Policy),
    attributes=t.METADATA,
)
"""What a route is made of; ``name`` is given to ``decode``."""
ROUTE: Final = answer("Route", directory.Route, since=t.TIME)
ROUTES: Final = answer("RoutePage", directory.Routes)
PUT_EVENT: Final = request(
    "PutEvent",
    directory.PutEvent,
    source=t.text(limits.MAX_SOURCE, least=1),
    detail_type=t.text(limits.MAX_DETAIL_TYPE, least=1),
    detail=t.OBJECT,
)
SENT: Final = answer("EventSent", directory.Sent)


def encode_attributes(attributes: Mapping[str, str]) -> str | None:
    """Write an attribute filter as a query parameter; None if it asks for nothing."""
    return ",".join(f"{name}={value}" for name, value in attributes.items()) or None


def decode_attributes(text: str | None) -> dict[str, str]:
    """Read an attribute filter: ``colour=red,region=eu``.

    Raises:
        InvalidRequest: a part of it is not ``name=value``.
    """
    pairs = [pair.partition("=") for pair in (text or "").split(",") if pair]
    if not all(name and equals for name, equals, _ in pairs):
        raise InvalidRequest("attributes must be written as name=value,name=value")
    return {name: value for name, _, value in pairs}


ATTRIBUTES: Final[t.JsonType[Any]] = t.JsonType(
    {"type": "string", "description": "only those that have all of these: name=value,name=value"},
    encode_attributes,
    decode_attributes,
)
"""An attribute filter, in a query."""
