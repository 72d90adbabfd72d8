"""Builds pages of bits from ordinals, in numpy: what a task does before anything is shuffled.

A *page* is 32,768 consecutive items of a batch. Its bits are in one of two containers, whichever is smaller,
as in Roaring bitmaps (Lemire et al., 2016): a bitmap of 4,096 bytes, whose bit 0 is the lowest of the first
byte; or, for fewer than 2,048 items, their ascending offsets as little-endian 16-bit integers. So a page
takes at most two bytes for an acknowledgement, and much less than one where acknowledgements are dense.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fanin.spark.runtime.arrow import changes

PAGE_BITS: Final = 15
PAGE: Final = 1 << PAGE_BITS
PAGE_BYTES: Final = PAGE // 8
WORDS: Final = PAGE // 64
SPARSE: Final = PAGE_BYTES // 2  # a page of fewer items than this is kept as offsets
AT_ONCE: Final = 512  # pages that are unpacked to flags at once: 16 MiB
Words: TypeAlias = npt.NDArray[np.uint64]


def popcount(words: Words) -> npt.NDArray[Any]:
    """The number of bits in each word."""
    if hasattr(np, "bitwise_count"):
        return np.bitwise_count(words)
    quarters = np.ascontiguousarray(words).view(np.uint16).reshape(*words.shape, 4)
    counts: npt.NDArray[Any] = _counts()[quarters].sum(axis=-1, dtype=np.uint8)
    return counts


@cache
def _counts() -> npt.NDArray[np.uint8]:
    """The bits of each number of 16 bits, for numpy 1, which comes with Spark 3.5."""
    return np.array([n.bit_count() for n in range(1 << 16)], np.uint8)


def containers(flags: npt.NDArray[np.bool_]) -> Iterator[tuple[int, bytes]]:
    """Pack the flags of whole pages; gives the number and the container of each that is not empty."""
    packed = np.packbits(flags, bitorder="little").reshape(-1, PAGE_BYTES)
    for number, count in enumerate(popcount(packed.view(np.uint64)).sum(axis=1, dtype=np.int64).tolist()):
        if count >= SPARSE:
            yield number, packed[number].tobytes()
        elif count:
            page = flags[number * PAGE : (number + 1) * PAGE]
            yield number, np.flatnonzero(page).astype("<u2").tobytes()


def bitmaps(pages: Sequence[bytes | memoryview]) -> Words:
    """Unpack containers to a row of 512 words for each page."""
    dense = [at for at, bits in enumerate(pages) if len(bits) == PAGE_BYTES]
    sparse = [at for at, bits in enumerate(pages) if len(bits) < PAGE_BYTES]
    words = np.zeros((len(pages), WORDS), np.uint64)
    if dense:
        joined = np.frombuffer(b"".join(pages[at] for at in dense), "<u8")
        words[dense] = joined.reshape(-1, WORDS)
    for first in range(0, len(sparse), AT_ONCE):
        some = sparse[first : first + AT_ONCE]
        offsets = np.frombuffer(b"".join(pages[at] for at in some), "<u2").astype(np.int64)
        lengths = [len(pages[at]) // 2 for at in some]
        flags = np.zeros(len(some) * PAGE, bool)
        flags[np.repeat(np.arange(len(some)) * PAGE, lengths) + offsets] = True
        words[some] = np.packbits(flags, bitorder="little").view(np.uint64).reshape(-1, WORDS)
    return words


ROOM: Final = 1 << 27  # most items with flags. A flag is a byte; all that waits or is packed takes less
_DENSE: Final = 256  # of items spread more thinly than one in so many, sorting costs less than flags
_WORTH: Final = 1 << 12  # a key with at least so many ordinals in a chunk gets flags of its own
_DUE: Final = 8  # one item may wait for every so many flags, so that counting these takes little for each
_SLICE: Final = 1 << 14  # ordinals that are flagged at once: few enough for the core's cache

Ints: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = tuple[Ints, Ints]  # keys and ordinals, as two arrays of one length


class WordPage(NamedTuple):
    key: int
    number: int
    bits: bytes


class _Window:
    """Flags of consecutive items of one key."""

    def __init__(self, key: int, base: int, size: int) -> None:
        self.key, self.base = key, base
        self.flags = np.zeros(size, bool)
        self._settled = np.zeros(size // 8, np.uint8)  # the flags as they were before those that wait
        self._waiting = np.empty(size // _DUE, np.int32)
        self._waits = 0

    def holds(self, low: int, high: int) -> bool:
        return self.base <= low and high < self.base + len(self.flags)

    def add(self, ordinals: Ints) -> Iterator[Rows]:
        """Flag items; ``settle`` finds the repeats among them."""
        step = min(_SLICE, len(self._waiting))
        for first in range(0, len(ordinals), step):
            items = ordinals[first : first + step] - self.base
            if self._waits + len(items) > len(self._waiting):
                yield from self.settle()
            self._waiting[self._waits : self._waits + len(items)] = items
            self._waits += len(items)
            self.flags[items] = True

    def add_run(self, low: int, high: int) -> Iterator[Rows]:
        """Flag consecutive items at once."""
        yield from self.settle()
        first, last = low - self.base, high - self.base
        part = self.flags[first : last + 1]
        if part.any():
            repeats = np.flatnonzero(part) + low
            yield np.full(len(repeats), self.key), repeats
        part[:] = True
        first, last = first // 8, last // 8 + 1
        self._settled[first:last] = _pack(self.flags[first * 8 : last * 8])

    def settle(self) -> Iterator[Rows]:
        """Find the repeats among the items that wait.

        Each item that is new adds a flag. If fewer were added, the flags are set back, and the items are
        flagged again and looked at.
        """
        if not self._waits:
            return
        items, self._waits = self._waiting[: self._waits], 0
        before, self._settled = self._settled, _pack(self.flags)
        if _ones(self._settled) - _ones(before) == len(items):
            return
        for at in range(0, len(before), _SLICE):  # all at once would take as much memory as the flags
            some = np.unpackbits(before[at : at + _SLICE], bitorder="little")
            self.flags[at * 8 : at * 8 + len(some)] = some
        for first in range(0, len(items), _SLICE):
            yield from self._repeats(items[first : first + _SLICE])

    def _repeats(self, items: npt.NDArray[np.int32]) -> Iterator[Rows]:
        """Flag items, and give those that have their flag already."""
        some = np.sort(items).astype(np.intp)
        again = self.flags.take(some)
        again[1:] |= some[1:] == some[:-1]
        self.flags[some] = True
        if again.any():
            repeats = some[again] + self.base
            yield np.full(len(repeats), self.key), repeats


def _pack(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    return np.packbits(flags, bitorder="little")


def _ones(packed: npt.NDArray[np.uint8]) -> int:
    return int(popcount(packed.view(np.uint64)).sum(dtype=np.int64))


class PageBuilder:
    """Makes pages of ordinals in any order, within bounded memory.

    Dense ordinals of a key set flags in an array, which is packed at the end or when memory is full; sparse
    ones are sorted chunk by chunk. So a page may come out more than once.

    Methods that give repeats work while they are iterated: iterate them to the end.
    """

    def __init__(self, *, room: int = ROOM) -> None:
        self._most = room // PAGE * PAGE
        self._windows: dict[int, _Window] = {}
        self._ready: list[WordPage] = []

    def add(self, keys: Ints | int, ordinals: Ints) -> Iterator[Rows]:
        """Take a chunk, at best of a million ordinals, each with its key, or with one key for all of them.

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

    def take(self) -> list[WordPage]:
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
            window = self._windows[key] = _Window(key, base, size)
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
                self._ready.append(WordPage(key, window.base // PAGE + at + number, bits))

    def _sort(self, keys: Ints, ordinals: Ints, *, single: bool = False) -> Iterator[Rows]:
        """Make pages of few or sparse ordinals; those of a single key are sorted much faster."""
        if not len(ordinals):
            return
        if single:
            ordinals = np.sort(ordinals)
        else:
            order = np.lexsort((ordinals, keys))
            keys, ordinals = keys[order], ordinals[order]
        again = ~changes(keys, ordinals)
        if again.any():
            yield keys[again], ordinals[again]
        keys, ordinals = keys[~again], ordinals[~again]
        numbers = ordinals >> PAGE_BITS
        starts = np.flatnonzero(changes(keys, numbers))
        stops = np.append(starts[1:], len(keys))
        offsets = (ordinals & PAGE - 1).astype("<u2")
        heads = (each.tolist() for each in (keys[starts], numbers[starts], starts, stops))
        for key, number, start, stop in zip(*heads, strict=True):
            bits = offsets[start:stop]
            if stop - start >= SPARSE:
                flags = np.zeros(PAGE, bool)
                flags[bits] = True
                bits = np.packbits(flags, bitorder="little")
            self._ready.append(WordPage(key, number, bits.tobytes()))
