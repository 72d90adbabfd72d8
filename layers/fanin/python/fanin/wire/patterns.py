"""Shapes of the patterns: scatter-gather, frames, bounded buffers, the directory and its routing."""

from collections.abc import Mapping
from typing import Any, Final

from fanin.domain import directory, limits
from fanin.domain.buffer import (
    Accepted,
    Buffer,
    BufferPage,
    DoneWork,
    FailedWork,
    Level,
    PutOutcome,
    Released,
    Work,
)
from fanin.domain.claim_checks import ClaimCheck, ClaimCheckRequest
from fanin.domain.directory import (
    Left,
    Policy,
    PutEvent,
    PutRoute,
    Register,
    Registration,
    Registrations,
    Route,
    Routes,
    Sent,
)
from fanin.domain.frames import DEFAULT_TTL, Claim, ClaimEnvelopes, Frame, Hold, OpenFrame, Ticket
from fanin.domain.ids import MAX_COUNT
from fanin.domain.scatter import (
    FailedRecipient,
    FailedRecipients,
    Gathered,
    GatheredReply,
    MissingRecipient,
    MissingRecipients,
    Recipient,
    Reply,
    ReplyReceipt,
    Scatter,
    Scattered,
)
from fanin.errors import InvalidRequest
from fanin.wire.batches import BATCH, ON_END, STATE, TOTAL_NAMES, TOTALS
from fanin.wire.json_types import (
    ANYTHING,
    BATCH_ID,
    BOOLEAN,
    CURSOR,
    ITEM_ID,
    METADATA,
    NATURAL,
    OBJECT,
    TEXT,
    TIME,
    Json,
    JsonType,
    many,
    one_of,
    or_null,
    string_map,
    text,
    whole,
)
from fanin.wire.marks import VALUES
from fanin.wire.shapes import Inline, Shape, answer, plain, request, wrapped

_PAYLOAD: Final = ANYTHING.with_keywords(description="any JSON value of up to 200 KB")
_CLAIM: Final = text(limits.MAX_CHANNEL, least=1).with_keywords(description="key of a claim")

RECIPIENT: Final = request(
    "Recipient",
    Recipient,
    channel=text(limits.MAX_CHANNEL, least=1).with_keywords(
        description="URL or ARN of an SQS queue, or topic/name of a registration"
    ),
    name=text(limits.MAX_USER_KEY).or_else(""),
)
SCATTER: Final = request(
    "Scatter",
    Scatter,
    body=text(limits.MAX_REPLY, least=1),
    recipients=many(RECIPIENT, limits.MAX_RECIPIENTS).left_out_if_empty(),
    topic=or_null(text(limits.MAX_NAME, least=1)),
    where=METADATA.with_keywords(
        description="attributes that a registration of the topic must have"
    ).left_out_if_empty(),
    type=text(limits.MAX_USER_KEY),
    attributes=string_map(text(limits.MAX_USER_KEY, least=1)).with_keywords(
        maxProperties=limits.MAX_ATTRIBUTES
    ),
    correlation_id=or_null(text(limits.MAX_CORRELATION_ID, least=1)),
    timeout=whole(limits.MIN_TIMEOUT, limits.MAX_TIMEOUT),
    max_retries=whole(0, limits.MAX_RETRIES),
    quorum=JsonType[int | float | None](
        {
            "type": ["integer", "number", "null"],
            "description": "enough replies: a number of them, or a share between 0 and 1",
            "exclusiveMinimum": 0,
            "maximum": limits.MAX_RECIPIENTS,
        }
    ),
    user_key=text(limits.MAX_USER_KEY),
    metadata=METADATA,
    on_end=ON_END,
    totals=TOTAL_NAMES,
)
SCATTERED: Final = answer(
    "Scattered",
    Scattered,
    batch=BATCH,
    correlation_id=TEXT,
    starting=BOOLEAN.with_keywords(description="a large topic is being listed: recipients is 0 until then"),
    ready=BOOLEAN,
    recipients=NATURAL,
    received=NATURAL,
    failed=NATURAL,
    missing=NATURAL,
    retries=NATURAL,
    max_retries=NATURAL,
    quorum=or_null(NATURAL),
)


def _encode_reply(reply: Reply) -> Json:
    said = {"payload": reply.payload} if reply.claim is None else {"claim": reply.claim}
    totals = {"totals": VALUES.encode(reply.totals)} if reply.totals else {}
    return {"item": reply.item, **said, **totals}


def _decode_reply(body: Json) -> Reply:
    return Reply(body["item"], body.get("payload"), body.get("claim"), body.get("totals", {}))


