"""Builds pages of bits from ordinals, in numpy: what a task does before anything is shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fanin.spark.ack.containers import AT_ONCE, PAGE, PAGE_BITS, SPARSE, containers, popcount

ROOM: Final = 1 << 27
"""Items that a builder has flags for at most; each takes a byte, and waiting ordinals take as much again."""
_DENSE: Final = 256
"""Ordinals spread more thinly than one in so many items are sorted; going through their flags costs more."""
_WORTH: Final = 1 << 12
"""A key with at least so many ordinals in a chunk gets flags of its own."""
_DUE: Final = 8
"""Ordinals wait until there is one for every so many flags; counting these then takes little for each."""
_SLICE: Final = 1 << 14
"""Ordinals that are flagged at once: few enough for the core's cache."""

Ints: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = tuple[Ints, Ints]
"""Keys and ordinals, as two arrays of one length."""


class Page(NamedTuple):
    """The items of one page that a task has seen under one key.

    Attributes:
        key: whose items they are.
        number: the first item's ordinal divided by 32,768.
        bits: a container, see ``containers``.
    """

    key: int
    number: int
    bits: bytes


@dataclass
class _Window:
    """Flags of consecutive items of one key, beginning at the start of a page.

    Attributes:
        key: whose items they are.
        base: ordinal of the first item.
        flags: one for each item.
        waiting: arrays of items to flag, counted from the base.
        count: items that wait.
    """

    key: int
    base: int
    flags: npt.NDArray[np.bool_]
    waiting: list[npt.NDArray[np.int32]] = field(default_factory=list)
    count: int = 0

    def holds(self, low: int, high: int) -> bool:
        return self.base <= low and high < self.base + len(self.flags)

    def add(self, ordinals: Ints) -> Iterator[Rows]:
        self.waiting.append(np.subtract(ordinals, self.base, dtype=np.int32, casting="unsafe"))
        self.count += len(ordinals)
        if self.count * _DUE >= len(self.flags):
            yield from self.settle()

    def add_run(self, low: int, high: int) -> Iterator[Rows]:
        """Flag consecutive items at once."""
        part = self.flags[low - self.base : high + 1 - self.base]
        if part.any():
            repeats = np.flatnonzero(part) + low
            yield np.full(len(repeats), self.key), repeats
        part[:] = True

    def settle(self) -> Iterator[Rows]:
        """Flag what waits. There are as many more flags as items, unless some of these are repeats."""
        waiting, count = self.waiting, self.count
        if not count:
            return
        self.waiting, self.count = [], 0
        before = np.packbits(self.flags)
        for items in waiting:
            for first in range(0, len(items), _SLICE):
                self.flags[items[first : first + _SLICE].astype(np.intp)] = True
        flagged = int(popcount(before.view(np.uint64)).sum(dtype=np.int64))
        if np.count_nonzero(self.flags) - flagged != count:
            self.flags[:] = np.unpackbits(before)
            for items in waiting:
                yield from self._repeats(items)

    def _repeats(self, items: npt.NDArray[np.int32]) -> Iterator[Rows]:
        """Flag items, and give those that have their flag already."""
        for first in range(0, len(items), _SLICE):
            some = np.sort(items[first : first + _SLICE]).astype(np.intp)
            again = self.flags.take(some)
            again[1:] |= some[1:] == some[:-1]
            self.flags[some] = True
            if again.any():
                repeats = some[again] + self.base
                yield np.full(len(repeats), self.key), repeats


