"""Shapes of items: what is missing, what failed, and the findings of a diagnosis."""

from typing import Final

from fanin.domain import limits, reports
from fanin.domain.diagnosis import Diagnosis, Finding, MissingKnown, Retry, SentItems
from fanin.domain.ids import MAX_COUNT, MAX_ITEMS, parse_prefix
from fanin.wire import json_types as t
from fanin.wire.batches import BATCH
from fanin.wire.messages import KEPT_MESSAGE
from fanin.wire.shapes import Inline, Shape, answer, request, wrapped


def _encode_missing(found: reports.MissingRange) -> t.Json:
    items = found.items
    keys = {"keys": list(found.keys)} if found.keys else {}
    return {"group": items.group, "from": items.start, "to": items.stop, **keys}


def _decode_missing(body: t.Json) -> reports.MissingRange:
    first = parse_prefix(body["group"]).first
    keys = tuple(body.get("keys", ()))
    return reports.MissingRange(first + body["from"], first + body["to"], body["group"], keys)


MISSING_RANGE: Final = Shape(
    "MissingRange",
    {
        "group": t.TEXT.described("<batch id>:<group id>, of all items of the batch"),
        "from": t.whole(0, MAX_COUNT - 1),
        "to": t.whole(1, MAX_COUNT),
        "keys": t.many(t.TEXT).described("the keys of its first items, if they have any"),
    },
    _encode_missing,
    _decode_missing,
    required=("group", "from", "to"),
)
"""Missing items as a range that can be given to an acknowledgement as it is."""
MISSING: Final = answer("Missing", reports.Missing, ranges=t.many(MISSING_RANGE))
ITEM_RESULT: Final = answer("ItemResult", reports.ItemResult, "ordinal item key result")
RESULTS: Final = answer("ResultPage", reports.Results)
FAILED_ITEM: Final = answer(
    "FailedItem",
    reports.FailedItem,
    "ordinal item reason error attempts failed_at source kept redriven held key",
    error=t.TEXT.described("what the reason has in common with those of other items"),
    kept=t.BOOLEAN.described("whether its message was kept"),
)
FAILED_ITEMS: Final = answer("FailedItems", reports.Failures)
FAILED_MESSAGE: Final = answer(
    "FailedMessage", reports.FailedMessage, failure=Inline(FAILED_ITEM), message=t.or_null(KEPT_MESSAGE)
)
"""A failed item with its message; null if it was not kept."""
ERROR_GROUP: Final = answer("ErrorGroup", reports.ErrorGroup)
ERRORS: Final = answer("FailureErrors", reports.Errors)
"""Failures by error. A page counts the failures of its own part of the batch only: add the pages up."""


_QUEUE: Final = t.CHANNEL.described("URL of the queue")

FINDING: Final = answer("Finding", Finding, evidence=t.OBJECT)
MISSING_KNOWN: Final = answer("MissingKnown", MissingKnown, range=Inline(MISSING_RANGE))
DIAGNOSIS: Final = answer("Diagnosis", Diagnosis, batch=Inline(BATCH))
SENT: Final = request(
    "SentItems",
    SentItems,
    queue=_QUEUE,
    start=t.whole(0, MAX_ITEMS).called("from"),
    stop=t.whole(1, MAX_ITEMS).called("to"),
)
RETRY: Final = request(
    "Retry",
    Retry,
    item=t.ITEM_ID,
    attempt=t.whole(1, limits.MAX_ATTEMPTS),
    error=t.text(limits.MAX_REASON),
    queue=t.text(limits.MAX_CHANNEL),
)
RETRIES: Final = wrapped("NoteRetries", "retries", t.many(RETRY, limits.MAX_NOTES))
