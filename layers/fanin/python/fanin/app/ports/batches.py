"""What the use cases need of the store of batches; adapters implement it, as ``fanin.app.ports`` says."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol

from fanin.domain.batch import Batch, State


class Activity(NamedTuple):
    """What activity does to a row's index key; computed by the use case, which knows the idle time.

    Attributes:
        touched_at: becomes the row's ``touched_at``.
        due_at: becomes the row's ``due_at``.
    """

    touched_at: int
    due_at: int


class Page(NamedTuple):
    """One page of batches from the index, oldest ``due_at`` first within a shard."""

    batches: list[Batch]
    cursor: str | None


class BatchStore(Protocol):
    """Keeps the batch rows. Every answer is the row as it is after the call."""

    def create(self, batch: Batch) -> bool:
        """Put a new row; False if another batch has the id (a row with the same salt is this batch)."""
        ...

    def read(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        """Read rows, strongly consistent; unknown ids are left out of the answer."""
        ...

    def allocate(self, batch_id: int, n: int, *, activity: Activity | None, room: int | None) -> Batch | None:
        """Add n items to an open batch, by one conditional write.

        Not idempotent: repeated after its answer was lost, it adds n more (``allocate_once`` does not).

        Args:
            batch_id: the batch.
            n: how many.
            activity: None leaves the index key alone (the caller has not seen the batch yet).
            room: None demands that the batch has no limit; a number demands ``pending_bound`` ≤ room, and
                adds n to it.

        Returns:
            The row after the addition, ``items`` being one past the last new ordinal; None if the
            condition failed (not open, no such batch, full, limit unlike ``room``, or more than 2^40 items).
        """
        ...

    def allocate_once(self, batch: Batch, n: int, key: str, *, activity: Activity) -> int | None:
        """Add n items under an idempotency key, by one transaction of two rows.

        The row must still have ``batch.items`` items and be open; for a bounded batch ``pending_bound``
        must leave room for n. The key's row keeps the range, also after the batch has closed.

        Returns:
            First ordinal of the range that the key stands for, from this call or an earlier one; None if
            the batch has changed since it was read (or is full), and the caller should read it again.

        Raises:
            IdempotencyKeyReused: the key was used before with another n.
        """
        ...

    def allocate_counted(
        self, batch_id: int, n: int, *, items: int, pending: int, activity: Activity
    ) -> Batch | None:
        """Add n items to an open, bounded batch whose pending items were counted, by one conditional write.

        Not idempotent, as ``allocate``.

        Args:
            batch_id: the batch.
            n: how many.
            items: the row must still have so many.
            pending: the count; ``pending_bound`` becomes this and n.
            activity: of the addition.

        Returns:
            The row after the addition; None if the condition failed.
        """
        ...

    def rebound(self, batch_id: int, *, items: int, pending: int) -> bool:
        """Store a fresh count of pending items, if ``items`` has not changed since; False if it has."""
        ...

    def close(
        self, batch_id: int, *, now: int, activity: Activity | None = None
    ) -> tuple[Batch | None, bool]:
        """Move an open batch to closed; ``now`` becomes ``closed_at``.

        Returns:
            The row (None if unknown), and whether this call moved it.
        """
        ...

    def begin(
        self, batch_id: int, items: int, *, now: int, deadline: int, activity: Activity
    ) -> tuple[Batch | None, bool]:
        """Close an open batch that has no items yet with all of its items, once its pattern knows how many.

        Args:
            batch_id: the batch.
            items: how many.
            now: becomes ``closed_at``.
            deadline: becomes the deadline; ``retries`` are counted from here.
            activity: of the closed batch.

        Returns:
            The row (None if unknown), and whether this call moved it.
        """
        ...

    def end(
        self,
        batch_id: int,
        state: State,
        *,
        now: int,
        sources: Collection[State],
        partial: bool = False,
        touched_at: int | None = None,
    ) -> tuple[Batch | None, bool]:
        """Move a batch to a terminal state.

        Args:
            batch_id: the batch.
            state: the terminal state.
            now: becomes ``ended_at``.
            sources: states it may move from.
            partial: recorded with the move.
            touched_at: if given, the row's must still be this (the reaper's guard against activity).

        Returns:
            The row (None if unknown), and whether this call moved it.
        """
        ...

    def postpone(
        self, batch_id: int, *, deadline: int, until: int, activity: Activity
    ) -> tuple[Batch | None, bool]:
        """Move the deadline of a live batch from ``deadline`` to ``until``, and count the retry.

        Returns:
            The row (None if unknown), and whether this call moved it.
        """
        ...

    def touch(self, batch_id: int, activity: Activity) -> None:
        """Record activity on a live batch; nothing if it has ended or was touched later than that."""
        ...

    def count(self, batch_id: int, n: int, *, activity: Activity | None) -> Batch | None:
        """Add n to ``acked`` of a live batch that counts, estimated or a scatter; None if there is none."""
        ...

    def page(
        self, state: State, *, due_before: int | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page:
        """List batches of one state through the index (eventually consistent), one shard after the other.

        A page may be short, since rows that have left the state are dropped; only a None cursor is the end.

        Raises:
            InvalidRequest: the cursor is not one this method gave for this state.
        """
        ...

    def expire(self, batch_id: int, *, now: int) -> bool:
        """Make an ended batch read as gone from now on, by its time to live; False if there is none."""
        ...


class FailureRow(NamedTuple):
    """The note of a failed item; it counts only if the word says that the bit was cleared as failed."""

    ordinal: int
    item: str
    reason: str


class PartStore(Protocol):
    """Keeps rows that belong to a batch besides its words."""

    def put_failures(self, batch_id: int, rows: Iterable[FailureRow], *, expires_at: int) -> None:
        """Write notes of failed items, unconditionally, in bulk."""
        ...

    def failures(
        self, batch_id: int, *, cursor: str | None = None, limit: int = 100
    ) -> tuple[list[FailureRow], str | None]:
        """List notes by ordinal.

        Raises:
            InvalidRequest: the cursor is not one this method gave.
        """
        ...