REPLY: Final = Shape(
    "Reply",
    {"item": ITEM_ID, "payload": _PAYLOAD, "claim": _CLAIM, "totals": VALUES},
    _encode_reply,
    _decode_reply,
    required=["item"],
)
"""A payload, which may be null, or the claim of one: the two are told apart by which is there."""
REPLIES: Final = wrapped("ReplyList", "replies", many(REPLY, limits.MAX_REPLIES))
REPLY_RECEIPT: Final = answer(
    "ReplyReceipt",
    ReplyReceipt,
    item=ITEM_ID,
    batch_id=BATCH_ID,
    state=STATE,
    first=BOOLEAN,
    duplicate=BOOLEAN,
    different=BOOLEAN,
    late=BOOLEAN,
)
REPLY_RECEIPTS: Final = wrapped("ReplyReceipts", "replies", many(REPLY_RECEIPT))
GATHERED_REPLY: Final = answer(
    "GatheredReply",
    GatheredReply,
    ordinal=NATURAL,
    name=TEXT,
    replied_at=TIME,
    payload=_PAYLOAD,
    claim=or_null(TEXT),
    url=or_null(TEXT),
)
GATHERED: Final = answer("Gathered", Gathered, replies=many(GATHERED_REPLY), cursor=CURSOR)
MISSING_RECIPIENT: Final = answer("MissingRecipient", MissingRecipient, ordinal=NATURAL, name=TEXT)
MISSING_RECIPIENTS: Final = answer(
    "MissingRecipients", MissingRecipients, recipients=many(MISSING_RECIPIENT), cursor=CURSOR
)
FAILED_RECIPIENT: Final = answer("FailedRecipient", FailedRecipient, ordinal=NATURAL, name=TEXT, reason=TEXT)
FAILED_RECIPIENTS: Final = answer(
    "FailedRecipients", FailedRecipients, recipients=many(FAILED_RECIPIENT), cursor=CURSOR
)
CLAIM_CHECK_REQUEST: Final = request(
    "ClaimCheckRequest",
    ClaimCheckRequest,
    item=ITEM_ID,
    size=whole(1, limits.MAX_CLAIM),
    content_type=text(limits.MAX_USER_KEY, least=1),
)
CLAIM_CHECK: Final = answer(
    "ClaimCheck", ClaimCheck, key=TEXT, url=TEXT, headers=string_map(), expires_at=TIME
)

OPEN_FRAME: Final = request(
    "OpenFrame",
    OpenFrame,
    size=whole(1, MAX_COUNT),
    source=text(limits.MAX_METADATA_VALUE).left_out_if_empty(),
    destination=text(limits.MAX_METADATA_VALUE).left_out_if_empty(),
    reply_to=text(limits.MAX_METADATA_VALUE)
    .with_keywords(description="URL or ARN of an SQS queue")
    .left_out_if_empty(),
    ttl=whole(limits.MIN_IDLE_TTL, limits.MAX_LIFETIME).with_keywords(default=DEFAULT_TTL),
    user_key=text(limits.MAX_USER_KEY).left_out_if_empty(),
    totals=TOTAL_NAMES,
)
FRAME: Final = answer(
    "Frame",
    Frame,
    frame_id=BATCH_ID,
    state=STATE,
    size=NATURAL,
    ttl=NATURAL,
    about=string_map(),
    user_key=TEXT,
    missing=many(many(NATURAL, 2).with_keywords(description="half-open range of indices")),
    cursor=CURSOR,
    totals=TOTALS,
    totals_exact=BOOLEAN.with_keywords(
        description="whether the totals are the sums of all envelopes that were handled"
    ),
)
TICKET: Final = request("Ticket", Ticket, frame_id=BATCH_ID, index=whole(0, MAX_COUNT))
CLAIM_ENVELOPES: Final = request(
    "ClaimEnvelopes",
    ClaimEnvelopes,
    tickets=many(TICKET, limits.MAX_CLAIMS).called("claims"),
    lease=whole(1, limits.MAX_ENVELOPE_LEASE).with_keywords(
        default=limits.DEFAULT_ENVELOPE_LEASE, description="seconds"
    ),
)
CLAIM: Final = answer(
    "EnvelopeClaim", Claim, ticket=Inline(TICKET), hold=one_of(Hold), item=ITEM_ID, until=NATURAL
)
CLAIMS: Final = wrapped("EnvelopeClaims", "claims", many(CLAIM))

