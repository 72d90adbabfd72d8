"""The kernel in numpy: what a task makes of its acknowledgements before anything is shuffled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fanin.spark.ack.containers import AT_ONCE, PAGE, PAGE_BITS, SPARSE, containers

ROOM: Final = 1 << 27
"""Items that a builder has flags for at most: a byte each, and one more for ordinals that wait."""
_DENSE: Final = 256
"""Ordinals spread thinner than one in so many are sorted; it costs more to look through their flags."""
_WORTH: Final = 1 << 12
"""So many ordinals of one key in a chunk are worth flags of their own."""
_DUE: Final = 8
"""Ordinals wait until there is one for so many flags, which are then gone through in order."""
_SLICE: Final = 1 << 14
"""Ordinals that are flagged at a time, so few that the core's cache holds them."""

Ints: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = tuple[Ints, Ints]
"""Keys and ordinals."""


class Page(NamedTuple):
    """The items of one page that a task has seen under one key.

    Attributes:
        key: whose they are.
        number: ordinal of the first item / 32,768.
        bits: a container.
    """

    key: int
    number: int
    bits: bytes


@dataclass
class _Window:
    """Flags of consecutive items of one key, from the start of a page.

    Attributes:
        key: whose they are.
        base: the first item.
        flags: one for an item.
        waiting: items to flag, less the base; many: of them.
    """

    key: int
    base: int
    flags: npt.NDArray[np.bool_]
    waiting: list[npt.NDArray[np.int32]] = field(default_factory=list)
    many: int = 0

    def holds(self, low: int, high: int) -> bool:
        return self.base <= low and high < self.base + len(self.flags)

    def add(self, ordinals: Ints) -> Iterator[Rows]:
        self.waiting.append((ordinals - self.base).astype(np.int32))
        self.many += len(ordinals)
        if self.many * _DUE >= len(self.flags):
            yield from self.settle()

    def settle(self) -> Iterator[Rows]:
        """Flag what waits, in order: to sort takes less time than to go here and there in memory."""
        if not self.waiting:
            return
        items = np.concatenate(self.waiting)
        self.waiting, self.many = [], 0
        items.sort()
        for first in range(0, len(items), _SLICE):
            some = items[first : first + _SLICE].astype(np.int64)
            again = self.flags.take(some)
            again[1:] |= some[1:] == some[:-1]
            self.flags[some] = True
            if again.any():
                repeats = some[again] + self.base
                yield np.full(len(repeats), self.key), repeats


class PageBuilder:
    """Makes pages of ordinals in any order, within bounded memory.

    Where a key's ordinals are dense, each sets a flag in an array, which is packed at the end or when there
    is no more room; others are sorted chunk by chunk. So a page may come out more than once.

    What gives repeats does its work while it is iterated.

    Args:
        room: items that it has flags for at a time.
    """

    def __init__(self, *, room: int = ROOM) -> None:
        self._most = room // PAGE * PAGE
        self._windows: dict[int, _Window] = {}
        self._ready: list[Page] = []

    def add(self, keys: Ints | int, ordinals: Ints) -> Iterator[Rows]:
        """Take a chunk, best of a million.

        Args:
            keys: of each ordinal, or one for all of them.
            ordinals: from 0.

        Yields:
            The repeats that are known by now: all but one of each ordinal that was there before, save in a
            page that has already come out.
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
        """Let all pages come out; gives the rest of the repeats."""
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
        yield from window.add(ordinals)

    def _place(self, low: int, high: int) -> tuple[int, int]:
        """Base and size of a window with the items from low to high, and an eighth more on either side."""
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
        """Pages of ordinals that are few, or far apart; of a single key they are sorted much faster."""
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
