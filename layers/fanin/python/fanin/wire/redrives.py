"""Shapes of redrives: which failures one is about, as also a release, and what became of them."""

from collections.abc import Mapping
from typing import Final

from fanin.domain import limits
from fanin.domain.ids import MAX_ITEMS
from fanin.domain.redrives import OrdinalRange, Redrive, RedriveState, Redriving, Redrivings, Selection
from fanin.wire.json_types import (
    BATCH_ID,
    BOOLEAN,
    CURSOR,
    NATURAL,
    TEXT,
    TIME,
    JsonType,
    many,
    one_of,
    or_null,
    text,
    whole,
)
from fanin.wire.shapes import answer, request

ORDINAL_RANGE: Final = request(
    "OrdinalRange",
    OrdinalRange,
    start=whole(0, MAX_ITEMS).called("from"),
    stop=whole(1, MAX_ITEMS).called("to").with_keywords(description="one past the last ordinal"),
)
ERRORS: Final = many(text(limits.MAX_REASON, least=1), limits.MAX_ERRORS).with_keywords(
    description="what failures have in common, or the beginning of it; one must match; at most 32 KiB in all"
)
RANGES: Final = many(ORDINAL_RANGE, limits.MAX_SELECTED_RANGES).with_keywords(
    description="ordinals; the item must lie in one"
)
SELECTION: Final = request(
    "Selection", Selection, errors=ERRORS.left_out_if_empty(), ranges=RANGES.left_out_if_empty()
)


_QUEUE: Final = or_null(text(limits.MAX_CHANNEL, least=1))

REDRIVE: Final = request(
    "Redrive",
    Redrive,
    errors=ERRORS.left_out_if_empty(),
    ranges=RANGES.left_out_if_empty(),
    queue_url=_QUEUE.with_keywords(
        description="URL or ARN of the queue to send to; without it, each message goes to its own queue"
    ).left_out_if_empty(),
    dry_run=BOOLEAN.with_keywords(description="only count").left_out_if_empty(),
)
_COUNTS: Final[JsonType[Mapping[str, int]]] = JsonType(
    {"type": "object", "additionalProperties": NATURAL.schema}, dict
)
REDRIVING: Final = answer(
    "Redriving",
    Redriving,
    name=TEXT,
    retry_of=BATCH_ID,
    batch_id=or_null(BATCH_ID).with_keywords(description="the batch that has the items now"),
    state=one_of(RedriveState),
    items=NATURAL.with_keywords(description="failures that were sent again"),
    already=NATURAL.with_keywords(description="failures that another redrive has sent"),
    not_kept=NATURAL.with_keywords(description="failures whose message was not kept"),
    not_kept_items=many(NATURAL).with_keywords(description="ordinals of the first of these"),
    refused=_COUNTS.with_keywords(description="why queues were not sent to, and for how many failures"),
    errors=ERRORS,
    ranges=RANGES,
    queue_url=_QUEUE,
    started_at=or_null(TIME),
)
"""A redrive and its counts so far."""
REDRIVINGS: Final = answer("Redrivings", Redrivings, redrives=many(REDRIVING), cursor=CURSOR)
