"""Shapes of selections: which failures a redrive or a release is about."""

from __future__ import annotations

from typing import Final

from fanin.domain import limits
from fanin.domain.ids import MAX_ITEMS
from fanin.domain.redrives import OrdinalRange, Selection
from fanin.wire.json_types import many, text, whole
from fanin.wire.shapes import request

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

SHAPES: Final = (ORDINAL_RANGE, SELECTION)
