"""Lifts whole words: instead of a word whose 64 bits are all set, one bit of the word above is written.

That goes on up to the root, so what is left is the minimal cover of the items; of a range it is the same as
``Tree.cover``. The last word of a level may have fewer than 64 children. It is never whole, so it is written
itself, and the ledger settles it as it settles any other word. Words of a batch with totals are not lifted:
its items bring something, which counts on level 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from fanin.domain.tree import Bits, Tree
from fanin.spark.ack.containers import Words
from fanin.spark.ack.issued import BatchReader, IssuedItems
from fanin.spark.ack.page_builder import Ints
from fanin.spark.ack.schemas import mark_records, merged_records
from fanin.spark.runtime.arrow import ArrowBatches

WINDOW_BITS: Final = 18
"""A window is what one word of level 2 covers: 262,144 items, 8 pages, 4,096 words of level 0."""
LIFTED: Final = 3
"""From this level up, several windows share a word."""

_FULL: Final = np.uint64(2**64 - 1)
_TREE: Final = Tree()

TopOf = Callable[[int], int]
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


def lift_task(batches: BatchReader) -> Callable[[Iterable[ArrowBatches]], Iterator[ArrowBatches]]:
    """Make the function of a task that lifts the words of level 3 and above.

    Returns:
        A function that takes ``batch_id``, ``number`` and ``mask`` of words of level 3, with the words of a
        batch next to each other, and gives rows of ``MARKS``.
    """

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        issued = IssuedItems(batches)
        batch_id, words = -1, dict[int, int]()
        for record in records:
            for other, number, mask in zip(*(c.to_pylist() for c in record.columns[:3]), strict=True):
                if other != batch_id:
                    yield from _upper(batch_id, words, issued.top_level)
                    batch_id, words = other, {}
                words[number] = mask & _TREE.full
        yield from _upper(batch_id, words, issued.top_level)

    return run


def _upper(batch_id: int, words: Mapping[int, int], top_of: TopOf) -> Iterator[ArrowBatches]:
    if not words:
        return
    marks = list(lift(words, LIFTED, top_of(batch_id)))
    signed = [mark.mask - (mark.mask >> 63 << 64) for mark in marks]
    yield mark_records(
        len(marks),
        batch_id=[batch_id] * len(marks),
        level=[mark.level for mark in marks],
        number=[mark.number for mark in marks],
        mask=pa.array(signed, pa.int64()),
    )


def lift(words: Mapping[int, int], level: int, top: int) -> Iterator[Bits]:
    """Replace one batch's whole words of a level by their bits in the words above, as far as the top."""
    while words:
        above: dict[int, int] = {}
        for number, mask in words.items():
            if mask == _TREE.full and level < top:
                parent, bit = divmod(number, _TREE.width)
                above[parent] = above.get(parent, 0) | 1 << bit
            else:
                yield Bits(level, number, mask)
        words, level = above, level + 1
