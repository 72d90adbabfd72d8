"""Item ids as Arrow text, parsed by a task in numpy; ``sql_items`` does the same in SQL."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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


_CANONICAL: Final = rf"\A(?:0|[1-9][0-9]{{0,{MOST - 1}}})\z"
_ZERO, _NINE, _COLON = b"09:"
_LENGTHS: Final = 8
"""Lengths of prefixes that are tried, each that of a row which is left."""

_NARROW: Final = (pa.string(), pa.binary())
"""Types whose offsets have 32 bits."""

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Array: TypeAlias = Any
"""An Arrow array; pyarrow has no type annotations."""


class IdColumns:
    """Splits ids at their last colon, piece by piece, and numbers their prefixes.

    Prefixes mostly have the same length, and many datasets have only one. So all ids are cut behind the
    colon of one of them, and the rest is cast at once. Ids where that is not a canonical number are looked
    at character by character.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    @property
    def prefixes(self) -> list[str]:
        """Each prefix so far, once, as text."""
        return [prefix.decode(errors="replace") for prefix in self._known]

    def split(self, items: _Array) -> tuple[Ints | int, Ints]:
        """Split some ids.

        Args:
            items: an array of text, without nulls; at best so few that they fit into the core's cache.

        Returns:
            The position of each id's prefix in ``prefixes``, or one position if all ids have the same prefix.
            It is -1 if the id does not end in a canonical whole number of at most ten digits. Then, for each
            id, that number.
        """
        if not len(items):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        narrow = items.type in _NARROW
        items = items.view(pa.binary() if narrow else pa.large_binary())
        if (split := self._alike(items, np.int32 if narrow else np.int64)) is not None:
            return split
        items = items.cast(pa.large_binary())
        codes, indices = np.full(len(items), -1, np.int64), np.zeros(len(items), np.int64)
        rows, some = np.arange(len(items)), items
        odd: list[Ints] = []
        for _ in range(_LENGTHS):
            if not len(rows):
                break
            prefix, colon, _ = some[len(rows) // 2].as_py().rpartition(b":")
            if not colon:
                rest = pc.match_substring(some, ":")
                rows, some = rows[_flags(rest)], some.filter(rest)
                continue
            alone = pc.starts_with(some, prefix + colon).true_count == len(rows)
            cut, texts = rows, some
            if alone:
                rows = rows[:0]
            else:
                mine = pc.equal(pc.binary_slice(some, len(prefix), len(prefix) + 1), colon)
                rest = pc.invert(mine)
                cut, texts = rows[_flags(mine)], some.filter(mine)
                rows, some = rows[_flags(rest)], some.filter(rest)
            start = len(prefix) + 1
            numbers, good = _numbers(pc.binary_slice(texts, start, start + MOST + 1))
            if good is not None:
                odd.append(cut[~_flags(good)])
                cut, texts = cut[_flags(good)], texts.filter(good)
            indices[cut] = numbers
            if len(cut):
                codes[cut] = self._code(prefix) if alone else self._codes(texts, len(prefix))
        left = np.sort(np.concatenate([*odd, rows]))
        if len(left):
            codes[left], indices[left] = self._apart(items.take(pa.array(left)))
        return codes, indices

    def _alike(self, items: _Array, offset: type[Any]) -> tuple[int, Ints] | None:
        """Split ids that all have the same prefix and canonical numbers."""
        prefix, colon, _ = items[0].as_py().rpartition(b":")
        if len(prefix) < EIGHT or pc.starts_with(items, prefix + colon).true_count < len(items):
            return None
        offsets: Offsets = np.frombuffer(items.buffers()[1], offset)[items.offset :][: len(items) + 1]
        numbers = canonical_numbers(items.buffers()[2], offsets, len(prefix) + 1)
        return None if numbers is None else (self._code(prefix), numbers)

    def _apart(self, items: _Array) -> tuple[Ints, Ints]:
        """Split ids of any spelling."""
        offsets = np.frombuffer(items.buffers()[1], np.int64)[items.offset :][: len(items) + 1]
        characters = np.frombuffer(items.buffers()[2] or b"", np.uint8)
        indices, digits = _trailing(characters, offsets[:-1], offsets[1:])
        codes = np.full(len(items), -1, np.int64)
        for count in np.unique(digits[digits > 0]).tolist():
            rows = np.flatnonzero(digits == count)
            codes[rows] = self._codes(items.take(pa.array(rows)), -count - 1)
        return codes, indices

    def _codes(self, items: _Array, stop: int) -> Ints:
        """Number the prefixes that end at that place."""
        prefixes = pc.binary_slice(items, 0, stop).dictionary_encode()
        numbers = np.array([self._code(prefix) for prefix in prefixes.dictionary.to_pylist()], np.int64)
        codes: Ints = numbers[prefixes.indices.to_numpy(zero_copy_only=False)]
        return codes

    def _code(self, prefix: bytes) -> int:
        return self._known.setdefault(prefix, len(self._known))


def _flags(mask: _Array) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
    return flags


def _numbers(tails: _Array) -> tuple[Ints, _Array | None]:
    """Read what follows a prefix.

    Args:
        tails: the texts, cut after ``MOST`` + 1 characters.

    Returns:
        The numbers, and which texts are canonical: at most ten digits, without a needless zero. None stands
        for all of them; otherwise the numbers are those of the canonical ones.
    """
    numbers = _all_canonical(tails)
    if numbers is not None:
        return numbers, None
    good = pc.match_substring_regex(tails, _CANONICAL)
    return _cast(tails.filter(good)), good


def _all_canonical(tails: _Array) -> Ints | None:
    """The numbers, if all texts are canonical: a fraction of the time that a pattern takes."""
    lengths = pc.min_max(pc.binary_length(tails)).as_py()
    if not 1 <= lengths["min"] <= lengths["max"] <= MOST:
        return None
    characters = np.frombuffer(tails.buffers()[2], np.uint8)
    if characters.min() < _ZERO or characters.max() > _NINE:
        return None
    numbers = _cast(tails)
    # A number never has more digits than its text: if there are as many in all, no text begins with a zero.
    needed = len(tails) + sum(int(np.count_nonzero(numbers >= 10**n)) for n in range(1, lengths["max"]))
    return numbers if needed == len(characters) else None


def _cast(tails: _Array) -> Ints:
    numbers: Ints = tails.view(pa.large_string()).cast(pa.int64()).to_numpy()
    return numbers


def _trailing(text: _Bytes, starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
    """The whole numbers after the last colons, and how many digits they have: 0 where there is no number."""
    values, digits = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    rows, leading = np.arange(len(starts)), np.zeros(len(starts), np.uint8)
    for count in range(MOST + 1):
        rows = rows[stops[rows] - count > starts[rows]]
        if not len(rows):
            break
        characters = text[stops[rows] - count - 1]
        ends = rows[characters == _COLON]
        digits[ends[(leading[ends] != _ZERO) | (count == 1)]] = count
        more = (characters >= _ZERO) & (characters <= _NINE)
        rows, characters = rows[more], characters[more]
        values[rows] += (characters - _ZERO).astype(np.int64) * 10**count
        leading[rows] = characters
    return values, digits
