"""Merges the pages of all tasks: each item once; repeats become rejects. Then lifts whole words.

Instead of a word whose 64 bits are all set, one bit of the word above is written. That goes on up to the
root, so what is left is the minimal cover of the items; of a range it is the same as ``Tree.cover``. The last
word of a level may have fewer than 64 children. It is never whole, so it is written itself, and the ledger
settles it as it settles any other word. Words of a batch with totals are not lifted: its items bring
something, which counts on level 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain, groupby
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.domain import ids
from fanin.domain.tree import Tree
from fanin.spark.ack.coalescer import REPEATED
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import BatchReader, IssuedItems
from fanin.spark.ack.page_builder import PAGE, PAGE_BITS, WORDS, Ints, Words, bitmaps, popcount
from fanin.spark.ack.schemas import MARK_SCHEMA, MARKS, MERGED, merged_records
from fanin.spark.runtime.arrow import ArrowBatches, Task, page
from fanin.spark.runtime.rejects import Reason

WINDOW_BITS: Final = 18
"""A window is what one word of level 2 covers: 262,144 items, 8 pages, 4,096 words of level 0."""
LIFTED: Final = 3
"""From this level up, several windows share a word."""

_FULL: Final = np.uint64(2**64 - 1)
_TREE: Final = Tree()

TopsOf = Callable[[Collection[int]], Mapping[int, int]]


def lift_windows(batch_ids: Ints, windows: Ints, words: Words, tops_of: TopsOf) -> Iterator[ArrowBatches]:
    """Lift the whole words of some windows, as far as level 3.

    Args:
        batch_ids: for each window its batch.
        windows: for each window its number in its batch.
        words: for each window its 4,096 words of level 0; a bit is 1 if its item is acknowledged.
        tops_of: gives for each batch the highest level on which its items may be marked.

    Yields:
        Marks as rows of ``MERGED``; those of level 3 have a bit for each window that is whole.
    """
    levels = tops_of(np.unique(batch_ids).tolist())
    tops = np.array([levels[batch_id] for batch_id in batch_ids.tolist()])[:, None]
    for level in range(LIFTED):
        whole = (words == _FULL) & (tops > level)
        at, column = np.nonzero((words != 0) & ~whole)
        if len(at):
            number = windows[at] * words.shape[1] + column
            yield _marks(batch_ids[at], level, number, words[at, column])
        if level < LIFTED - 1:
            words = np.packbits(whole, axis=1, bitorder="little").view(np.uint64)
    at = np.flatnonzero(whole)
    if len(at):
        yield _marks(
            batch_ids[at], LIFTED, windows[at] >> 6, np.uint64(1) << (windows[at] & 63).astype(np.uint64)
        )


def _marks(batch_ids: Ints, level: int, numbers: Ints, masks: Words) -> ArrowBatches:
    count = len(batch_ids)
    levels = np.full(count, level, np.int32)
    return merged_records(count, batch_id=batch_ids, level=levels, number=numbers, mask=masks.view(np.int64))


def lift_task(batches: BatchReader) -> Task:
    """Make the function of a task that lifts the words of level 3 and above.

    Returns:
        A function that takes ``batch_id``, ``number`` and ``mask`` of words of level 3, with the words of a
        batch next to each other, and gives rows of ``MARKS``.
    """

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        issued = IssuedItems(batches)
        rows = chain.from_iterable(
            zip(*map(pa.Array.to_pylist, record.columns), strict=True) for record in records
        )
        for batch_id, some in groupby(rows, itemgetter(0)):
            words = {number: mask for _, number, mask in some}
            yield page(MARK_SCHEMA, lifted(batch_id, words, issued.top_levels([batch_id])[batch_id]))

    return run


def lifted(batch_id: int, words: Mapping[int, int], top: int) -> list[tuple[int, int, int, int]]:
    """Replace one batch's whole words of level 3 by their bits in the words above, as far as the top.

    Returns:
        Rows of ``MARKS``.
    """
    marks, level = list[tuple[int, int, int, int]](), LIFTED
    while words:
        above: dict[int, int] = {}
        for number, signed in words.items():
            mask = signed & _TREE.full
            if mask == _TREE.full and level < top:
                parent, bit = divmod(number, _TREE.width)
                above[parent] = above.get(parent, 0) | 1 << bit
            else:
                marks.append((batch_id, level, number, mask - (mask >> 63 << 64)))
        words, level = above, level + 1
    return marks


_PAGES: Final = 1 << WINDOW_BITS - PAGE_BITS
_AT_ONCE: Final = 512


class _Merged(NamedTuple):
    """Pages, each once, in order.

    Attributes:
        batch_ids: for each page its batch.
        numbers: for each page its number.
        items: for each page its words; a bit is 1 if its item is acknowledged or failed.
        failed: likewise; a bit is 1 if its item failed.
    """

    batch_ids: Ints
    numbers: Ints
    items: Words
    failed: Words

    def part(self, rows: slice) -> _Merged:
        return _Merged(self.batch_ids[rows], self.numbers[rows], self.items[rows], self.failed[rows])


def merge_task(batches: BatchReader, schema: InputSchema) -> Task:
    """Make the function of a task that merges.

    Returns:
        A function that takes rows of ``PAGES`` and gives rows of ``MERGED``. All pages of a window must be in
        one partition, ordered by batch and page, and pages of failed items must come first.
    """

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        merger = _Merger(IssuedItems(batches), schema)
        for record in records:
            for first in range(0, record.num_rows, _AT_ONCE):
                yield from merger.add(record.slice(first, _AT_ONCE))
        yield from merger.finish()

    return run


class _Merger:
    def __init__(self, issued: IssuedItems, schema: InputSchema) -> None:
        self._tops_of, self._schema = issued.top_levels, schema
        empty, none = np.zeros(0, np.int64), np.zeros((0, WORDS), np.uint64)
        self._rest = _Merged(empty, empty, none, none)

    def add(self, record: ArrowBatches) -> Iterator[ArrowBatches]:
        """Merge some rows; a window comes out when the next one begins."""
        bits = record.column("bits")
        if bits.null_count:
            others = record.filter(bits.is_null())
            yield merged_records(
                others.num_rows, **{n: others.column(n) for n in ("value", "reason", "detail", "rows")}
            )
            record = record.filter(bits.is_valid())
        if not record.num_rows:
            return
        rest = self._rest
        batch_ids = np.concatenate([rest.batch_ids, record.column("batch_id").to_numpy()])
        numbers = np.concatenate([rest.numbers, record.column("page").to_numpy()])
        new = bitmaps(record.column("bits").to_pylist())
        items = np.concatenate([rest.items, new])
        failed = record.column("failed").to_numpy(zero_copy_only=False)
        starts = np.flatnonzero(_changes(batch_ids, numbers))
        merged = items
        if len(starts) < len(items):  # otherwise each page is there once, and there is nothing to join
            merged = np.bitwise_or.reduceat(items, starts, axis=0)
            seen = np.add.reduceat(_counts(items), starts)
            prefixes = [None] * len(rest.numbers) + record.column("value").to_pylist()
            for at in np.flatnonzero(seen != _counts(merged)).tolist():
                stop = starts[at + 1] if at + 1 < len(starts) else len(items)
                group = slice(int(starts[at]), int(stop))
                yield from self._repeats(
                    int(batch_ids[group][0]), int(numbers[group][0]), items[group], prefixes[group]
                )
        failures = np.zeros_like(merged)
        if failed.any() or rest.failed.any():
            failures = np.concatenate([rest.failed, new * failed[:, None].astype(np.uint64)])
            failures = np.bitwise_or.reduceat(failures, starts, axis=0)
        pages = _Merged(batch_ids[starts], numbers[starts], merged, failures)
        last = np.flatnonzero(_changes(pages.batch_ids, pages.numbers // _PAGES))[-1]
        self._rest = pages.part(slice(last, None))
        yield from self._lift(pages.part(slice(last)))

    def finish(self) -> Iterator[ArrowBatches]:
        """Give the last window."""
        yield from self._lift(self._rest)

    def _repeats(
        self, batch_id: int, number: int, rows: Words, prefixes: list[str | None]
    ) -> Iterator[ArrowBatches]:
        """Give as rejects the items of one page that several of its rows have."""
        before = rows[0].copy()
        for row, prefix in zip(rows[1:], prefixes[1:], strict=True):
            again = before & row
            before |= row
            offsets = np.flatnonzero(np.unpackbits(again.view(np.uint8), bitorder="little"))
            if not len(offsets):
                continue
            ordinals = (offsets + number * PAGE).tolist()
            if prefix is None:
                values = [self._schema.row_json(batch_id, ordinal) for ordinal in ordinals]
            else:
                values = [f"{prefix}:{ordinal - _first(prefix)}" for ordinal in ordinals]
            count = len(values)
            reasons, details = [Reason.DUPLICATE] * count, [REPEATED] * count
            yield merged_records(count, value=values, reason=reasons, detail=details)

    def _lift(self, pages: _Merged) -> Iterator[ArrowBatches]:
        if not len(pages.numbers):
            return
        windows = pages.numbers // _PAGES
        new = _changes(pages.batch_ids, windows)
        starts = np.flatnonzero(new)
        words = np.zeros((len(starts), _PAGES, WORDS), np.uint64)
        words[np.cumsum(new) - 1, pages.numbers % _PAGES] = pages.items & ~pages.failed
        flat = words.reshape(len(starts), -1)
        yield from lift_windows(pages.batch_ids[starts], windows[starts], flat, self._tops_of)


@lru_cache(maxsize=1024)
def _first(prefix: str) -> int:
    return ids.parse_prefix(prefix).first


def _changes(*keys: Ints) -> npt.NDArray[np.bool_]:
    """Mark the rows whose keys differ from those of the row before."""
    new = np.ones(len(keys[0]), bool)
    new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return new


def _counts(words: Words) -> Ints:
    counts: Ints = popcount(words).sum(axis=1, dtype=np.int64)
    return counts


def merge(pages: DataFrame, schema: InputSchema, batches: BatchReader) -> DataFrame:
    """Merge ``PAGES`` to ``MERGED``: each word in one task."""
    window = F.shiftright("page", WINDOW_BITS - PAGE_BITS)
    partitioned = pages.repartition("batch_id", window)
    ordered = partitioned.sortWithinPartitions("batch_id", "page", F.col("failed").desc())
    return ordered.mapInArrow(merge_task(batches, schema), MERGED)


def lift(merged: DataFrame, batches: BatchReader) -> DataFrame:
    """Make ``MARKS`` of ``MERGED``, each word once: the minimal cover of the acknowledged items."""
    columns = ["batch_id", "level", "number", "mask"]
    low = merged.where(f"mask IS NOT NULL AND level < {LIFTED}").select(columns)
    bits_above = merged.where(f"level = {LIFTED}").groupBy("batch_id", "number")
    above = bits_above.agg(F.expr("bit_or(mask)").alias("mask")).repartition("batch_id")
    high = above.sortWithinPartitions("batch_id").mapInArrow(lift_task(batches), MARKS)
    return low.unionByName(high)
