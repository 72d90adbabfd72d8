"""Shapes of redrives: which failures one is about, as also a release, and what became of them."""

from typing import Final

from fanin.domain import limits
from fanin.domain.ids import MAX_ITEMS
from fanin.domain.redrives import OrdinalRange, Redrive, Redriving, Redrivings, Selection
from fanin.wire import json_types as t
from fanin.wire.shapes import answer, request

ORDINAL_RANGE: Final = request(
    "OrdinalRange",
    OrdinalRange,
    start=t.whole(0, MAX_ITEMS).called("from"),
    stop=t.whole(1, MAX_ITEMS).called("to").described("one past the last ordinal"),
)
ERRORS: Final = t.many(t.text(limits.MAX_REASON, least=1), limits.MAX_ERRORS).described(
    "what failures have in common, or the beginning of it; one must match; at most 32 KiB in all"
)
RANGES: Final = t.many(ORDINAL_RANGE, limits.MAX_SELECTED_RANGES).described(
    "ordinals; the item must lie in one"
)
SELECTION: Final = request(
    "Selection", Selection, errors=ERRORS.left_out_if_empty(), ranges=RANGES.left_out_if_empty()
)


REDRIVE: Final = request(
    "Redrive",
    Redrive,
    errors=ERRORS.left_out_if_empty(),
    ranges=RANGES.left_out_if_empty(),
    queue_url=t.or_null(t.CHANNEL).left_out_if_empty(),
    dry_run=t.BOOLEAN.left_out_if_empty(),
)
REDRIVING: Final = answer(
    "Redriving",
    Redriving,
    retry_of=t.BATCH_ID,
    batch_id=t.or_null(t.BATCH_ID),
    refused=t.map_of(t.NATURAL),
    errors=ERRORS,
    ranges=RANGES,
    queue_url=t.or_null(t.CHANNEL),
)
"""A redrive and its counts so far."""
REDRIVINGS: Final = answer("Redrivings", Redrivings)
