"""Shapes of items: what is missing, what failed, and the findings of a diagnosis."""

from typing import Final

from fanin.domain import limits
from fanin.domain.diagnosis import Code, Diagnosis, Finding, Known, MissingKnown, Retry, SentItems, Severity
from fanin.domain.ids import MAX_COUNT, MAX_ITEMS, parse_prefix
from fanin.domain.reports import (
    ErrorGroup,
    Errors,
    FailedItem,
    FailedMessage,
    Failures,
    ItemResult,
    Missing,
    MissingRange,
    Results,
)
from fanin.wire.batches import BATCH
from fanin.wire.json_types import (
    ANYTHING,
    BOOLEAN,
    CURSOR,
    ITEM_ID,
    NATURAL,
    OBJECT,
    TEXT,
    TIME,
    Json,
    many,
    one_of,
    or_null,
    text,
    whole,
)
from fanin.wire.messages import KEPT_MESSAGE
from fanin.wire.shapes import Inline, Shape, answer, request, wrapped


def _encode_missing(found: MissingRange) -> Json:
    items = found.items
    keys = {"keys": list(found.keys)} if found.keys else {}
    return {"group": items.group, "from": items.start, "to": items.stop, **keys}


def _decode_missing(body: Json) -> MissingRange:
    first = parse_prefix(body["group"]).first
    keys = tuple(body.get("keys", ()))
    return MissingRange(first + body["from"], first + body["to"], body["group"], keys)


MISSING_RANGE: Final = Shape(
    "MissingRange",
    {
        "group": TEXT.with_keywords(description="<batch id>:<group id>, of all items of the batch"),
        "from": whole(0, MAX_COUNT - 1),
        "to": whole(1, MAX_COUNT),
        "keys": many(TEXT).with_keywords(description="the keys of its first items, if they have any"),
    },
    _encode_missing,
    _decode_missing,
    required=("group", "from", "to"),
)
"""Missing items as a range that can be given to an acknowledgement as it is."""
MISSING: Final = answer("Missing", Missing, ranges=many(MISSING_RANGE), cursor=CURSOR)
ITEM_RESULT: Final = answer(
    "ItemResult",
    ItemResult,
    ordinal=NATURAL,
    item=TEXT,
    key=TEXT.with_keywords(description="of the item; empty if it has none"),
    result=ANYTHING.with_keywords(description="any JSON value"),
)
RESULTS: Final = answer("ResultPage", Results, results=many(ITEM_RESULT), cursor=CURSOR)
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
    key=TEXT.with_keywords(description="of the item; empty if it has none"),
)
FAILED_ITEMS: Final = answer("FailedItems", Failures, failures=many(FAILED_ITEM), cursor=CURSOR)
FAILED_MESSAGE: Final = answer(
    "FailedMessage", FailedMessage, failure=Inline(FAILED_ITEM), message=or_null(KEPT_MESSAGE)
)
"""A failed item with its message; null if it was not kept."""
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


_QUEUE: Final = text(limits.MAX_CHANNEL, least=1).with_keywords(description="URL of the queue")

FINDING: Final = answer(
    "Finding",
    Finding,
    code=one_of(Code),
    severity=one_of(Severity),
    title=TEXT,
    detail=TEXT,
    advice=TEXT,
    evidence=OBJECT,
)
MISSING_KNOWN: Final = answer(
    "MissingKnown", MissingKnown, range=Inline(MISSING_RANGE), known=one_of(Known), detail=TEXT
)
DIAGNOSIS: Final = answer(
    "Diagnosis",
    Diagnosis,
    batch=Inline(BATCH),
    done_min=NATURAL,
    done_max=NATURAL,
    findings=many(FINDING),
    missing=many(MISSING_KNOWN),
    missing_more=BOOLEAN,
)
SENT: Final = request(
    "SentItems",
    SentItems,
    queue=_QUEUE,
    start=whole(0, MAX_ITEMS).called("from"),
    stop=whole(1, MAX_ITEMS).called("to"),
)
RETRY: Final = request(
    "Retry",
    Retry,
    item=ITEM_ID,
    attempt=whole(1, limits.MAX_ATTEMPTS),
    error=text(limits.MAX_REASON),
    queue=text(limits.MAX_CHANNEL),
)
RETRIES: Final = wrapped("NoteRetries", "retries", many(RETRY, limits.MAX_NOTES))
