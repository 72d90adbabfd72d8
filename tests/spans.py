"""Missing ranges of an event, as ordinals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fanin.wire.items import MISSING_RANGE


def spans(missing: Iterable[dict[str, Any]]) -> list[list[int]]:
    """Half-open ranges of ordinals."""
    return [[found.start, found.stop] for found in map(MISSING_RANGE.decode, missing)]
