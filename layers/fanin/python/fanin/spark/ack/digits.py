"""Whole numbers at the ends of texts, eight characters at once.

The last eight characters are loaded as one integer of 64 bits, and added up in pairs, fours and eights
(Lemire, "Quickly parsing eight digits", 2018). In numpy that takes a dozen passes over a piece that stays in
the core's cache; casting the texts one by one takes twice as long.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fanin.spark.ack.page_builder import Ints

MOST: Final = 10
"""Digits of a number at most."""
EIGHT: Final = 8
"""Characters that are loaded at once."""

_ZEROS: Final = np.uint64(0x3030303030303030)
_TO_TOP: Final = np.uint64(0x7676767676767676)
"""Added to bytes, it sets the highest bit of those from 10 up."""
_TOPS: Final = np.uint64(0x8080808080808080)
_FOURS: Final = np.uint64(0x000000FF000000FF)
_FIRST_AND_THIRD: Final = np.uint64(100 + (1_000_000 << 32))
_SECOND_AND_FOURTH: Final = np.uint64(1 + (10_000 << 32))

Offsets: TypeAlias = npt.NDArray[np.int32 | np.int64]


def canonical_numbers(characters: Any, offsets: Offsets, start: int) -> Ints | None:
    """Read the numbers behind the first characters of some texts.

    Args:
        characters: a buffer with all texts.
        offsets: where each text begins in it, and where the last one ends; at least one text.
        start: characters before the number, in every text; at least eight.

    Returns:
        The numbers; None if not all of them are canonical: 1 to 10 digits, the first not a zero, unless it is
        the only one.
    """
    lengths = np.diff(offsets)
    shortest, longest = int(lengths.min()) - start, int(lengths.max()) - start
    if not 1 <= shortest <= longest <= MOST:
        return None
    digits, stops = lengths - start, offsets[1:]
    found = _last_eight(characters, stops, np.minimum(digits, EIGHT) if longest > EIGHT else digits)
    if found is None:
        return None
    numbers, leading = found
    if longest > EIGHT:
        long = np.flatnonzero(digits > EIGHT)
        above = _last_eight(characters, stops[long] - EIGHT, digits[long] - EIGHT)
        if above is None:
            return None
        numbers[long] += above[0] * 10**EIGHT
        leading[long] = above[1]
    if not leading.all() and (digits[leading == 0] > 1).any():
        return None
    return numbers


def _last_eight(
    characters: Any, stops: Offsets, digits: Offsets
) -> tuple[Ints, npt.NDArray[np.uint8]] | None:
    """Numbers of up to eight digits that end at some places, and their first digits; None if one is none."""
    size = memoryview(characters).nbytes
    loaded = np.ndarray((size - EIGHT + 1,), "<u8", characters, 0, (1,))[stops - EIGHT]
    loaded ^= _ZEROS
    others = ((EIGHT - digits) << 3).astype(np.uint64)
    loaded >>= others
    leading = loaded.astype(np.uint8)
    loaded <<= others
    above = loaded + _TO_TOP
    above |= loaded
    if np.bitwise_or.reduce(above) & _TOPS:
        return None
    np.right_shift(loaded, np.uint64(8), out=above)
    loaded *= np.uint64(10)
    loaded += above
    np.right_shift(loaded, np.uint64(16), out=above)
    above &= _FOURS
    above *= _SECOND_AND_FOURTH
    loaded &= _FOURS
    loaded *= _FIRST_AND_THIRD
    loaded += above
    loaded >>= np.uint64(32)
    return loaded.view(np.int64), leading
