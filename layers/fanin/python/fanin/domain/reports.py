"""Reports about batches: how far they are, what is missing, what failed, what disagrees."""

from __future__ import annotations

from dataclasses import dataclass

from fanin.domain.batch import Batch


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is.

    Attributes:
        batch: the batch row.
        done_min: at least this many items are done.
        done_max: at most this many are; equal to ``done_min`` when the count is exact.
    """

    batch: Batch
    done_min: int
    done_max: int

    @property
    def exact(self) -> bool:
        return self.done_min == self.done_max


@dataclass(frozen=True, slots=True)
class MissingRange:
    """A range of items that are not done.

    It has a group id of its own, under which the items can be acknowledged or sent again. Another one than
    the group that they were added in, so count from 0 in it: ``ItemRange(found.group)`` are all of them.

    Attributes:
        start: ordinal of the first item in the batch.
        stop: one past the last.
        group: ``<batch id>:<group id>`` of a group of exactly these items.
    """

    start: int
    stop: int
    group: str


@dataclass(frozen=True, slots=True)
class Missing:
    """One page of what is missing.

    Attributes:
        ranges: ascending.
        cursor: gets the next page; None at the end.
    """

    ranges: tuple[MissingRange, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class FailedItem:
    """A failed item of a batch: its ordinal, the id under which it was reported, and why it failed."""

    ordinal: int
    item: str
    reason: str


@dataclass(frozen=True, slots=True)
class Failures:
    """One page of the failed items of a batch."""

    failures: tuple[FailedItem, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Batches:
    """One page of batches."""

    batches: tuple[Batch, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Expired:
    """How many batches an expiry orphaned or removed, and how many items they had."""

    batches: int = 0
    items: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying a batch.

    Attributes:
        batch: the row, after repair.
        pending: items not done, counted from the leaves up.
        disagreements: what disagreed, in words; empty if nothing did.
        repaired: whether this call repaired it.
        cursor: continues where the budget of reads ended; None once everything was checked.
    """

    batch: Batch
    pending: int
    disagreements: tuple[str, ...] = ()
    repaired: bool = False
    cursor: str | None = None
