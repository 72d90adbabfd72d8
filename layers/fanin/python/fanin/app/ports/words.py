"""The store of words. A word holds one bit for each of 64 items, or of 64 words of the level below."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from fanin.domain.totals import Sums, plus
from fanin.errors import FaninError


class WordKey(NamedTuple):
    """The key of one word: batch, level, and its number on the level."""

    batch_id: int
    level: int
    number: int


class Tally(NamedTuple):
    """How many items below a word have failed, and what its items have brought to the totals of their batch.

    A finished word gives its tally to its parent in the write that clears its bit there, so tallies cost
    nothing. But a range that is marked higher up passes over the words below, with what has failed in them.

    Attributes:
        failed: items that failed; at least so many, if it is not whole.
        whole: whether no failure, and nothing that an item has brought, can be missing.
        sums: of the totals; empty if the batch has none, or if nobody has given any.
    """

    failed: int = 0
    whole: bool = True
    sums: Sums = ()

    def and_(self, other: Tally) -> Tally:
        """The tally of both."""
        return Tally(self.failed + other.failed, self.whole and other.whole, plus(self.sums, other.sums))

    def for_totals(self, totals: int) -> Tally:
        """The tally with a sum for each total of its batch, of which there are so many."""
        return self._replace(sums=plus(self.sums, (0,) * totals))


class Tallied(NamedTuple):
    """A word and its tally, as they were read. A word without a row is all ones and has an empty tally."""

    word: int
    tally: Tally


class Clear(NamedTuple):
    """Bits to clear in one word.

    Attributes:
        key: the word.
        mask: the bits; at least one.
        expires_at: time to live of the row, seconds since the epoch.
        failed: those bits of the mask that are also recorded as failed, if this write clears them (level 0
            only).
        carried: position → tally of the finished word below it, or what the item there brings; added for the
            bits that this write clears.
    """

    key: WordKey
    mask: int
    expires_at: int
    failed: int = 0
    carried: Mapping[int, Tally] = {}


class Cleared(NamedTuple):
    """The word after a ``Clear``.

    Attributes:
        word: its value now; a bit that is 1 is pending.
        first: bits of the mask that this call cleared; the others were clear before.
        tally: what has failed below the bits that are clear, and their sums.
    """

    word: int
    first: int
    tally: Tally = Tally()


Outcome: TypeAlias = Cleared | FaninError
"""What became of a ``Clear``; ``Throttled`` or ``ServiceUnavailable`` if the word may not be written."""


class ItemClaim(NamedTuple):
    """A lease to take on one bit, so that only one receiver works on its item at a time.

    Attributes:
        key: the word, of level 0.
        position: the bit.
        now: seconds since the epoch; a lease that ends at or before this time is over.
        until: when the new lease ends, seconds.
        expires_at: time to live of the row, seconds.
    """

    key: WordKey
    position: int
    now: int
    until: int
    expires_at: int


class Claimed(NamedTuple):
    """What a ``ItemClaim`` found.

    Attributes:
        pending: whether the bit is still set.
        until: when the lease that holds now ends, whoever holds it; 0 if the bit is clear.
        taken: whether that lease is the one this call asked for.
    """

    pending: bool
    until: int
    taken: bool


class WordRow(NamedTuple):
    """A row of level 0, with all that it says of its items.

    Attributes:
        word: a bit that is 1 is pending; all ones if only leases were written.
        failed: mask of the bits that were cleared as failed.
        leases: position → when the last lease on the bit ends, seconds; it may be over, or the bit clear.
    """

    word: int
    failed: int = 0
    leases: Mapping[int, int] = {}


def tallied(
    key: WordKey, word: int, *, full: int, failed: int, below: int, whole: int, sums: Sums
) -> Tallied:
    """A word and its tally, of what the store keeps of it.

    Args:
        key: of the word.
        word: its pending bits.
        full: the word with all its bits.
        failed: bits that were cleared as failed, at level 0.
        below: how many items failed below it, at other levels.
        whole: how many bits came with a whole tally.
        sums: of the totals.
    """
    every = whole == (word ^ full).bit_count()
    if key.level:
        return Tallied(word, Tally(below, every, sums))
    return Tallied(word, Tally(failed.bit_count(), every or not sums, sums))


class WordStore(Protocol):
    """Keeps the words of the trees. A word without a row reads as all ones."""

    def claim(self, claims: Sequence[ItemClaim]) -> list[Claimed]:
        """Take leases on pending bits, each by one conditional write; all are written in parallel.

        Only the word of level 0 is checked: a bit that a range has cleared higher up counts as pending.

        Args:
            claims: at most one for each bit.

        Returns:
            One answer for each, in order. A repeat after a lost answer meets its own lease and cannot tell it
            from another's: the item is free again when that lease is over.

        Raises:
            Throttled: the store is overloaded; some leases may have been taken.
        """

    def clear(self, clears: Sequence[Clear]) -> list[Outcome]:
        """Clear bits, each word by one conditional write; words are written in parallel.

        Where a write meets bits that are clear already, it is sent again with the remaining bits, if any. A
        word that is throttled holds up no other; it is tried again for as long as there is time.

        Args:
            clears: at most one for each word.

        Returns:
            One answer for each, in order; the error of a word that could not be written now.
        """

    def read(self, keys: Collection[WordKey]) -> dict[WordKey, int]:
        """Read words; those without a row are left out of the result."""

    def read_tallied(self, keys: Collection[WordKey]) -> dict[WordKey, Tallied]:
        """Read words with their tallies; those without a row are left out of the result."""

    def read_failed(self, keys: Collection[WordKey]) -> dict[WordKey, int]:
        """Read which bits were cleared as failed, as masks; words without such bits are left out."""

    def read_rows(self, keys: Collection[WordKey]) -> dict[WordKey, WordRow]:
        """Read words with what their rows say of single items; those without a row are left out."""