DEFINE_BUFFER: Final = plain(
    "DefineBuffer",
    {"limit": whole(1, limits.MAX_LIMIT)},
    {
        "queue": or_null(text(limits.MAX_CHANNEL, least=1)).with_keywords(
            description="URL or ARN; without one the service makes a queue"
        )
    },
)
BUFFER: Final = answer(
    "Buffer",
    Buffer,
    name=TEXT,
    limit=whole(1, limits.MAX_LIMIT),
    queue=TEXT.with_keywords(description="URL"),
    owned=BOOLEAN.with_keywords(description="whether the service made the queue"),
    batch_id=BATCH_ID,
)
BUFFERS: Final = answer(
    "BufferPage", BufferPage, without={"unreadable": ()}, buffers=many(BUFFER), cursor=CURSOR
)
LEVEL: Final = answer(
    "BufferLevel",
    Level,
    buffer=Inline(BUFFER),
    count=JsonType[int](
        {"type": "integer", "description": "work that waits; below zero, consumers that wait for it"}
    ),
    pending=NATURAL,
    taken=NATURAL.with_keywords(description="approximately"),
    draining=BOOLEAN,
)
PUT_WORK: Final = wrapped(
    "PutWork", "payloads", many(text(limits.MAX_PAYLOAD, least=1), limits.MAX_WORK, least=1)
)
ACCEPTED: Final = answer("AcceptedWork", Accepted, outcome=one_of(PutOutcome), items=many(ITEM_ID))
TAKE_WORK: Final = plain(
    "TakeWork",
    {},
    {
        "most": whole(1, limits.MAX_WORK).with_keywords(default=1),
        "wait": whole(0, limits.MAX_WAIT).with_keywords(default=limits.MAX_WAIT, description="seconds"),
        "visibility_timeout": or_null(whole(1, limits.MAX_VISIBILITY_TIMEOUT)).with_keywords(
            description="seconds until the work comes again; null for the queue's own"
        ),
        "waiter": TEXT.with_keywords(
            pattern="^[0-9a-f]{16}$",
            description="name of a caller that asks again and again instead of waiting; with it, the answer"
            " comes at once",
        ),
        "waits": whole(0, limits.MAX_WAIT).with_keywords(
            default=0, description="seconds for which the waiter counts as a consumer that waits"
        ),
    },
)
WORK: Final = answer("Work", Work, payload=TEXT, receipt=TEXT, waited_ms=NATURAL)
TAKEN: Final = wrapped("TakenWork", "work", many(WORK))
FAILED_WORK: Final = request("FailedWork", FailedWork, receipt=TEXT, reason=text(limits.MAX_REASON))
DONE_WORK: Final = request(
    "DoneWork",
    DoneWork,
    tokens=many(TEXT, limits.MAX_RECEIPTS).called("receipts"),
    failures=many(FAILED_WORK, limits.MAX_RECEIPTS).with_keywords(
        description="work that is given up; it does not come again"
    ),
)
RELEASED: Final = answer("ReleasedSlots", Released, done=NATURAL, late=NATURAL)

NAME: Final = text(limits.MAX_NAME, least=1).with_keywords(pattern=f"^{limits.NAME}$")

ROUTE_NAME: Final = text(limits.MAX_ROUTE, least=1).with_keywords(pattern=f"^{directory.ROUTE_NAME}$")

REGISTER: Final = request(
    "Register",
    Register,
    channel=text(limits.MAX_CHANNEL, least=1).with_keywords(description="URL or ARN of an SQS queue"),
    attributes=METADATA,
    lease=whole(limits.MIN_LEASE, limits.MAX_LEASE),
)
"""What an instance registers with; ``topic`` and ``name`` are given to ``decode``."""
REGISTRATION: Final = answer(
    "Registration",
    Registration,
    topic=TEXT,
    name=TEXT,
    channel=TEXT,
    attributes=string_map(),
    lease=NATURAL,
    since=TIME,
    until=TIME,
    left=or_null(one_of(Left)).called("reason"),
)
REGISTRATIONS: Final = answer(
    "RegistrationPage", Registrations, registrations=many(REGISTRATION), cursor=CURSOR
)
DELETED: Final = wrapped("Deletion", "deleted", BOOLEAN)
PUT_ROUTE: Final = request(
    "PutRoute",
    PutRoute,
    pattern=OBJECT.with_keywords(
        description="event pattern of EventBridge",
        minProperties=1,
        examples=[{"source": ["shop"], "detail": {"total": [{"numeric": [">", 100]}]}}],
    ),
    topic=NAME,
    policy=one_of(Policy),
    attributes=METADATA,
)
"""What a route is made of; ``name`` is given to ``decode``."""
ROUTE: Final = answer(
    "Route",
    Route,
    name=TEXT,
    pattern=OBJECT,
    topic=TEXT,
    policy=one_of(Policy),
    attributes=string_map(),
    since=TIME,
)
ROUTES: Final = answer("RoutePage", Routes, routes=many(ROUTE), cursor=CURSOR)
PUT_EVENT: Final = request(
    "PutEvent",
    PutEvent,
    source=text(limits.MAX_SOURCE, least=1),
    detail_type=text(limits.MAX_DETAIL_TYPE, least=1),
    detail=OBJECT,
)
SENT: Final = answer("EventSent", Sent, event_id=TEXT, correlation_id=TEXT)


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


ATTRIBUTES: Final[JsonType[Any]] = JsonType(
    {"type": "string", "description": "only those that have all of these: name=value,name=value"},
    encode_attributes,
    decode_attributes,
)
"""An attribute filter, in a query."""
