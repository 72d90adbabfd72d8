"""The ledger: its use cases in one class, over any ports."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fanin.app.ledger.adding import Adding
from fanin.app.ledger.clearing import NO_VALUES, BitsCleared, Clearing, Values
from fanin.app.ledger.early_events import early_event, tell_early
from fanin.app.ledger.failed import Failed
from fanin.app.ledger.failure_listing import FailureListing
from fanin.app.ledger.inspection import meet_deadline
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.known_batches import KnownBatches, PinnedBatch
from fanin.app.ledger.lifecycle import Lifecycle
from fanin.app.ledger.marking import Marking
from fanin.app.ledger.notices import announce, event_of
from fanin.app.ledger.opening import Opening
from fanin.app.ledger.reading import Reading
from fanin.app.ledger.reaper import Reaped, Report, reap
from fanin.app.ledger.release import Release
from fanin.app.ledger.results import ResultListing
from fanin.app.ledger.settle import Settler
from fanin.app.ledger.targets import TargetsOfBatches
from fanin.app.ledger.telling import Teller
from fanin.app.ledger.tolerance import Tolerating
from fanin.app.ports import Ports
from fanin.app.ports.events import Event
from fanin.app.ports.words import WordKey
from fanin.domain import limits
from fanin.domain.access import Principal
from fanin.domain.batch import Batch, ChangeLimits, CloseWhen, OpenBatch, State, Told
from fanin.domain.ids import Group
from fanin.domain.keys import ItemKey, KeyedItem, KeyedItems
from fanin.domain.marks import Done, Failure, Mark, Marked
from fanin.domain.redrives import Selection
from fanin.domain.reports import (
    BatchCounts,
    Batches,
    Errors,
    Expired,
    FailedMessage,
    Failures,
    Missing,
    Progress,
    ReleasedItems,
    Results,
    Verdict,
)
from fanin.domain.targets import TargetReports
from fanin.domain.totals import MAX_CHILD_SUM
from fanin.domain.tree import Bits

if TYPE_CHECKING:
    from fanin.domain.picture import Picture


class LedgerService:
    """Implements ``fanin.app.api.Ledger`` over ports, and the background work of streams and schedules.

    One instance serves one process. It remembers the batches that it has read, and is safe to use from
    threads.

    Args:
        ports: the stores and the rest of the world.
        kinds: hooks of the patterns for the end, the deadline and the idle time of their batches.
        known: batch rows that the process remembers; by default none yet.
        redrives: whether listings of failures say which redrive took each; nothing has at the end of a batch.
        rows: how many rows a call reads at most that looks for something, or lists.

    Attributes:
        ports: as given; the patterns on the ledger use them.
        opening: opens batches step by step, for patterns whose records are written before the batch.
        rows: as given; the patterns keep to it, too.
    """

    def __init__(
        self,
        ports: Ports,
        kinds: Kinds | None = None,
        known: KnownBatches | None = None,
        *,
        redrives: bool = True,
        rows: int = limits.MAX_ROWS,
    ) -> None:
        self.ports = ports
        self.rows = rows
        self._kinds = kinds or Kinds()
        self._known = known = known or KnownBatches(ports.batches, ports.clock)
        self._settler = Settler(ports, known)
        self.opening = Opening(ports, known, self._settler)
        self._reading = Reading(ports, known, self._settler, budget=rows)
        self._failed = Failed(ports)
        self._failures = FailureListing(ports, known, redrives=redrives, rows=rows)
        self._results = ResultListing(ports, known, self._reading, rows=rows)
        self._tolerating = Tolerating(ports, known, self._settler, self._reading)
        self._teller = Teller(ports, known)
        self._lifecycle = Lifecycle(ports, known, self._settler, self._tolerating, self._teller, rows=rows)
        self._adding = Adding(ports, known, self._reading)
        self._marking = Marking(ports, known, self._settler, self._tolerating, self._teller)
        self._release = Release(ports, known, self._settler, rows=rows)
        self._clearing = Clearing(ports, known, self._settler, self._teller)
        self._targets = TargetsOfBatches(ports, known, self._event_of, self._early_of)

    def open(self, request: OpenBatch, *, key: str | None = None, caller: Principal | None = None) -> Batch:
        return self.opening.open(request, key, caller=caller)

    def add(
        self,
        batch_id: int,
        count: int,
        *,
        item: str | None = None,
        key: str | None = None,
        caller: Principal | None = None,
    ) -> Group:
        return self._adding.add(batch_id, count, item=item, key=key, caller=caller)

    def add_keys(self, batch_id: int, keys: Sequence[ItemKey], *, item: str | None = None) -> KeyedItems:
        return self._adding.add_keys(batch_id, keys, item=item)

    def find_key(self, batch_id: int, *, key_of_item: str) -> KeyedItem:
        return self._adding.find_key(batch_id, key_of_item)

    def mark(self, marks: Sequence[Mark]) -> Marked:
        return self._marking.mark(marks)

    def mark_parent(self, mark: Done | Failure, *, exact: bool) -> Marked:
        """Mark the parent item of a complete batch, with sums that may be larger than other values."""
        return self._marking.mark([mark], most=MAX_CHILD_SUM, whole=exact)

    def close(self, batch_id: int, *, when: CloseWhen = CloseWhen.NOW) -> Batch:
        return self._lifecycle.close(batch_id, when)

    def cancel(self, batch_id: int) -> Batch:
        return self._lifecycle.cancel(batch_id)

    def change(self, batch_id: int, change: ChangeLimits) -> Batch:
        return self._lifecycle.change(batch_id, change)

    def release(
        self, batch_id: int, selection: Selection | None = None, *, cursor: str | None = None
    ) -> ReleasedItems:
        return self._release.release(batch_id, selection or Selection(), cursor=cursor)

    def status(self, batch_id: int, *, exact: bool = False, brief: bool = False) -> Progress:
        return self._reading.status(batch_id, exact=exact, brief=brief)

    def missing(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Missing:
        return self._reading.missing(batch_id, cursor=cursor, limit=limit)

    def picture(self, batch_id: int, *, level: int | None = None, number: int = 0) -> Picture:
        from fanin.app.ledger.picture import picture  # noqa: PLC0415  only consoles ask for it

        return picture(self.ports, self._known.current(batch_id), level=level, number=number)

    def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Failures:
        return self._failures.page(batch_id, cursor=cursor, limit=limit)

    def failure(self, batch_id: int, ordinal: int) -> FailedMessage:
        return self._failures.one(batch_id, ordinal)

    def results(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Results:
        return self._results.page(batch_id, cursor=cursor, limit=limit)

    def errors(self, batch_id: int, *, cursor: str | None = None) -> Errors:
        return self._failures.errors(batch_id, cursor=cursor)

    def verify(self, batch_id: int, *, cursor: str | None = None, repair: bool = True) -> Verdict:
        return self._reading.verify(batch_id, cursor=cursor, repair=repair)

    def list(
        self,
        state: State | None = None,
        *,
        user_key: str | None = None,
        parent: int | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Batches:
        return self._lifecycle.list(state, user_key=user_key, parent=parent, cursor=cursor, limit=limit)

    def counts(self) -> BatchCounts:
        found = {state: self.ports.batches.count_in(state) for state in State}
        states = {state.value: count for state, (count, _) in found.items()}
        return BatchCounts(states, tuple(state.value for state, (_, more) in found.items() if more))

    def expire(self, state: State, *, idle_since: int, cursor: str | None = None) -> Expired:
        return self._lifecycle.expire(state, idle_since=idle_since, cursor=cursor)

    def remove(self, batch_id: int) -> Expired:
        return self._lifecycle.remove(batch_id)

    def targets(self, batch_id: int) -> TargetReports:
        return self._targets.report(batch_id)

    def redeliver(self, batch_id: int) -> TargetReports:
        return self._targets.redeliver(batch_id)

    def pending(self, batch_id: int, start: int, stop: int) -> set[int]:
        """The ordinals in start ≤ i < stop that are not done; reads their words."""
        return self._reading.pending_between(batch_id, start, stop)

    def failed_among(self, batch_id: int, ordinals: Iterable[int]) -> set[int]:
        """Those ordinals of an exact batch that were marked as failed; reads their words."""
        return self._failed.among(batch_id, ordinals)

    def clear(
        self, shares: Mapping[int, Sequence[Bits]], *, values: Values = NO_VALUES
    ) -> Sequence[BitsCleared]:
        """Clear bits that the caller has coalesced itself; see ``Clearing.clear``."""
        return self._clearing.clear(shares, values=values)

    def refresh(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        """Read batches as they are now; from here on this process uses no older rows of them.

        Raises:
            BatchNotFound: a batch does not exist.
            BatchGone: a batch is past its lifetime.
        """
        return self._known.refresh(batch_ids)

    # Called by the functions behind streams, alarms and schedules.

    def heal(self, finished: Collection[WordKey]) -> None:
        """Settle finished words again; see ``Settler.heal``."""
        self._settler.heal(finished)

    def announce(self, batch: Batch) -> None:
        """Publish the end of a batch; see ``notices.announce``."""
        announce(self.ports, self, self._as_of(batch), batch, self._kinds)

    def tell(self, before: Batch, batch: Batch, *, again: bool = False) -> None:
        """Publish what a change of a live batch tells of it before its end; may be repeated.

        Args:
            before: the row before the change.
            batch: the row after it.
            again: whether others may have been announced meanwhile, since this failed before. Then nothing is
                told of a batch that has ended, as its end was.
        """
        if again:
            row = self.ports.batches.read([batch.batch_id]).get(batch.batch_id)
            if row is None or row.state.terminal:
                return
        tell_early(self.ports, self._as_of(batch), batch, before=before)

    def _as_of(self, batch: Batch, *, redrives: bool = False) -> LedgerService:
        """A ledger that reads this batch as its row was, also if it was removed since."""
        pinned = PinnedBatch(self.ports.batches, self.ports.clock, batch)
        return LedgerService(self.ports, known=pinned, redrives=redrives)

    def _event_of(self, batch: Batch) -> Event:
        return event_of(self.ports, self._as_of(batch, redrives=True), batch, self._kinds)

    def _early_of(self, batch: Batch, told: Told) -> Event:
        return early_event(self.ports, self, batch, told)

    def meet_deadline(self, batch_id: int) -> Batch | None:
        """End a batch whose deadline has come; see ``deadlines.meet_deadline``."""
        return meet_deadline(self.ports, self._settler, batch_id, self._postpone)

    def reap(self, *, stop_at: int | None = None, report: Report | None = None) -> Reaped:
        """Check due batches; see ``reaper.reap``."""
        return reap(
            self.ports,
            self._settler,
            self._postpone,
            self._end_of,
            look=lambda batch: self._teller.look(self._tolerating.look(batch)),
            stalled=self._kinds.stalled,
            stop_at=stop_at,
            report=report,
        )

    def _postpone(self, batch: Batch) -> Batch | None:
        postpone = self._kinds.due.get(batch.kind)
        return None if postpone is None else postpone(self, batch)

    def _end_of(self, batch: Batch) -> State | None:
        end_of = self._kinds.idle.get(batch.kind)
        return State.ORPHANED if end_of is None else end_of(self, batch)
