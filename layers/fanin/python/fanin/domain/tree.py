"""The summary tree: which word holds an item, when a word is done, and how a range is covered.

Level 0 has one word for every ``width`` items, level k + 1 one bit for every word of level k. A bit that
is 1 is pending. A word that was never written reads as all ones, so a tree of any size starts for free.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class Bits(NamedTuple):
    """Bits of one word to clear.

    Attributes:
        level: 0 for the words that hold items.
        number: which word of the level.
        mask: the bits, at least one.
    """

    level: int
    number: int
    mask: int


@dataclass(frozen=True)
class Tree:
    """The arithmetic of a summary tree. It knows the shape, and holds no state.

    Attributes:
        width: bits in a word; 64 in production, fewer in tests, where small trees should be deep.
    """

    width: int = 64

    @cached_property
    def full(self) -> int:
        """A word with every bit pending."""
        return (1 << self.width) - 1

    @cached_property
    def bits(self) -> tuple[int, ...]:
        """``bits[i]`` is the mask of bit i."""
        return tuple(1 << i for i in range(self.width))

    def span(self, level: int) -> int:
        """Number of items below one word of the level."""
        return int(self.width ** (level + 1))

    def size(self, level: int, number: int, n: int) -> int:
        """Number of items below a word of a tree of n, or (on level -1) of an item: those that exist."""
        span = self.span(level)
        return min(span, n - number * span)

    def below(self, level: int, mask: int) -> int:
        """Number of items below the bits of a mask of the level, all of which exist."""
        return mask.bit_count() * self.span(level - 1)

    def pending(self, level: int, number: int, word: int, n: int) -> int:
        """Number of items below the pending children of a word, of a tree of n."""
        children = word & ~self.residue(level, number, n)
        items = self.below(level, children)
        if number == self.last(level, n) and children >> (self.last_children(level, n) - 1):
            items += self.size(level - 1, self.last(level - 1, n), n) - self.span(level - 1)
        return items

    def root_level(self, n: int) -> int:
        """The lowest level on which one word covers all of n items (0 for none)."""
        level, span = 0, self.width
        while span < n:
            level, span = level + 1, span * self.width
        return level

    def last(self, level: int, n: int) -> int:
        """Index of the last word of the level in a tree of n ≥ 1 items."""
        return (n - 1) // self.span(level)

    def edge(self, n: int) -> list[tuple[int, int]]:
        """Level and index of the last word of each level, from level 0 up to the root; none without items."""
        return [(level, self.last(level, n)) for level in range(self.root_level(n) + 1)] if n else []

    def last_children(self, level: int, n: int) -> int:
        """How many children (items, or words of the level below) the last word of the level has."""
        below = n if level == 0 else self.last(level - 1, n) + 1
        return below - self.last(level, n) * self.width

    def residue(self, level: int, index: int, n: int) -> int:
        """The value of a word that is done: bits of children that do not exist are never cleared."""
        if index != self.last(level, n):
            return 0
        return self.full & ~((1 << self.last_children(level, n)) - 1)

    def may_be_last(self, level: int, index: int, word: int, at_least: int) -> bool:
        """Whether the write of the word may have been the last one of a tree of some size n ≥ ``at_least``.

        The word is done then, or done but for its last child. The size of an open batch may still grow. After
        the write of a word for which this is true, the batch row must be read again; any other word cannot be
        finished by a close that races with the write, and leaves something to do in a batch that drains.
        """
        children = (word ^ self.full).bit_count()
        if word != self.full & ~((1 << children) - 1):
            return False
        if at_least < 1:
            return True
        last = self.last(level, at_least)
        enough = self.last_children(level, at_least) - (level > 0)
        return index > last or (index == last and children >= enough)

    def all_done(self, edge: Sequence[int], n: int) -> bool:
        """Whether all of n ≥ 1 items are done, in a tree whose last words were not carried up yet.

        Args:
            edge: the last word of each level, from level 0 up to the root.
            n: how many items there are.
        """
        for level in range(len(edge) - 1, -1, -1):
            residue = self.residue(level, self.last(level, n), n)
            if edge[level] == residue:
                return True
            if edge[level] != residue | self.bits[self.last_children(level, n) - 1]:
                return False
        return False

    def cover(self, start: int, stop: int, n: int) -> Iterator[Bits]:
        """Cover the items start ≤ i < stop with bits, each as high in the tree as possible.

        Args:
            start: first item of the range.
            stop: one past its last item.
            n: a size that the batch has reached; no mark is above its root, since that is where readers
                start.

        Yields:
            At most two marks a level, lowest level first.
        """
        level, root = 0, self.root_level(n)
        while start < stop:
            first, last = start // self.width, (stop - 1) // self.width
            if first == last or level == root:
                yield Bits(level, first, self._run(start % self.width, (stop - 1) % self.width + 1))
                return
            if start % self.width:
                yield Bits(level, first, self._run(start % self.width, self.width))
                first += 1
            if stop % self.width:
                yield Bits(level, last, self._run(0, stop % self.width))
            else:
                last += 1
            start, stop, level = first, last, level + 1

    def _run(self, low: int, high: int) -> int:
        return (1 << high) - (1 << low)

    def parent(self, level: int, number: int) -> Bits:
        """The bit that stands for a word in the word above it."""
        above, bit = divmod(number, self.width)
        return Bits(level + 1, above, self.bits[bit])

    def ancestors(self, number: int, n: int, *, level: int = 0) -> Iterator[Bits]:
        """The bits that stand for a word in the words above it, in a tree of n items.

        Args:
            number: which word of the level.
            n: a size the batch has reached.
            level: of the word; -1 for an item, whose own bit is the first then.

        Yields:
            One bit on each level above, up to the root, lowest first.
        """
        for below in range(level, self.root_level(n)):
            above = self.parent(below, number)
            number = above.number
            yield above

    def masks(self, ordinals: Iterable[int]) -> dict[int, int]:
        """Group items by their word of level 0.

        Returns:
            Word index → mask of the items' bits.
        """
        width, bits = self.width, self.bits
        masks: dict[int, int] = {}
        get = masks.get
        for ordinal in ordinals:
            index = ordinal // width
            masks[index] = get(index, 0) | bits[ordinal % width]
        return masks

    def children(self, level: int, index: int, word: int, n: int) -> Iterator[int]:
        """Indices of the pending children of a word, ascending, those that exist in a tree of n items.

        Children of a word of level 0 are items, by their ordinals.
        """
        base = index * self.width
        return (base + at for at in positions(word & ~self.residue(level, index, n)))


def positions(mask: int) -> list[int]:
    """Positions of the bits of a mask, ascending."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def runs(ordinals: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Join ascending ordinals to half-open ranges ``(start, stop)``."""
    return runs_of_masks((ordinal, 1) for ordinal in ordinals)


def runs_of_masks(words: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join the ones of masks to half-open ranges ``(start, stop)`` of ordinals.

    Args:
        words: the ordinal of bit 0, and a mask, which is not negative; ascending, and apart.
    """
    start = stop = -1
    for first, mask in words:
        at, left = first, mask
        while left:
            zeros = (left & -left).bit_length() - 1
            left, at = left >> zeros, at + zeros
            ones = (~left & (left + 1)).bit_length() - 1
            if at != stop:
                if stop > start:
                    yield start, stop
                start = at
            left, at = left >> ones, at + ones
            stop = at
    if stop > start:
        yield start, stop
