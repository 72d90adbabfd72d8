"""Shapes of redrives: which failures one is about, as also a release, and what became of them."""

from collections.abc import Mapping
from typing import Final

from fanin.domain import limits
from fanin.domain.ids import MAX_ITEMS
from fanin.domain.redrives import OrdinalRange, Redrive, RedriveState, Redriving, Redrivings, Selection
from fanin.wire import json_types as t
from fanin.wire.shapes import answer, request

ORDINAL_RANGE: Final = request(
    "OrdinalRange",
    OrdinalRange,
    start=t.whole(0, MAX_ITEMS).called("from"),
    stop=t.whole(1, MAX_ITEMS).called("to").with_keywords(description="one past the last ordinal"),
)
ERRORS: Final = t.many(t.text(limits.MAX_REASON, least=1), limits.MAX_ERRORS).with_keywords(
    description="what failures have in common, or the beginning of it; one must match; at most 32 KiB in all"
)
RANGES: Final = t.many(ORDINAL_RANGE, limits.MAX_SELECTED_RANGES).with_keywords(
    description="ordinals; the item must lie in one"
)
SELECTION: Final = request(
    "Selection", Selection, errors=ERRORS.left_out_if_empty(), ranges=RANGES.left_out_if_empty()
)


_QUEUE: Final = t.or_null(t.text(limits.MAX_CHANNEL, least=1))

REDRIVE: Final = request(
    "Redrive",
    Redrive,
    errors=ERRORS.left_out_if_empty(),
    ranges=RANGES.left_out_if_empty(),
    queue_url=_QUEUE.with_keywords(
        description="URL or ARN of the queue to send to; without it, each message goes to its own queue"
    ).left_out_if_empty(),
    dry_run=t.BOOLEAN.with_keywords(description="only count").left_out_if_empty(),
)
_COUNTS: Final[t.JsonType[Mapping[str, int]]] = t.JsonType(
    {"type": "object", "additionalProperties": t.NATURAL.schema}, dict
)
REDRIVING: Final = answer(
    "Redriving",
    Redriving,
    name=t.TEXT,
    retry_of=t.BATCH_ID,
    batch_id=t.or_null(t.BATCH_ID).with_keywords(description="the batch that has the items now"),
    state=t.one_of(RedriveState),
    items=t.NATURAL.with_keywords(description="failures that were sent again"),
    already=t.NATURAL.with_keywords(description="failures that another redrive has sent"),
    not_kept=t.NATURAL.with_keywords(description="failures whose message was not kept"),
    not_kept_items=t.many(t.NATURAL).with_keywords(description="ordinals of the first of these"),
    refused=_COUNTS.with_keywords(description="why queues were not sent to, and for how many failures"),
    errors=ERRORS,
    ranges=RANGES,
    queue_url=_QUEUE,
    started_at=t.or_null(t.TIME),
)
"""A redrive and its counts so far."""
REDRIVINGS: Final = answer("Redrivings", Redrivings, redrives=t.many(REDRIVING), cursor=t.CURSOR)
