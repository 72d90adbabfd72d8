"""Giving up a batch in which too much fails.

Each failing request adds its failures to a hint on the batch row. Where the hint says that there may be too
many, they are counted, and what was counted decides. A hint that was lost, or added twice, delays the count
or makes it come early, and never decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from fanin.app.ledger.held import Held
from fanin.app.ledger.inspection import inspect
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.reading import Reading
from fanin.app.ledger.settle import Settler
from fanin.app.ports import Ports
from fanin.domain.batch import LIVE, Batch, Cause, State
from fanin.domain.failures import Tolerance
from fanin.domain.marks import Receipt
from fanin.errors import GONE, ServiceUnavailable, Throttled

BUDGET: Final = 10_000
"""How many rows one count of failures, and one count of what is done, reads at most."""
_MOST: Final = 1_000
"""Batches whose last count a process remembers."""


class Tolerating:
    """Counts failures where a batch tolerates only some, and ends it beyond them.

    Args:
        ports: the stores.
        known: batch rows that this process remembers.
        settler: completes a batch of which every item is done before it is given up.
        reading: counts what is done.
    """

    def __init__(self, ports: Ports, known: KnownBatches, settler: Settler, reading: Reading) -> None:
        self._ports = ports
        self._known = known
        self._settler = settler
        self._reading = reading
        self._held = Held(ports)
        self._next: dict[tuple[int, Tolerance], int] = {}

    def note(self, receipts: Sequence[Receipt], batches: Mapping[int, Batch]) -> list[Receipt]:
        """Take note of the failures of a request, and end the batches in which they are too many.

        Args:
            receipts: of the request; those of batches without a tolerance cost nothing.
            batches: the rows.

        Returns:
            The receipts, with the states as they are now.
        """
        return [
            self._noted(receipt, batches[receipt.batch_id]) if receipt.failed or receipt.held else receipt
            for receipt in receipts
        ]

    def _noted(self, receipt: Receipt, batch: Batch) -> Receipt:
        tolerance, failures = batch.tolerated_failures, receipt.failed + receipt.held
        if tolerance is None or receipt.state.terminal:
            return receipt
        # The items are marked. Whoever fails next, or the reaper, makes up for a hint that was not written.
        with suppress(Throttled, ServiceUnavailable, *GONE):
            row = self._ports.batches.hint_failures(batch.batch_id, failures)
            if row is not None and row.failing > self._next.get(
                (row.batch_id, tolerance), tolerance.allowed(0)
            ):
                row = self.look(row)
                return replace(receipt, state=row.state, complete=row.state is State.COMPLETE)
        return receipt

    def look(self, batch: Batch) -> Batch:
        """Count the failures of a batch, and end it if they are too many for certain.

        Args:
            batch: the row, as it is now; one without a tolerance, or that has ended, costs nothing.

        Returns:
            The row afterwards.
        """
        tolerance = batch.tolerated_failures
        if tolerance is None or batch.state.terminal or not batch.items:
            return batch
        # Failures are counted before what is done. Items that were held then are in both counts, although a
        # redrive may have taken them since: so the share that is compared is at most the one of that time.
        failed, held = self._failures(batch)
        least, most = (0, batch.items) if tolerance.percent is None else self._done(batch, held)
        if not tolerance.exceeded(failed, done_min=least, done_max=most):
            self._postpone(batch, tolerance, failed, least)
            return batch
        batch, certain = inspect(self._ports, self._settler, batch)
        if batch.state.terminal or not certain:
            return batch
        row, _ = self._ports.batches.end(
            batch.batch_id,
            State.CANCELLED,
            now=self._ports.clock.now(),
            sources=LIVE,
            cause=Cause.FAILURES,
        )
        return batch if row is None else self._known.remember(row)

    def failures(self, batch: Batch) -> int:
        """At least so many items have failed or are held."""
        return self._failures(batch)[0]

    def _failures(self, batch: Batch) -> tuple[int, Batch]:
        """At least so many items have failed or are held; and the row with those that are held."""
        failed = self._reading.failed(batch, budget=BUDGET)
        held = self._held.counted(batch, budget=BUDGET)
        return failed + held.held, held

    def _done(self, batch: Batch, before: Batch) -> tuple[int, int]:
        """How many items are done at least and at most; held ones count.

        An item that is held may be done at any time. Those that were held before the count of done items make
        the upper bound, and those that are held after it the lower one, so neither misses it.

        Args:
            batch: the row.
            before: the row with the items that were held when failures were counted.
        """
        progress = self._reading.progress(batch, budget=BUDGET)
        least = progress.done_min + self._held.counted(batch, budget=BUDGET).held
        if before.held_more:
            return least, batch.items
        return least, min(batch.items, progress.done_max + before.held)

    def _postpone(self, batch: Batch, tolerance: Tolerance, failed: int, done: int) -> None:
        """Remember up to which hint another count would find the batch within its tolerance.

        Where failures stay close below the bound, they are counted again when they have grown by a fiftieth.
        """
        room = max(tolerance.allowed(done) - failed, failed // 50)
        self._next.pop((batch.batch_id, tolerance), None)
        while len(self._next) >= _MOST:
            del self._next[next(iter(self._next))]
        self._next[batch.batch_id, tolerance] = batch.failing + max(0, room)