class PageBuilder:
    """Makes pages of ordinals in any order, within bounded memory.

    Dense ordinals of a key set flags in an array, which is packed at the end or when memory is full; sparse
    ones are sorted chunk by chunk. So a page may come out more than once.

    Methods that give repeats work while they are iterated: iterate them to the end.

    Args:
        room: items that it has flags for at once.
    """

    def __init__(self, *, room: int = ROOM) -> None:
        self._most = room // PAGE * PAGE
        self._windows: dict[int, _Window] = {}
        self._ready: list[Page] = []

    def add(self, keys: Ints | int, ordinals: Ints) -> Iterator[Rows]:
        """Take a chunk, at best of a million ordinals.

        Args:
            keys: the key of each ordinal, or one key for all of them.
            ordinals: 0 or more.

        Yields:
            The repeats found so far: every occurrence of an ordinal but one. A repeat of an ordinal whose
            page has already come out is not found here, but by the merge.
        """
        if isinstance(keys, int):
            yield from self._add(keys, ordinals)
            return
        order = np.argsort(keys, kind="stable")
        keys, ordinals = keys[order], ordinals[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        lengths = np.diff(starts, append=len(keys))
        rest = np.ones(len(keys), bool)
        for at in np.flatnonzero(lengths >= _WORTH).tolist():
            part = slice(starts[at], starts[at] + lengths[at])
            rest[part] = False
            yield from self._add(int(keys[starts[at]]), ordinals[part])
        yield from self._sort(keys[rest], ordinals[rest])

    def take(self) -> list[Page]:
        """The pages that have come out since the last call."""
        ready, self._ready = self._ready, []
        return ready

    def flush(self) -> Iterator[Rows]:
        """Finish all pages, and give the remaining repeats."""
        for key in list(self._windows):
            yield from self._close(key)

    def _add(self, key: int, ordinals: Ints) -> Iterator[Rows]:
        if not len(ordinals):
            return
        low, high = int(ordinals.min()), int(ordinals.max())
        window = self._windows.get(key)
        if not window or not window.holds(low, high):
            if high - low // PAGE * PAGE >= self._most or high - low >= len(ordinals) * _DENSE:
                yield from self._sort(np.full(len(ordinals), key, np.int64), ordinals, single=True)
                return
            yield from self._close(key)
            base, size = self._place(low, high)
            if sum(len(window.flags) for window in self._windows.values()) + size > self._most:
                yield from self.flush()
            window = self._windows[key] = _Window(key, base, np.zeros(size, bool))
        # As many as lie between the lowest and the highest: they follow each other if they ascend.
        if high - low == len(ordinals) - 1 and (ordinals[1:] > ordinals[:-1]).all():
            yield from window.add_run(low, high)
        else:
            yield from window.add(ordinals)

    def _place(self, low: int, high: int) -> tuple[int, int]:
        """Base and size of a window for the items from low to high, and an eighth to spare on either side."""
        spare = (high - low) // 8
        base = max(0, low - spare) // PAGE * PAGE
        if high - base >= self._most:
            base = low // PAGE * PAGE
        return base, min(self._most, -(-(high + 1 + spare - base) // PAGE) * PAGE)

    def _close(self, key: int) -> Iterator[Rows]:
        window = self._windows.pop(key, None)
        if not window:
            return
        yield from window.settle()
        for at in range(0, len(window.flags) // PAGE, AT_ONCE):
            some = window.flags[at * PAGE : (at + AT_ONCE) * PAGE]
            for number, bits in containers(some):
                self._ready.append(Page(key, window.base // PAGE + at + number, bits))

    def _sort(self, keys: Ints, ordinals: Ints, *, single: bool = False) -> Iterator[Rows]:
        """Make pages of few or sparse ordinals; those of a single key are sorted much faster."""
        if not len(ordinals):
            return
        if single:
            ordinals = np.sort(ordinals)
        else:
            order = np.lexsort((ordinals, keys))
            keys, ordinals = keys[order], ordinals[order]
        again = np.zeros(len(keys), bool)
        again[1:] = (ordinals[1:] == ordinals[:-1]) & (keys[1:] == keys[:-1])
        if again.any():
            yield keys[again], ordinals[again]
        keys, ordinals = keys[~again], ordinals[~again]
        numbers = ordinals >> PAGE_BITS
        new = np.ones(len(keys), bool)
        new[1:] = (numbers[1:] != numbers[:-1]) | (keys[1:] != keys[:-1])
        starts = np.flatnonzero(new)
        stops = np.append(starts[1:], len(keys))
        offsets = (ordinals & PAGE - 1).astype("<u2")
        heads = zip(
            keys[starts].tolist(), numbers[starts].tolist(), starts.tolist(), stops.tolist(), strict=True
        )
        for key, number, start, stop in heads:
            bits = offsets[start:stop]
            if stop - start >= SPARSE:
                flags = np.zeros(PAGE, bool)
                flags[bits] = True
                bits = np.packbits(flags, bitorder="little")
            self._ready.append(Page(key, number, bits.tobytes()))
