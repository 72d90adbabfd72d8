"""Item ids as Arrow text, parsed by a task in numpy; ``sql_items`` does the same in SQL."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fanin.spark.ack.page_builder import Ints

_DIGITS: Final = 10
_CANONICAL: Final = rf"\A(?:0|[1-9][0-9]{{0,{_DIGITS - 1}}})\z"
_ZERO, _NINE, _COLON = b"09:"
_LENGTHS: Final = 8
"""Lengths of prefixes that are tried, each that of a row which is left."""

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_Array: TypeAlias = Any
"""An Arrow array; pyarrow has no type annotations."""


class Parsed(NamedTuple):
    """Item ids, split at their last colon.

    Attributes:
        prefixes: each prefix once, as text.
        codes: for each id the position of its prefix in ``prefixes``; -1 if the id does not end in a whole
            number.
        indices: for each id the number that it ends in.
    """

    prefixes: list[str]
    codes: Ints
    indices: Ints


def parse(items: _Array) -> Parsed:
    """Split ids at their last colon.

    Prefixes mostly have the same length, and many datasets have only one. So all rows are cut behind the
    colon of one of them, and the rest is cast at once. Rows where that is not a canonical number are looked
    at character by character.

    Args:
        items: an array of text, without nulls.
    """
    items = items.cast(pa.large_binary())
    codes, indices = np.full(len(items), -1, np.int64), np.zeros(len(items), np.int64)
    known: dict[bytes, int] = {}
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
        numbers, good = _numbers(pc.binary_slice(texts, start, start + _DIGITS + 1))
        if good is not None:
            odd.append(cut[~_flags(good)])
            cut, texts = cut[_flags(good)], texts.filter(good)
        indices[cut] = numbers
        if len(cut):
            codes[cut] = known.setdefault(prefix, len(known)) if alone else _codes(texts, len(prefix), known)
    left = np.sort(np.concatenate([*odd, rows]))
    if len(left):
        codes[left], indices[left] = _apart(items.take(pa.array(left)), known)
    return Parsed([prefix.decode(errors="replace") for prefix in known], codes, indices)


def _flags(mask: _Array) -> npt.NDArray[np.bool_]:
    flags: npt.NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
    return flags


def _codes(items: _Array, stop: int, known: dict[bytes, int]) -> Ints:
    """Number the prefixes that end there, and remember new ones."""
    prefixes = pc.binary_slice(items, 0, stop).dictionary_encode()
    numbers = [known.setdefault(prefix, len(known)) for prefix in prefixes.dictionary.to_pylist()]
    codes: Ints = np.array(numbers, np.int64)[prefixes.indices.to_numpy(zero_copy_only=False)]
    return codes


def _numbers(tails: _Array) -> tuple[Ints, _Array | None]:
    """Read what follows a prefix.

    Args:
        tails: the texts, cut after ``_DIGITS`` + 1 characters.

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
    if not 1 <= lengths["min"] <= lengths["max"] <= _DIGITS:
        return None
    characters = np.frombuffer(tails.buffers()[2], np.uint8)
    if characters.min() < _ZERO or characters.max() > _NINE:
        return None
    numbers = _cast(tails)
    # A number never has more digits than its text. So if there are as many in all, no text begins with a zero.
    needed = len(tails) + sum(int(np.count_nonzero(numbers >= 10**n)) for n in range(1, lengths["max"]))
    return numbers if needed == len(characters) else None


def _cast(tails: _Array) -> Ints:
    numbers: Ints = tails.view(pa.large_string()).cast(pa.int64()).to_numpy()
    return numbers


def _apart(items: _Array, known: dict[bytes, int]) -> tuple[Ints, Ints]:
    """Split ids of any spelling at their last colons."""
    offsets = np.frombuffer(items.buffers()[1], np.int64)[items.offset :][: len(items) + 1]
    characters = np.frombuffer(items.buffers()[2] or b"", np.uint8)
    indices, digits = _trailing(characters, offsets[:-1], offsets[1:])
    codes = np.full(len(items), -1, np.int64)
    for count in np.unique(digits[digits > 0]).tolist():
        rows = np.flatnonzero(digits == count)
        codes[rows] = _codes(items.take(pa.array(rows)), -count - 1, known)
    return codes, indices


def _trailing(text: _Bytes, starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
    """The whole numbers after the last colons, and how many digits they have: 0 where there is no number."""
    values, digits = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    rows, leading = np.arange(len(starts)), np.zeros(len(starts), np.uint8)
    for count in range(_DIGITS + 1):
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
