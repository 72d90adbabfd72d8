"""Merges the pages of all tasks: each item once; repeats become rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fanin.domain import ids
from fanin.spark.ack.coalescer import REPEATED
from fanin.spark.ack.containers import PAGE, PAGE_BITS, WORDS, Words, bitmaps, popcount
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import BatchReader, IssuedItems
from fanin.spark.ack.lifting import WINDOW_BITS, lift_windows
from fanin.spark.ack.page_builder import Ints
from fanin.spark.ack.schemas import merged_records
from fanin.spark.runtime.arrow import ArrowBatches
from fanin.spark.runtime.rejects import Reason

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


def merge_task(
    batches: BatchReader, schema: InputSchema
) -> Callable[[Iterable[ArrowBatches]], Iterator[ArrowBatches]]:
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
