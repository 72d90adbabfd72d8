"""Shapes of items: acknowledgements, failures, receipts, and what is missing."""

from __future__ import annotations

from typing import Any, Final

from fanin.domain import limits
from fanin.domain.acks import Acks, Count, Failure, ItemRange, Receipt, Result
from fanin.domain.ids import MAX_COUNT, parse_prefix
from fanin.domain.reports import (
    ErrorGroup,
    Errors,
    FailedItem,
    FailedMessage,
    Failures,
    Missing,
    MissingRange,
)
from fanin.domain.totals import MAX_VALUE, NAME
from fanin.errors import PartlyMarked
from fanin.wire.batches import STATE
from fanin.wire.json_types import (
    BATCH_ID,
    BOOLEAN,
    CURSOR,
    ITEM_ID,
    NATURAL,
    TEXT,
    TIME,
    Json,
    JsonType,
    many,
    or_null,
    text,
    whole,
    whole_map,
)
from fanin.wire.messages import KEPT_MESSAGE
from fanin.wire.shapes import Inline, Shape, answer, request, wrapped

_GROUP: Final = TEXT.with_keywords(description="<batch id>:<group id>")

RANGE: Final = request(
    "ItemRange",
    ItemRange,
    group=_GROUP,
    start=whole(0, MAX_COUNT).called("from"),
    stop=or_null(whole(1, MAX_COUNT)).called("to"),
)
VALUES: Final = whole_map(-MAX_VALUE, MAX_VALUE, names=NAME).left_out_if_empty()
"""What an item adds to each total of its batch."""
COUNT: Final = request("Count", Count, batch_id=BATCH_ID, n=whole(1, MAX_COUNT), totals=VALUES)
RESULT: Final = request("Result", Result, item=ITEM_ID, totals=VALUES)
FAILURE: Final = request(
    "Failure",
    Failure,
    item=ITEM_ID,
    reason=text(limits.MAX_REASON),
    message=KEPT_MESSAGE.left_out_if_empty(),
    attempts=whole(0, limits.MAX_ATTEMPTS)
    .with_keywords(description="how often the message was received; 0 if that is not known")
    .left_out_if_empty(),
    source=text(limits.MAX_CHANNEL)
    .with_keywords(description="URL or ARN of the queue that the message came from")
    .left_out_if_empty(),
    totals=VALUES,
)

_MARKS: Final[dict[str, JsonType[Any]]] = {
    "items": many(ITEM_ID, limits.MAX_IDS).left_out_if_empty(),
    "ranges": many(RANGE, limits.MAX_RANGES).left_out_if_empty(),
    "counts": many(COUNT, limits.MAX_COUNTS).left_out_if_empty(),
    "results": many(RESULT, limits.MAX_IDS).left_out_if_empty(),
}
_FAILURES: Final = many(FAILURE, limits.MAX_FAILURES)

ACKS: Final = request("Acks", Acks, **_MARKS)
FAILURES: Final = wrapped("FailItems", "failures", _FAILURES)
QUEUED_ACKS: Final = request("QueuedAcks", Acks, **_MARKS, failures=_FAILURES.left_out_if_empty())
"""The message of the ack queue: acknowledgements and failures in one."""

RECEIPT: Final = answer(
    "Receipt",
    Receipt,
    batch_id=BATCH_ID,
    user_key=TEXT,
    state=STATE,
    complete=BOOLEAN,
    first=NATURAL,
    duplicates=many(ITEM_ID),
    ranged=NATURAL,
    late=NATURAL,
    held=NATURAL,
)
RECEIPTS: Final = wrapped("Receipts", "batches", many(RECEIPT))


def _encode_partly(error: PartlyMarked) -> Json:
    return {**RECEIPTS.encode(error.receipts), "rest": QUEUED_ACKS.encode(error.rest)}


def _decode_partly(body: Json, *, message: str, retry_after: int | None) -> PartlyMarked:
    receipts, rest = RECEIPTS.decode(body), QUEUED_ACKS.decode(body["rest"])
    return PartlyMarked(message, receipts=receipts, rest=rest, retry_after=retry_after)


PARTLY_MARKED: Final = Shape(
    "PartlyMarked", {**RECEIPTS.fields, "rest": QUEUED_ACKS}, _encode_partly, _decode_partly
)
"""Members of a problem: the receipts of the items that a call has marked, and the rest of the call."""


def _encode_missing(found: MissingRange) -> Json:
    return {"group": found.group, "from": 0, "to": found.stop - found.start}


def _decode_missing(body: Json) -> MissingRange:
    first = parse_prefix(body["group"]).first
    return MissingRange(first + body["from"], first + body["to"], body["group"])


MISSING_RANGE: Final = Shape(
    "MissingRange",
    {
        "group": _GROUP.with_keywords(description="<batch id>:<group id>, of a group of exactly these items"),
        "from": whole(0, 0),
        "to": whole(1, MAX_COUNT),
    },
    _encode_missing,
    _decode_missing,
)
"""Missing items as a range that can be given to an acknowledgement as it is."""
MISSING: Final = answer("Missing", Missing, ranges=many(MISSING_RANGE), cursor=CURSOR)
FAILED_ITEM: Final = answer(
    "FailedItem",
    FailedItem,
    ordinal=NATURAL,
    item=TEXT,
    reason=TEXT,
    error=TEXT.with_keywords(description="what the reason has in common with those of other items"),
    attempts=NATURAL,
    failed_at=TIME,
    source=TEXT,
    kept=BOOLEAN.with_keywords(description="whether its message was kept"),
    redriven=or_null(TEXT).with_keywords(description="name of the redrive that sent it again"),
    held=BOOLEAN.with_keywords(description="whether it is pending, because its batch holds failed items"),
)
FAILED_ITEMS: Final = answer("FailedItems", Failures, failures=many(FAILED_ITEM), cursor=CURSOR)
FAILED_MESSAGE: Final = answer(
    "FailedMessage", FailedMessage, failure=Inline(FAILED_ITEM), message=KEPT_MESSAGE.left_out_if_empty()
)
"""A failed item with its message, which is left out if it was not kept."""
ERROR_GROUP: Final = answer(
    "ErrorGroup",
    ErrorGroup,
    error=TEXT,
    failed=NATURAL,
    example=TEXT,
    first=NATURAL.with_keywords(description="ordinal of the first of these items"),
    last_failed_at=TIME,
    kept=NATURAL.with_keywords(description="how many of their messages were kept"),
)
ERRORS: Final = answer("FailureErrors", Errors, errors=many(ERROR_GROUP), cursor=CURSOR)
"""Failures by error. A page counts the failures of its own part of the batch only: add the pages up."""

SHAPES: Final = (
    RANGE,
    COUNT,
    RESULT,
    FAILURE,
    ACKS,
    FAILURES,
    QUEUED_ACKS,
    RECEIPT,
    RECEIPTS,
    MISSING_RANGE,
    MISSING,
    FAILED_ITEM,
    FAILED_ITEMS,
    FAILED_MESSAGE,
    ERROR_GROUP,
    ERRORS,
)
