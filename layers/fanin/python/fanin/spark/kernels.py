"""The kernel in numpy: what a task makes of its acknowledgements before anything is shuffled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fanin.spark.containers import AT_ONCE, PAGE, PAGE_BITS, SPARSE, containers

ROOM: Final = 1 << 27
"""Items that a builder has flags for at most, at two bytes each."""
_DENSE: Final = 256
"""Ordinals spread thinner than one in so many are sorted; it costs more to look through their flags."""
_WORTH: Final = 1 << 12
"""So many ordinals of one key in a chunk are worth flags of their own."""
_SLICE: Final = 1 << 13
"""So few flags are looked up and set at a time that the core still has them when it looks at them again: then
repeats cost nothing to tell."""
_TAGS: Final = np.arange(1, _SLICE + 1, dtype=np.uint16)

Ints: TypeAlias = npt.NDArray[np.int64]
_Any: TypeAlias = npt.NDArray[Any]


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
        base: the first item.
        flags: one for an item.
        low: the lowest item that is flagged, less the base; high: the highest.
    """

    base: int
    flags: _Any
    low: int
    high: int

    def holds(self, low: int, high: int) -> bool:
        return self.base <= low and high < self.base + len(self.flags)


class PageBuilder:
    """Makes pages of ordinals in any order, within bounded memory.

    Where a key's ordinals are dense, each sets a flag in an array, which is packed at the end or when there
    is no more room; others are sorted chunk by chunk. So a page may come out more than once.

    Args:
        room: items that it has flags for at a time.
    """

    def __init__(self, *, room: int = ROOM) -> None:
        self._most = room // PAGE * PAGE
        self._windows: dict[int, _Window] = {}
        self._ready: list[Page] = []

    def add(self, keys: Ints | int, ordinals: Ints) -> tuple[Ints, Ints]:
        """Take a chunk, best of a million.

        Args:
            keys: of each ordinal, or one for all of them.
            ordinals: from 0.

        Returns:
            Keys and ordinals of the repeats that are known: all but one of each ordinal that was there
            before, save in a page that has already come out.
        """
        if isinstance(keys, int):
            again = self._add(keys, ordinals)
            return np.full(len(again), keys, np.int64), again
        order = np.argsort(keys, kind="stable")
        keys, ordinals = keys[order], ordinals[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        lengths = np.diff(starts, append=len(keys))
        rest = np.ones(len(keys), bool)
        found = []
        for at in np.flatnonzero(lengths >= _WORTH).tolist():
            part = slice(starts[at], starts[at] + lengths[at])
            rest[part] = False
            again = self._add(int(keys[starts[at]]), ordinals[part])
            found.append((np.full(len(again), keys[starts[at]]), again))
        found.append(self._sort(keys[rest], ordinals[rest]))
        return np.concatenate([pair[0] for pair in found]), np.concatenate([pair[1] for pair in found])

    def take(self) -> list[Page]:
        """The pages that have come out since the last call."""
        ready, self._ready = self._ready, []
        return ready

    def flush(self) -> None:
        """Let all pages come out."""
        for key in list(self._windows):
            self._close(key)

    def _add(self, key: int, ordinals: Ints) -> Ints:
        if not len(ordinals):
            return ordinals
        low, high = int(ordinals.min()), int(ordinals.max())
        window = self._windows.get(key)
        if not window or not window.holds(low, high):
            if high - low // PAGE * PAGE >= self._most or high - low >= len(ordinals) * _DENSE:
                return self._sort(np.full(len(ordinals), key, np.int64), ordinals, single=True)[1]
            window = self._open(key, low, high)
        window.low, window.high = min(window.low, low - window.base), max(window.high, high - window.base)
        return np.concatenate(
            [
                self._flag(window, ordinals[first : first + _SLICE])
                for first in range(0, len(ordinals), _SLICE)
            ]
        )

    def _flag(self, window: _Window, ordinals: Ints) -> Ints:
        """Flag some; a repeat finds a flag from before, or that of a later one of the same slice."""
        items, tags = ordinals - window.base, _TAGS[: len(ordinals)]
        before = window.flags.take(items)
        window.flags[items] = tags
        again: Ints = ordinals[(before != 0) | (window.flags.take(items) != tags)]
        return again

    def _open(self, key: int, low: int, high: int) -> _Window:
        """Flags for the items from low to high, and for an eighth more on either side."""
        self._close(key)
        spare = (high - low) // 8
        base = max(0, low - spare) // PAGE * PAGE
        if high - base >= self._most:
            base = low // PAGE * PAGE
        size = min(self._most, -(-(high + 1 + spare - base) // PAGE) * PAGE)
        if sum(len(window.flags) for window in self._windows.values()) + size > self._most:
            self.flush()
        window = self._windows[key] = _Window(base, np.zeros(size, _TAGS.dtype), size, 0)
        return window

    def _close(self, key: int) -> None:
        window = self._windows.pop(key, None)
        if not window or window.low > window.high:
            return
        first, last = window.low // PAGE, window.high // PAGE
        for at in range(first, last + 1, AT_ONCE):
            some = window.flags[at * PAGE : min(last + 1, at + AT_ONCE) * PAGE]
            for number, bits in containers(some != 0):
                self._ready.append(Page(key, window.base // PAGE + at + number, bits))

    def _sort(self, keys: Ints, ordinals: Ints, *, single: bool = False) -> tuple[Ints, Ints]:
        """Pages of ordinals that are few, or far apart; of a single key they are sorted much faster."""
        if not len(ordinals):
            return keys, ordinals
        if single:
            ordinals = np.sort(ordinals)
        else:
            order = np.lexsort((ordinals, keys))
            keys, ordinals = keys[order], ordinals[order]
        again = np.zeros(len(keys), bool)
        again[1:] = (ordinals[1:] == ordinals[:-1]) & (keys[1:] == keys[:-1])
        repeats = (keys[again], ordinals[again])
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
        return repeats
