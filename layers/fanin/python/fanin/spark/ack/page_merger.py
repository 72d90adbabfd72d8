"""Merges the pages of all tasks: each item once, and what is there more than once told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fanin.domain import ids
from fanin.spark.ack.coalescer import TWICE
from fanin.spark.ack.containers import PAGE, PAGE_BITS, WORDS, Words, bitmaps, popcount
from fanin.spark.ack.input_schema import Form, Records, merged_of
from fanin.spark.ack.issued import Batches, Issued
from fanin.spark.ack.lifting import WINDOW_BITS, cover
from fanin.spark.ack.page_builder import Ints
from fanin.spark.runtime.rejects import Reason

_PAGES: Final = 1 << WINDOW_BITS - PAGE_BITS
_AT_ONCE: Final = 512


class _Merged(NamedTuple):
    """Pages, each once, in order.

    Attributes:
        batch_ids: of each page.
        numbers: of each page.
        items: words of 64 items of the page, acknowledged or failed.
        failed: those that failed.
    """

    batch_ids: Ints
    numbers: Ints
    items: Words
    failed: Words

    def part(self, rows: slice) -> _Merged:
        return _Merged(self.batch_ids[rows], self.numbers[rows], self.items[rows], self.failed[rows])


def merge(batches: Batches, form: Form) -> Callable[[Iterable[Records]], Iterator[Records]]:
    """The function of a task that merges.

    Returns:
        Takes ``PAGES``, all pages of a window in one partition, in order of batch and page, those of failed
        items first; gives ``MERGED``.
    """

    def run(records: Iterable[Records]) -> Iterator[Records]:
        merger = _Merger(Issued(batches), form)
        for record in records:
            for first in range(0, record.num_rows, _AT_ONCE):
                yield from merger.add(record.slice(first, _AT_ONCE))
        yield from merger.finish()

    return run


class _Merger:
    def __init__(self, issued: Issued, form: Form) -> None:
        self._root_of, self._form = issued.root_level, form
        empty, none = np.zeros(0, np.int64), np.zeros((0, WORDS), np.uint64)
        self._rest = _Merged(empty, empty, none, none)

    def add(self, record: Records) -> Iterator[Records]:
        """Merge some rows; windows come out when the next begins."""
        bits = record.column("bits")
        if bits.null_count:
            others = record.filter(bits.is_null())
            yield merged_of(
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
        merged = np.bitwise_or.reduceat(items, starts, axis=0)
        seen = np.add.reduceat(_counts(items), starts)
        prefixes = [None] * len(rest.numbers) + record.column("value").to_pylist()
        for at in np.flatnonzero(seen != _counts(merged)).tolist():
            stop = starts[at + 1] if at + 1 < len(starts) else len(items)
            group = slice(int(starts[at]), int(stop))
            yield from self._repeats(
                int(batch_ids[group][0]), int(numbers[group][0]), items[group], prefixes[group]
            )
        failures = np.concatenate([rest.failed, new * failed[:, None].astype(np.uint64)])
        failures = np.bitwise_or.reduceat(failures, starts, axis=0)
        pages = _Merged(batch_ids[starts], numbers[starts], merged, failures)
        last = np.flatnonzero(_changes(pages.batch_ids, pages.numbers // _PAGES))[-1]
        self._rest = pages.part(slice(last, None))
        yield from self._cover(pages.part(slice(last)))

    def finish(self) -> Iterator[Records]:
        """Give the last window."""
        yield from self._cover(self._rest)

    def _repeats(
        self, batch_id: int, number: int, rows: Words, prefixes: list[str | None]
    ) -> Iterator[Records]:
        """What the rows of one page have that one before had."""
        before = rows[0].copy()
        for row, prefix in zip(rows[1:], prefixes[1:], strict=True):
            again = before & row
            before |= row
            offsets = np.flatnonzero(np.unpackbits(again.view(np.uint8), bitorder="little"))
            if not len(offsets):
                continue
            ordinals = (offsets + number * PAGE).tolist()
            if prefix is None:
                values = [self._form.value(batch_id, ordinal) for ordinal in ordinals]
            else:
                values = [f"{prefix}:{ordinal - _first(prefix)}" for ordinal in ordinals]
            many = len(values)
            yield merged_of(many, value=values, reason=[Reason.DUPLICATE] * many, detail=[TWICE] * many)

    def _cover(self, pages: _Merged) -> Iterator[Records]:
        if not len(pages.numbers):
            return
        windows = pages.numbers // _PAGES
        new = _changes(pages.batch_ids, windows)
        starts = np.flatnonzero(new)
        words = np.zeros((len(starts), _PAGES, WORDS), np.uint64)
        words[np.cumsum(new) - 1, pages.numbers % _PAGES] = pages.items & ~pages.failed
        flat = words.reshape(len(starts), -1)
        yield from cover(pages.batch_ids[starts], windows[starts], flat, self._root_of)


@lru_cache(maxsize=1024)
def _first(prefix: str) -> int:
    return ids.parse_prefix(prefix).first


def _changes(*keys: Ints) -> npt.NDArray[np.bool_]:
    """Where a key differs from that of the row before."""
    new = np.ones(len(keys[0]), bool)
    new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return new


def _counts(words: Words) -> Ints:
    counts: Ints = popcount(words).sum(axis=1, dtype=np.int64)
    return counts
