"""The ledger: its use cases in one class, over any ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fanin.app.failures import forget
from fanin.app.ledger.adding import Adding
from fanin.app.ledger.announcing import announce, early_event, event_of, tell_early, told_at_end
from fanin.app.ledger.clearing import Clearing
from fanin.app.ledger.failures import Leaving
from fanin.app.ledger.known_batches import PinnedBatch
from fanin.app.ledger.lifecycle import Lifecycle
from fanin.app.ledger.marking import Marking
from fanin.app.ledger.opening import Opening
from fanin.app.ledger.reaper import Reaping
from fanin.app.targets.records import change, read_targets, send_jobs
from fanin.domain.batch import Batch
from fanin.domain.targets import PATIENCE_MS, TargetReports, TargetState
from fanin.errors import InvalidRequest

if TYPE_CHECKING:
    from fanin.domain.picture import Picture

LOST_MS: Final = PATIENCE_MS + 7_200_000
"""How long after the end a target that is still tried has lost its job: a day, a last pause, and an hour."""


class LedgerService(Opening, Adding, Marking, Clearing, Lifecycle, Leaving, Reaping):
    """Implements ``fanin.app.api.Ledger`` over ports, and the background work of streams and schedules."""

    def picture(self, batch_id: int, *, level: int | None = None, number: int = 0) -> Picture:
        from fanin.app.ledger.picture import picture  # noqa: PLC0415  only consoles ask for it

        return picture(self.ports, self._known.current(batch_id), level=level, number=number)

    def targets(self, batch_id: int) -> TargetReports:
        """Read the targets of a batch."""
        found = read_targets(self.ports.records, batch_id, range(self._known.current(batch_id).targets))
        return TargetReports(tuple(kept.report for kept in found))

    def redeliver(self, batch_id: int) -> TargetReports:
        """Tell those targets of an ended batch at once that were not told yet.

        Where a job still tries a target, another tries it once more, and not again. A job is lost if nobody
        has tried its target, or still seems to try it although its day is over.

        The jobs come first, then the records: a crash in between leaves jobs that do their work all the same.

        Raises:
            InvalidRequest: the batch has not ended.
        """
        batch = self._known.current(batch_id)
        if not batch.state.terminal:
            raise InvalidRequest(
                f"batch {batch_id} is {batch.state}; its targets are told when it ends, so wait, or cancel it"
            )
        found = read_targets(self.ports.records, batch_id, range(batch.targets))
        lost = self.ports.clock.now() - (batch.ended_at or 0) >= LOST_MS
        waiting = [kept for kept in found if not kept.state.settled]
        once = [kept.number for kept in waiting if kept.state is TargetState.FAILED and not lost]
        if waiting:
            event = event_of(self.ports, self._as_of(batch, redrives=True), batch, self._kinds)
            ends = [kept.number for kept in waiting if not kept.target.when.early]
            send_jobs(self.ports, batch, event, ends, once=once)
            for told in told_at_end(batch, event).told:
                early = early_event(self.ports, self, batch, told)
                wanting = (kept for kept in waiting if kept.target.when is told.kind)
                untold = [kept.number for kept in wanting if early.id not in kept.told]
                send_jobs(self.ports, batch, early, untold, once=once)
        for kept in waiting:
            if kept.state is TargetState.PARKED:
                change(self.ports.records, batch_id, kept, state=TargetState.PENDING)
        return self.targets(batch_id)

    # Called by the functions behind streams, alarms and schedules; ``heal`` is, too.

    def follow(self, old: Batch | None, new: Batch | None, *, again: bool = False) -> Batch | None:
        """Do what follows from a change of a row: announce an end, tell of a live batch, or forget one.

        A batch is removed by setting its time to live to now.

        Args:
            old: the row before the change; None if there was none.
            new: the row after it; None if it was deleted.
            again: whether others may have been announced meanwhile; see ``tell``.

        Returns:
            The batch, if it has ended with this change.
        """
        if new is None:
            return None
        if new.state.terminal and not (old and old.state.terminal):
            self.announce(new)
            return new
        if old and not new.state.terminal and new.told_since(old):
            self.tell(old, new, again=again)
        elif old and old.state.terminal and new.expires_at < old.expires_at:
            forget(self.ports, new)
        return None

    def announce(self, batch: Batch) -> None:
        """Publish the end of a batch; see ``announcing.announce``."""
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
