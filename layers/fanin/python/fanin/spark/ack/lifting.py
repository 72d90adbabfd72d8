"""The minimal cover of a set of items: partial words, and one bit of the parent for every whole word.

For a range the same as ``Tree.cover``. A word of which all 64 bits are acknowledged is not written:
its bit in the word above is, and so on up to the root. The last word of a level that has fewer children is
not whole; it is written, and settles by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from fanin.domain.tree import Mark, Tree
from fanin.spark.ack.containers import Words
from fanin.spark.ack.input_schema import Records, marks_of, merged_of
from fanin.spark.ack.issued import Batches, Issued
from fanin.spark.ack.page_builder import Ints

WINDOW_BITS: Final = 18
"""A window is what a word of level 2 covers: 262,144 items, 8 pages, 4,096 words of level 0."""
LIFTED: Final = 3
"""Of this level and above, words are shared by windows."""

_FULL: Final = np.uint64(2**64 - 1)
_TREE: Final = Tree()

RootOf = Callable[[int], int]


def cover(batch_ids: Ints, windows: Ints, words: Words, root_of: RootOf) -> Iterator[Records]:
    """Cover the items of some windows.

    Args:
        batch_ids: of each window.
        windows: their numbers in their batches.
        words: for each the 4,096 words of level 0; bit = 1 for an item of the set.
        root_of: tells the level of a batch's root.

    Yields:
        Marks as ``MERGED``; of level 3 the bits of windows that are whole.
    """
    levels = {batch_id: root_of(batch_id) for batch_id in np.unique(batch_ids).tolist()}
    roots = np.array([levels[batch_id] for batch_id in batch_ids.tolist()])[:, None]
    for level in range(LIFTED):
        whole = (words == _FULL) & (roots > level)
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


def _marks(batch_ids: Ints, level: int, numbers: Ints, masks: Words) -> Records:
    many = len(batch_ids)
    levels = np.full(many, level, np.int32)
    return merged_of(many, batch_id=batch_ids, level=levels, number=numbers, mask=masks.view(np.int64))


def cover_upper(batches: Batches) -> Callable[[Iterable[Records]], Iterator[Records]]:
    """The function of a task that covers the words of level 3 and above.

    Returns:
        Takes ``batch_id``, ``number`` and ``mask`` of level 3, all words of a batch in a row; gives
        ``MARKS``.
    """

    def run(records: Iterable[Records]) -> Iterator[Records]:
        issued = Issued(batches)
        batch_id, words = -1, dict[int, int]()
        for record in records:
            for other, number, mask in zip(*(c.to_pylist() for c in record.columns[:3]), strict=True):
                if other != batch_id:
                    yield from _upper(batch_id, words, issued.root_level)
                    batch_id, words = other, {}
                words[number] = mask & _TREE.full
        yield from _upper(batch_id, words, issued.root_level)

    return run


def _upper(batch_id: int, words: Mapping[int, int], root_of: RootOf) -> Iterator[Records]:
    if not words:
        return
    marks = list(lift(words, LIFTED, root_of(batch_id)))
    signed = [mark.mask - (mark.mask >> 63 << 64) for mark in marks]
    yield marks_of(
        len(marks),
        batch_id=[batch_id] * len(marks),
        level=[mark.level for mark in marks],
        number=[mark.number for mark in marks],
        mask=pa.array(signed, pa.int64()),
    )


def lift(words: Mapping[int, int], level: int, root: int) -> Iterator[Mark]:
    """Cover one batch's words of a level: whole ones by their bit in the word above, up to the root."""
    while words:
        above: dict[int, int] = {}
        for number, mask in words.items():
            if mask == _TREE.full and level < root:
                parent, bit = divmod(number, _TREE.width)
                above[parent] = above.get(parent, 0) | 1 << bit
            else:
                yield Mark(level, number, mask)
        words, level = above, level + 1
