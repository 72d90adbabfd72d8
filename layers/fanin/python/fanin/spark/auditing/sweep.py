"""A sweep line in numpy: the union of the cleared bits of thousands of blocks at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from fanin.spark.auditing.sql_tree import TIER

Columns: TypeAlias = dict[str, Any]
"""Column → numpy array; all have the same length."""


class Measured(IntEnum):
    """What a row of ``MEASURE`` is.

    Attributes:
        HULL: the range from the first done item of a block to its last, or a run of done items of a higher
            tier; ``done`` says how many of its items are done.
        GAP: a range of missing items within a hull.
        LOST: a finished word that no word above it knows of: no bit above it is clear.
    """

    HULL = 0
    GAP = 1
    LOST = 2


MEASURE: Final = (
    "part tinyint, batch_id bigint, level int, number bigint, start bigint, stop bigint, done bigint"
)

BLOCK: Final = ("batch_id", "tier", "block")
TAKEN: Final = (*BLOCK, "level", "number", "cleared", "finished", "items")
"""Columns of a word; ``finished`` says that it is done and below the root."""

_SHIFT: Final = 44  # the items of a block, at most 2^42, fit below it


def measure_blocks(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Measure the words of blocks.

    Args:
        pages: columns ``TAKEN``, sorted by ``BLOCK``, in pages of any size.

    Yields:
        Pages of ``MEASURE``, in any order.
    """
    for columns in _whole_blocks(pages):
        yield from _unions(columns)


def _whole_blocks(pages: Iterable[pa.RecordBatch]) -> Iterator[Columns]:
    """Cut a sorted stream of rows between blocks; at most a page and a block are held over."""
    held: Columns | None = None
    for page in pages:
        columns = {name: page.column(name).to_numpy(zero_copy_only=False) for name in TAKEN}
        if held is not None:
            columns = {name: np.concatenate((held[name], column)) for name, column in columns.items()}
        held = columns
        starts = _block_starts(columns)
        if len(starts) > 1:
            cut = starts[-1]
            yield {name: column[:cut] for name, column in columns.items()}
            held = {name: column[cut:] for name, column in columns.items()}
    if held is not None and len(held["level"]):
        yield held


def _block_starts(columns: Columns) -> Any:
    """The rows at which blocks begin."""
    changed = np.ones(len(columns["level"]), bool)
    changed[1:] = False
    for name in BLOCK:
        changed[1:] |= columns[name][1:] != columns[name][:-1]
    return np.flatnonzero(changed)


def _unions(columns: Columns) -> Iterator[pa.RecordBatch]:
    """Measure whole blocks. Each gets a range of one number line, so that all are swept at once."""
    level, tier = columns["level"].astype(np.int64), columns["tier"].astype(np.int64)
    starts = _block_starts(columns)
    block = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(level))))
    size = np.left_shift(np.int64(1), 6 * level)
    first = columns["number"] * (size << 6)
    origin = (block << _SHIFT) - (
        columns["block"] << (6 * TIER * (tier + 1))
    )  # is added to an item, and gives its place on the line
    row, low, high = _runs(columns["cleared"])
    begin = first[row] + low * size[row] + origin[row]
    end = np.minimum(first[row] + high * size[row], columns["items"][row]) + origin[row]
    order = np.argsort(begin, kind="stable")
    row, begin, end = row[order], begin[order], end[order]

    lost = np.flatnonzero(columns["finished"])
    lost = lost[~_below(_Marks(level[row], begin, end), level[lost], (first + origin)[lost])]
    if len(lost):
        yield _page(
            Measured.LOST, columns["batch_id"][lost], level=level[lost], number=columns["number"][lost]
        )
    if not len(begin):
        return
    reach = np.maximum.accumulate(end)
    before = np.append(-1, reach[:-1])
    fresh = np.append(True, begin[1:] >> _SHIFT != begin[:-1] >> _SHIFT)
    gap = (begin > before) & ~fresh
    gain = np.maximum(reach - np.where(fresh, begin, np.maximum(before, begin)), 0)
    lowest = tier[row] == 0

    inner = np.flatnonzero(gap & lowest)
    batch, shift = columns["batch_id"][row], origin[row]
    if len(inner):
        yield _page(
            Measured.GAP, batch[inner], start=before[inner] - shift[inner], stop=begin[inner] - shift[inner]
        )
    piece = np.flatnonzero(fresh | (gap & ~lowest))
    last = np.append(piece[1:], len(begin)) - 1
    yield _page(
        Measured.HULL,
        batch[piece],
        start=begin[piece] - shift[piece],
        stop=reach[last] - shift[piece],
        done=np.add.reduceat(gain, piece),
    )


def _runs(words: Any) -> tuple[Any, Any, Any]:
    """The runs of ones of each word, in order: row of the word, first bit, one past the last bit."""
    octets = np.ascontiguousarray(words, "<i8").view(np.uint8).reshape(-1, 8)
    bits = np.zeros((len(words), 66), np.int8)
    bits[:, 1:65] = np.unpackbits(octets, axis=1, bitorder="little")
    steps = np.diff(bits, axis=1)
    row, low = np.nonzero(steps == 1)
    _, high = np.nonzero(steps == -1)
    return row, low, high


class _Marks(NamedTuple):
    """Cleared runs on the number line, sorted by ``begin``, with the levels of their words."""

    level: Any
    begin: Any
    end: Any


def _below(marks: _Marks, levels: Any, places: Any) -> Any:
    """Which words, given by level and first item, are below a clear bit of a higher word of their block."""
    under = np.zeros(len(levels), bool)
    for level in np.unique(levels):
        higher = marks.level > level
        if not higher.any():
            continue
        reach, ours = np.maximum.accumulate(marks.end[higher]), levels == level
        left = np.searchsorted(marks.begin[higher], places[ours], side="right") - 1
        under[ours] = (left >= 0) & (reach[np.maximum(left, 0)] > places[ours])
    return under


def _page(part: Measured, batch: Any, **columns: Any) -> pa.RecordBatch:
    zeros = np.zeros(len(batch), np.int64)
    return pa.RecordBatch.from_pydict(
        {
            "part": pa.array(np.full(len(batch), part.value, np.int8)),
            "batch_id": pa.array(batch),
            "level": pa.array(columns.get("level", zeros).astype(np.int32)),
            **{name: pa.array(columns.get(name, zeros)) for name in ("number", "start", "stop", "done")},
        }
    )
