"""Item ids as Arrow text, parsed by a task in numpy; ``sql_items`` does the same in SQL."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fanin.spark.ack.page_builder import Ints

_DIGITS: Final = 10
_ZERO, _NINE, _COLON = b"09:"

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

    Args:
        items: an array of text, without nulls.
    """
    items = items.cast(pa.large_binary())
    offsets = np.frombuffer(items.buffers()[1], np.int64)[items.offset :][: len(items) + 1]
    data = items.buffers()[2]
    characters = np.frombuffer(data or b"", np.uint8)
    indices, digits = _trailing(characters, offsets[:-1], offsets[1:])
    codes = np.full(len(items), -1, np.int64)
    known: dict[bytes, int] = {}
    for count in np.unique(digits[digits > 0]).tolist():
        rows = np.flatnonzero(digits == count)
        some = items if len(rows) == len(items) else items.take(pa.array(rows))
        prefixes = pc.binary_slice(some.cast(pa.binary()), 0, -count - 1).dictionary_encode()
        numbers = [known.setdefault(prefix, len(known)) for prefix in prefixes.dictionary.to_pylist()]
        codes[rows] = np.array(numbers, np.int64)[prefixes.indices.to_numpy(zero_copy_only=False)]
    return Parsed([prefix.decode(errors="replace") for prefix in known], codes, indices)


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
