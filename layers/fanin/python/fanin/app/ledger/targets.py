"""The targets of a batch, as callers of the ledger see them: read them, and have parked ones told again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fanin.app.ledger.early_events import told_at_end
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ports import Ports
from fanin.app.ports.events import Event
from fanin.app.targets.jobs import send_jobs
from fanin.app.targets.records import change, read_targets
from fanin.domain.batch import Batch, Told
from fanin.domain.targets import PATIENCE_MS, TargetReports, TargetState
from fanin.errors import InvalidRequest

LOST_MS: Final = PATIENCE_MS + 7_200_000
"""How long after the end a target that is still tried has lost its job: a day, a last pause, and an hour."""


class TargetsOfBatches:
    """Reads and repeats targets.

    Args:
        ports: the stores.
        known: reads batches.
        event_of: makes the event of an ended batch.
        early_of: makes an event that was told before its end.
    """

    def __init__(
        self,
        ports: Ports,
        known: KnownBatches,
        event_of: Callable[[Batch], Event],
        early_of: Callable[[Batch, Told], Event],
    ) -> None:
        self._ports = ports
        self._known = known
        self._event_of = event_of
        self._early_of = early_of

    def report(self, batch_id: int) -> TargetReports:
        """Read the targets of a batch."""
        batch = self._known.current(batch_id)
        found = read_targets(self._ports.records, batch_id, range(batch.targets))
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
        found = read_targets(self._ports.records, batch_id, range(batch.targets))
        lost = self._ports.clock.now() - (batch.ended_at or 0) >= LOST_MS
        waiting = [kept for kept in found if not kept.state.settled or kept.state is TargetState.PARKED]
        once = [kept.number for kept in waiting if kept.state is TargetState.FAILED and not lost]
        if waiting:
            event = self._event_of(batch)
            ends = [kept.number for kept in waiting if not kept.target.when.early]
            send_jobs(self._ports, batch, event, ends, once=once)
            for told in told_at_end(batch, event).told:
                early = self._early_of(batch, told)
                numbers = [
                    k.number
                    for k in waiting
                    if k.target.when.value == told.kind.value and early.id not in k.told
                ]
                send_jobs(self._ports, batch, early, numbers, once=once)
        for kept in waiting:
            if kept.state is TargetState.PARKED:
                change(self._ports.records, batch_id, kept, state=TargetState.PENDING)
        return self.report(batch_id)
