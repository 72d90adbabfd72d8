"""Item ids as Arrow text, parsed by a task: in numpy if they begin alike, otherwise in Arrow, slower."""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fanin.spark.ack.page_builder import Ints

MOST: Final = 10  # digits of a number
EIGHT: Final = 8  # characters that are loaded at once

_ZEROS: Final = np.uint64(0x3030303030303030)
_TO_TOP: Final = np.uint64(0x7676767676767676)  # added to bytes, it sets the highest bit of those from 10 up
_TOPS: Final = np.uint64(0x8080808080808080)
_FOURS: Final = np.uint64(0x000000FF000000FF)
_FIRST_AND_THIRD: Final = np.uint64(100 + (1_000_000 << 32))
_SECOND_AND_FOURTH: Final = np.uint64(1 + (10_000 << 32))
_NARROW: Final = (pa.string(), pa.binary())  # their offsets have 32 bits

Offsets: TypeAlias = npt.NDArray[np.int32 | np.int64]
_Flags: TypeAlias = npt.NDArray[np.bool_]
_Array: TypeAlias = Any  # of Arrow; pyarrow has no type annotations


class IdColumns:
    """Splits ids at their last colon, piece by piece, and numbers their prefixes.

    Many datasets have only one prefix. So it is tried first whether all ids of a piece begin like the first.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    @property
    def prefixes(self) -> list[str]:
        """Each prefix so far, once, as text."""
        return [prefix.decode(errors="replace") for prefix in self._known]

    def split(self, items: _Array) -> tuple[Ints | int, Ints]:
        """Split some ids, without nulls; at best so few that they fit into the core's cache.

        Returns:
            The position of each id's prefix in ``prefixes``, or one position if all ids have the same prefix.
            It is -1 if the id does not end in a canonical whole number: 1 to 10 digits, the first not a zero,
            unless it is the only one. Then, for each id, that number.
        """
        if not len(items):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        narrow = items.type in _NARROW
        items = items.view(pa.binary() if narrow else pa.large_binary())
        offsets: Offsets = np.frombuffer(items.buffers()[1], np.int32 if narrow else np.int64)
        offsets = offsets[items.offset :][: len(items) + 1]
        prefix, colon, _ = items[0].as_py().rpartition(b":")
        if len(prefix) >= EIGHT and pc.starts_with(items, prefix + colon).true_count == len(items):
            digits = np.diff(offsets) - len(prefix) - 1
            if 1 <= digits.min() <= digits.max() <= MOST:
                numbers, good = _numbers(items.buffers()[2], offsets[1:], digits)
                if good.all():
                    return self._code(prefix), numbers
        return self._apart(items)

    def _apart(self, items: _Array) -> tuple[Ints, Ints]:
        """Split ids of any spelling."""
        codes, indices = np.full(len(items), -1, np.int64), np.zeros(len(items), np.int64)
        parts = pc.split_pattern(items, b":", max_splits=1, reverse=True)
        parted = pc.equal(pc.list_value_length(parts), 2)
        prefixes, numbers = (pc.list_element(parts.filter(parted), place) for place in (0, 1))
        whole = pc.match_substring_regex(numbers, f"^(0|[1-9][0-9]{{0,{MOST - 1}}})$")
        rows = np.flatnonzero(parted)[whole]
        names = prefixes.filter(whole).dictionary_encode()
        known = np.array([self._code(name) for name in names.dictionary.to_pylist()], np.int64)
        codes[rows] = known[names.indices]
        indices[rows] = numbers.filter(whole).cast(pa.large_string()).cast(pa.int64())
        return codes, indices

    def _code(self, prefix: bytes) -> int:
        return self._known.setdefault(prefix, len(self._known))


def _numbers(characters: Any, stops: Offsets, digits: Offsets) -> tuple[Ints, _Flags]:
    """Read numbers of 1 to ``MOST`` digits that end at ``stops``; at least eight characters precede each."""
    long = np.flatnonzero(digits > EIGHT)
    numbers, leading, good = _last_eight(
        characters, stops, np.minimum(digits, EIGHT) if len(long) else digits
    )
    if len(long):
        above, leading[long], fine = _last_eight(characters, stops[long] - EIGHT, digits[long] - EIGHT)
        numbers[long] += above * 10**EIGHT
        good[long] &= fine
    if not leading.all():
        good &= (leading > 0) | (digits == 1)
    return numbers, good


def _last_eight(
    characters: Any, stops: Offsets, digits: Offsets
) -> tuple[Ints, npt.NDArray[np.uint8], _Flags]:
    """Numbers of up to eight digits that end at some places, their first digits, and which are numbers."""
    size = memoryview(characters).nbytes
    loaded = np.ndarray((size - EIGHT + 1,), "<u8", characters, 0, (1,))[stops - EIGHT]
    loaded ^= _ZEROS
    others = ((EIGHT - digits) << 3).astype(np.uint64)
    loaded >>= others
    leading = loaded.astype(np.uint8)
    loaded <<= others
    above = loaded + _TO_TOP
    above |= loaded
    above &= _TOPS
    good = above == 0
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
    return loaded.view(np.int64), leading, good


def decoded(items: _Array) -> list[str | None]:
    """Texts of a column that says that it is UTF-8; a character stands for what is not, which no id has."""
    texts = items.cast(pa.large_binary()).to_pylist()
    return [None if text is None else text.decode(errors="replace") for text in texts]
