"""A batch: its row, its states, and how it is opened.

    open ──close──▶ closed ──last item──▶ complete
      └──────┬─────────┘
             └──▶ timed_out | cancelled | orphaned | complete (partial: deadline or quorum)

A state only ever moves forward; the last four never change.
All ``*_at`` values are milliseconds since the epoch, except ``expires_at``, which is in seconds because
DynamoDB's time to live is. Durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final


class State(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    COMPLETE = "complete"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    ORPHANED = "orphaned"

    @property
    def terminal(self) -> bool:
        """Whether the state never changes again."""
        return self not in LIVE


RETENTION: Final = 86_400
"""Seconds for which an ended batch can still be read: rows expire this long after the lifetime."""

FIRST_LOOK: Final = 15 * 60_000
"""Milliseconds from the close of a batch until the reaper first checks whether it is done."""

ALARM_LATE: Final = 60_000
"""Milliseconds from a deadline until the reaper stands in for its alarm."""

LIVE: Final = (State.OPEN, State.CLOSED)


class Mode(StrEnum):
    EXACT = "exact"
    ESTIMATED = "estimated"


class Kind(StrEnum):
    """What a batch stands for, which decides how its end and its deadline are handled."""

    BATCH = "batch"
    SCATTER = "scatter"
    FRAME = "frame"
    BUFFER = "buffer"


class OnDeadline(StrEnum):
    TIME_OUT = "time_out"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Batch:
    """The batch row.

    Attributes:
        batch_id: integer below 2^53.
        salt: key of the check in group ids.
        state: where the batch is in its life.
        mode: ``exact`` (the tree) or ``estimated`` (one counter).
        kind: a plain batch, or the pattern that stands on it.
        user_key: the caller's own name for the batch, returned with its events.
        items: how many items were added.
        created_at: when it was opened.
        touched_at: last activity, rounded down to a tenth of the idle time to live.
        closed_at: when it was closed.
        ended_at: when it reached its terminal state.
        expires_at: seconds; end of the lifetime and a day of retention, when the batch reads as gone.
        open_idle_ttl: seconds without activity until an open batch is orphaned.
        closed_idle_ttl: the same for a closed batch.
        deadline: when ``on_deadline`` happens.
        on_deadline: what happens then.
        limit: how many items may be pending at a time.
        pending_bound: upper bound of the pending items, kept only where there is a limit.
        parent_item: item id of another batch; the notifier marks it done or failed when this batch ends.
        instead_of: the last child of ``parent_item`` before this one that was used. It ended without
            completing, and decides about the item if this batch is never used.
        retry_of: id of the batch whose failed items this batch retries.
        metadata: small map of strings, returned with events.
        acked: acknowledgements, in estimated mode; replies, as a hint, where a scatter waits for a quorum;
            all items, failed ones included, of an exact batch in which every item is done.
        failed: items that failed.
        failed_more: whether more may have failed than ``failed`` says.
        partial: True when a deadline or a scatter's quorum completed the batch with items missing.
        retries: how often its pattern postponed the deadline.
    """

    batch_id: int
    salt: bytes = field(repr=False)
    created_at: int
    touched_at: int
    expires_at: int
    open_idle_ttl: int
    closed_idle_ttl: int
    state: State = State.OPEN
    mode: Mode = Mode.EXACT
    kind: Kind = Kind.BATCH
    user_key: str = ""
    items: int = 0
    closed_at: int | None = None
    ended_at: int | None = None
    deadline: int | None = None
    on_deadline: OnDeadline = OnDeadline.TIME_OUT
    limit: int | None = None
    pending_bound: int = 0
    parent_item: str | None = None
    retry_of: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    acked: int = 0
    failed: int = 0
    failed_more: bool = True
    partial: bool = False
    retries: int = 0
    instead_of: int | None = None

    @property
    def used(self) -> bool:
        """Whether somebody worked with the batch: of an open one without items nobody may know."""
        return bool(self.items) or self.closed_at is not None or self.state is State.CANCELLED

    @property
    def idle_ttl(self) -> int:
        """Seconds without activity until the batch is orphaned, in its present state."""
        return self.open_idle_ttl if self.state is State.OPEN else self.closed_idle_ttl

    @property
    def idle_at(self) -> int:
        """When the batch has had no activity for its idle time, or has lived its lifetime."""
        return min(self.touched_at + self.idle_ttl * 1000, (self.expires_at - RETENTION) * 1000)

    @property
    def due_at(self) -> int:
        """When the reaper should look: once idle, or a minute past the deadline, in case its alarm failed."""
        return self.idle_at if self.deadline is None else min(self.idle_at, self.deadline + ALARM_LATE)

    def look_at(self, now: int) -> int:
        """When the reaper should look next, if nothing happens until then.

        A closed batch may be done although no process noticed: its last word is seldom zero, so it is not in
        the stream of finished words. The reaper therefore checks 15 minutes after the close, and then each
        time after twice as long.
        """
        if self.state is not State.CLOSED:
            return self.due_at
        return min(self.due_at, now + max(FIRST_LOOK, now - (self.closed_at or now)))

    def active_until(self, now: int) -> int:
        """The latest that its last activity can have been, since ``touched_at`` is rounded down."""
        return self.ended_at or min(now, self.touched_at + _step(self.idle_ttl))

    def active(self, touched_at: int) -> Batch:
        """The row after activity."""
        return replace(self, touched_at=touched_at)

    def gone(self, now: int) -> bool:
        """Whether the batch is past its lifetime; DynamoDB deletes late, so its row may still exist."""
        return self.expires_at * 1000 <= now

    @property
    def active_at(self) -> int:
        """The last activity as callers see it: not before the batch was opened, unlike ``touched_at``."""
        return max(self.touched_at, self.created_at)

    @property
    def all_done(self) -> bool:
        """Whether the batch ended with every item known to be done.

        This decides what an acknowledgement after the end of a batch means: where all is done it is a
        duplicate; of any other ended batch it came too late. An estimated batch knows no items.
        """
        return self.state is State.COMPLETE and not self.partial and self.mode is Mode.EXACT

    def counted_out(self) -> bool:
        """In estimated mode: whether there were as many acknowledgements as items."""
        return self.acked >= self.items


def touched(now: int, idle_ttl: int) -> int:
    """The time of an activity, rounded down to a tenth of the idle time to live.

    Activity within the same step does not change the row's index key, so it writes nothing to the index.
    """
    return now - now % _step(idle_ttl)


def _step(idle_ttl: int) -> int:
    return max(1, idle_ttl * 100)


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A request to open a batch; None leaves a value to the service's settings.

    Attributes:
        user_key: the caller's own name for the batch.
        mode: ``exact`` or ``estimated``.
        idle_ttl: seconds without activity until the batch is orphaned, open or closed.
        lifetime: seconds until the hard end of the batch.
        deadline: milliseconds since the epoch.
        on_deadline: what happens then.
        limit: how many items may be pending at a time; exact mode only.
        parent_item: item id of another batch; done when this one completes, failed if it ends otherwise.
        retry_of: id of the batch whose failed items this batch retries; returned with events.
        metadata: small map of strings, returned with events.
        kind: a plain batch, or the pattern that stands on it.
        size: opens the batch closed, with this many items; for patterns that know the number beforehand.
    """

    user_key: str = ""
    mode: Mode = Mode.EXACT
    idle_ttl: int | None = None
    lifetime: int | None = None
    deadline: int | None = None
    on_deadline: OnDeadline = OnDeadline.TIME_OUT
    limit: int | None = None
    parent_item: str | None = None
    retry_of: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = Kind.BATCH
    size: int | None = None
