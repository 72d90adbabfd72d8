"""A batch: its row, its states, and how it is opened.

    open ──close──▶ closed ──last item──▶ complete
      └──────┬─────────┘
             └──▶ timed_out | cancelled | orphaned | complete (partial: deadline or quorum)

A state only ever moves forward; the last four never change. A batch that drains is open to its own items
alone, and is closed by whoever finds that all it has are done.
All ``*_at`` values are milliseconds since the epoch, except ``expires_at``, which is in seconds because
DynamoDB's time to live is. Durations are seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Final, NamedTuple

from fanin.domain.failures import Keep, Tolerance
from fanin.domain.targets import Target, When


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

STALL_AFTER: Final = 1_800
"""Seconds without activity until a live batch counts as stalled, unless batch or stack say otherwise."""

IDLE_STEP: Final = 100
"""Milliseconds to which ``touched_at`` is rounded down, for each second of the idle time: a tenth of it."""

STALL_STEP: Final = 250
"""The same for each second of ``stall_after``, if that is less: a quarter of it."""

FIRST_LOOK: Final = 15 * 60_000
"""Milliseconds from the close of a batch until the reaper first checks whether it is done."""

WAITING_LOOK: Final = 60_000
"""Milliseconds from an activity until the reaper checks whether a batch waits for held items alone."""

MAX_MILESTONES: Final = 10
WHOLE: Final = 100
"""Percent: the milestone that comes with the end."""

ALARM_LATE: Final = 60_000
"""Milliseconds from a deadline until the reaper stands in for its alarm."""

LIVE: Final = (State.OPEN, State.CLOSED)


class Mode(StrEnum):
    EXACT = "exact"
    ESTIMATED = "estimated"


class CloseWhen(StrEnum):
    """When a batch that is closed takes no more items."""

    NOW = "now"
    DRAINED = "drained"
    """Once every item that it has is done; until then it takes those that its own pending items add."""


class Kind(StrEnum):
    """What a batch stands for, which decides how its end and its deadline are handled."""

    BATCH = "batch"
    SCATTER = "scatter"
    FRAME = "frame"
    BUFFER = "buffer"


class OnDeadline(StrEnum):
    TIME_OUT = "time_out"
    COMPLETE = "complete"


class OnFailure(StrEnum):
    """What becomes of an item that failed."""

    DONE = "done"
    """It counts as done, and the batch completes with it."""
    HOLD = "hold"
    """It stays pending until it is acknowledged, redriven and done, or released."""


class ChildFailures(StrEnum):
    """What becomes of an item whose nested batch completed with more failures than that one tolerates."""

    FAIL = "fail"
    """It fails, too, so that failures are seen from above."""
    IGNORE = "ignore"
    """It is done."""


class Trouble(StrEnum):
    """Why a person should look at a batch; the most urgent first."""

    STALLED = "stalled"
    """It is live, and nothing happens although items are missing."""
    HELD = "held"
    """Failed items wait until somebody redrives or releases them."""
    DEAD_LETTERS = "dead_letters"
    """It has stalled while messages wait in the dead-letter queue of its items, and nobody fails these."""
    FAILING = "failing"
    """It is live, and items of it have failed."""
    TARGETS = "targets"
    """It has ended, and a target could not be told."""
    NOT_CLOSED = "not_closed"
    """All its items are done, but it was never closed."""
    INCOMPLETE = "incomplete"
    """It has ended with items missing."""
    FAILED = "failed"
    """It has ended with failures that nobody has redriven."""


class Told(NamedTuple):
    """Something that is told of a batch before its end.

    Attributes:
        kind: what: the first failure; that it takes no more items, and all that are pending are held; or that
            so much of it is done, see ``Batch.milestones``.
        at: when it was noticed, ms; None if only the end shows it, or for a milestone.
        percent: the milestone, of a progress.
    """

    kind: When
    at: int | None = None
    percent: int | None = None

    @property
    def name(self) -> str:
        """Tells it from all others of its batch."""
        return self.kind if self.percent is None else f"{self.kind}.{self.percent}"


class Cause(StrEnum):
    """Why a batch was cancelled, where nobody asked for it."""

    FAILURES = "failures"


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
        touched_at: last activity, rounded down to a step; see ``step``.
        draining_at: when it was told to close once it is drained; see ``CloseWhen``.
        closed_at: when it was closed.
        ended_at: when it reached its terminal state.
        expires_at: seconds; end of the lifetime and a day of retention, when the batch reads as gone.
        open_idle_ttl: seconds without activity until an open batch is orphaned.
        closed_idle_ttl: the same for a closed batch.
        deadline: when ``on_deadline`` happens.
        on_deadline: what happens then.
        limit: how many items may be pending at a time.
        pending_bound: upper bound of the pending items, kept only where there is a limit.
        max_items: how many items it takes in all.
        grown: how many of its items its own items have added.
        keyed: how many of its items have a key.
        parent_item: item id of another batch; the notifier marks it done or failed when this batch ends.
        stall_after: seconds without activity until a live batch counts as stalled; 0 for never.
        stall_told: the ``touched_at`` of the stall that was told last; callers do not see it.
        stall_why: the most likely reason of that stall, in a few words.
        instead_of: the last child of ``parent_item`` before this one that was used. It ended without
            completing, and decides about the item if this batch is never used.
        retry_of: id of the batch whose failed items this batch retries.
        metadata: small map of strings, returned with events.
        acked: marks that its row has counted: those of an estimated batch; and replies, as a hint, where a
            scatter waits for a quorum. No other batch counts in its row: ``done_min`` says how many are done.
        failed: items that failed.
        failed_more: whether more may have failed than ``failed`` says.
        partial: True when a deadline or a scatter's quorum completed the batch with items missing.
        retries: how often its pattern postponed the deadline.
        keep: what is kept of its failed items: their messages, or their reasons alone.
        on_failure: whether an item that failed is done, or held.
        child_failures: whether its items fail with the failures of nested batches.
        tolerated_failures: the failures beyond which the batch is given up; None tolerates any.
        cause: why it was cancelled, if nobody asked for it.
        failing: a hint how many failures were reported; kept only where there is a tolerance.
        held: items that failed and are held; see ``OnFailure``. They are pending.
        held_more: whether more may be held than ``held`` says.
        targets: how many targets are told of its end; they are records of their own.
        totals: its totals, in their order, with their sums as far as the row knows them: those of an exact
            batch from its end on, those of an estimated one always.
        totals_exact: whether the totals are the sums of every item that is done, each counted once.
        totals_before: the sums of the batches that it retries, by the names of their totals.
        results: whether results of its items are kept.
        attention: why a person should look at it, as it was last written; see ``fanin.app.attention``.
        milestones: percents of its items at which its progress is told, ascending.
        milestone: the last milestone that was told.
        failing_at: when its first failure was told.
        waiting_at: when it was told that it waits for held items alone.
        opened_by: who opened it: the ARN of an AWS identity, the subject of a token, or the name that a
            program on the tables goes by; empty if that is not known.
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
    keep: Keep = Keep.MESSAGE
    on_failure: OnFailure = OnFailure.DONE
    child_failures: ChildFailures = ChildFailures.FAIL
    tolerated_failures: Tolerance | None = None
    cause: Cause | None = None
    failing: int = 0
    held: int = 0
    held_more: bool = False
    stall_after: int = 0
    stall_told: int | None = None
    stall_why: str = ""
    targets: int = 0
    totals: Mapping[str, int] = field(default_factory=dict)
    totals_exact: bool = False
    totals_before: Mapping[str, int] = field(default_factory=dict)
    results: bool = False
    opened_by: str = ""
    attention: Trouble | None = None
    draining_at: int | None = None
    max_items: int | None = None
    grown: int = 0
    keyed: int = 0
    milestones: Sequence[int] = ()
    milestone: int = 0
    failing_at: int | None = None
    waiting_at: int | None = None

    @property
    def told(self) -> Sequence[Told]:
        """What was told of it before its end."""
        if self.kind is not Kind.BATCH:
            return ()  # the patterns tell of themselves
        found = [] if self.failing_at is None else [Told(When.FAILING, self.failing_at)]
        found += [Told(When.PROGRESS, percent=one) for one in self.milestones if one <= self.milestone]
        return found if self.waiting_at is None else [*found, Told(When.WAITING, self.waiting_at)]

    def told_since(self, before: "Batch") -> Sequence[Told]:
        """What is told by this row and not by one before it; milestones may have been changed meanwhile."""
        earlier = {one.name for one in before.told}
        found = (one for one in self.told if one.name not in earlier)
        return [one for one in found if one.percent is None or one.percent > before.milestone]

    @property
    def next_milestone(self) -> int | None:
        """The first milestone that is to be told before the end: of the items of a closed batch."""
        left = (one for one in self.milestones if self.milestone < one < WHOLE)
        return next(left, None) if self.state is State.CLOSED else None

    @property
    def may_wait(self) -> bool:
        """Whether it may come to wait for held items alone, which was not told yet."""
        return self.holds and self.waited_for and self.waiting_at is None

    @property
    def draining(self) -> bool:
        """Whether it takes only what its own items add, and closes once all that it has are done."""
        return self.state is State.OPEN and self.draining_at is not None

    @property
    def waited_for(self) -> bool:
        """Whether its end follows from its items alone, and somebody may wait for it: no close is missing."""
        return self.state is State.CLOSED or self.draining

    @property
    def used(self) -> bool:
        """Whether somebody worked with the batch: of an open one without items nobody may know."""
        return bool(self.items) or self.closed_at is not None or self.state is State.CANCELLED

    @property
    def idle_ttl(self) -> int:
        """Seconds without activity until the batch is orphaned, in its present state."""
        open_to_all = self.state is State.OPEN and not self.draining
        return self.open_idle_ttl if open_to_all else self.closed_idle_ttl

    @property
    def idle_at(self) -> int:
        """When the batch has had no activity for its idle time, or has lived its lifetime."""
        return min(self.touched_at + self.idle_ttl * 1000, (self.expires_at - RETENTION) * 1000)

    @property
    def holds(self) -> bool:
        """Whether its failed items are held, and stay pending."""
        return self.on_failure is OnFailure.HOLD

    @property
    def stalls(self) -> bool:
        """Whether it may be told as stalled: the patterns watch over their waiting themselves."""
        return self.stall_after > 0 and self.kind is Kind.BATCH

    @property
    def step(self) -> int:
        """Milliseconds to which ``touched_at`` is rounded down: a tenth of the idle time at most.

        A stall is claimed only once it is certain, a step late, so the step is a quarter of ``stall_after``
        at most.
        """
        step = max(1, self.idle_ttl * IDLE_STEP)
        return min(step, self.stall_after * STALL_STEP) if self.stalls else step

    def rounded(self, at: int) -> int:
        """The ``touched_at`` of an activity at a time, ms.

        Activity within the same step does not change the row's index key, so it writes nothing to the index.
        """
        return at - at % self.step

    @property
    def quiet_at(self) -> int | None:
        """When it has surely had no activity for ``stall_after``, ms; None if it is never told as stalled."""
        return self.touched_at + self.step + self.stall_after * 1000 if self.stalls else None

    @property
    def stall_at(self) -> int | None:
        """When its stall is to be told, ms; None if it was told, or never is."""
        return None if self.stall_told == self.touched_at else self.quiet_at

    @property
    def stands_still(self) -> bool:
        """Whether it is live, its stall was told, and nothing has happened since."""
        return not self.state.terminal and self.stall_told == self.touched_at

    @property
    def trouble(self) -> Trouble | None:
        """``attention`` as callers see it: not if it is of a time that is over."""
        of_stall = self.attention in {Trouble.STALLED, Trouble.DEAD_LETTERS}
        of_live = of_stall or self.attention in {Trouble.HELD, Trouble.FAILING}
        moved = of_stall and self.stall_told not in {None, self.touched_at}
        return None if moved or (of_live and self.state.terminal) else self.attention

    def stalled(self, now: int) -> bool:
        """Whether a live batch has surely had no activity for ``stall_after``, and that was not told yet."""
        return self.stall_at is not None and self.stall_at <= now

    @property
    def due_at(self) -> int:
        """When the reaper should look: once idle or stalled, or a minute past the deadline.

        At the deadline it stands in for an alarm that failed.
        """
        late = None if self.deadline is None else self.deadline + ALARM_LATE
        return min(at for at in (self.idle_at, self.stall_at, late) if at is not None)

    def look_at(self, now: int) -> int:
        """When the reaper should look next, if nothing happens until then.

        A closed batch may be done although no process noticed: its last word is seldom zero, so it is not in
        the stream of finished words. The reaper therefore checks 15 minutes after the close, and then each
        time after twice as long. In the same way it looks for the time when only held items are left.
        """
        if not self.waited_for:
            return self.due_at
        since = self.draining_at if self.draining else self.closed_at
        looks = [self.due_at, now + max(FIRST_LOOK, now - (since or now))]
        if self.may_wait:
            looks.append(now + max(WAITING_LOOK, now - self.touched_at))
        return min(looks)

    def active_until(self, now: int) -> int:
        """The latest that its last activity can have been, since ``touched_at`` is rounded down."""
        return self.ended_at or min(now, self.touched_at + self.step)

    def active(self, touched_at: int) -> "Batch":
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

    @property
    def succeeded(self) -> bool:
        """Whether it completed with no more failures than it tolerates: none, unless told otherwise."""
        tolerance = self.tolerated_failures or Tolerance(count=0)
        return self.state is State.COMPLETE and tolerance.covers(self.failed, of=self.items)

    @property
    def may_hold_more(self) -> bool:
        """Whether more may be held than ``held`` says, as callers see it: not where all items are done."""
        return self.held_more and not self.all_done

    def counted_out(self) -> bool:
        """In estimated mode: whether there were as many acknowledgements as items."""
        return self.acked >= self.items


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
        max_items: how many items it takes in all; caps what items may add by themselves.
        parent_item: item id of another batch; done when this one succeeds, else failed; see ``succeeded``.
        retry_of: id of the batch whose failed items this batch retries; returned with events.
        stall_after: seconds without activity until the batch is told as stalled; 0 for never.
        metadata: small map of strings, returned with events.
        on_failure: whether an item that failed is done, or held; held in exact mode only.
        child_failures: whether its items fail with the failures of nested batches.
        tolerated_failures: the failures beyond which the batch is given up; exact mode only.
        kind: a plain batch, or the pattern that stands on it.
        size: opens the batch closed, with this many items; for patterns that know the number beforehand.
        keep: what is kept of failed items: their messages, or their reasons alone; None keeps messages.
        on_end: who is told of the end; up to five targets.
        totals: names of up to four whole numbers that are summed up over the items that are done.
        results: whether results of its items are kept; exact mode only.
        milestones: percents of its items at which its progress is told.
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
    stall_after: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    on_failure: OnFailure = OnFailure.DONE
    child_failures: ChildFailures = ChildFailures.FAIL
    tolerated_failures: Tolerance | None = None
    kind: Kind = Kind.BATCH
    size: int | None = None
    keep: Keep | None = None
    on_end: Sequence[Target] = ()
    totals: Sequence[str] = ()
    results: bool = False
    max_items: int | None = None
    milestones: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class ChangeLimits:
    """A request to change limits of a live batch; None leaves one as it is.

    Attributes:
        deadline: milliseconds since the epoch.
        tolerated_failures: the failures beyond which the batch is given up; exact mode only.
        stall_after: seconds without activity until the batch is told as stalled; 0 for never.
        milestones: percents of its items at which its progress is told; empty for none.
    """

    deadline: int | None = None
    tolerated_failures: Tolerance | None = None
    stall_after: int | None = None
    milestones: Sequence[int] | None = None

    @property
    def given(self) -> Mapping[str, int | Tolerance | Sequence[int]]:
        """What changes, by the name of the batch's field."""
        named = ((one.name, getattr(self, one.name)) for one in fields(self))
        return {name: value for name, value in named if value is not None}
