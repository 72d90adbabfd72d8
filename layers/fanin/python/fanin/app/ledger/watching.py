"""Watching a live batch: giving it up where too much fails, and telling of it before its end.

Each failing request adds its failures to a hint on the batch row. Where the hint says that there may be too
many, they are counted, and what was counted decides. A hint that was lost, or added twice, delays the count
or makes it come early, and never decides.

Before its end it is told that a batch fails, that it waits for a person, how far it is. Each is one attribute
of the row, written once and only while the batch lives. The stream of the rows has it published, exactly as
it has ends published; see ``announcing``. What nobody has noticed while the batch lived is told with its end.

No row counts what is done, so progress is counted where an acknowledgement passes one of ``LOOKS`` places of
the batch. Any order of the items meets these evenly, and other acknowledgements read nothing.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Final

from fanin.app.ledger.reading import STATUS_READS, Reading
from fanin.app.ledger.walk import BUDGET, Walk
from fanin.app.ports.batches import Telling
from fanin.app.ports.parts import FailureRow
from fanin.domain.batch import LIVE, WHOLE, Batch, Cause, State, Trouble
from fanin.domain.failures import Tolerance
from fanin.domain.latest import Latest
from fanin.domain.marks import Receipt
from fanin.errors import GONE, ServiceUnavailable, Throttled

LOOKS: Final = 32
"""How many items of a batch with milestones are followed by a count of what is done."""
COUNTED: Final = 16_000
"""How many words one such count reads at most: all that a million items have."""
WAITS_FAILING: Final = 67
"""Rows that are read at most to see whether only held items are left, after a failure.

Many may follow each other; the reaper, which reads up to ``BUDGET``, makes up for what that misses.
"""
_MOST: Final = 1_000
"""Batches whose last count a process remembers."""


class Watching(Reading):
    """Ends a batch that has more failures than it tolerates; notices what is told of one before its end."""

    @cached_property
    def _next(self) -> Latest[tuple[int, Tolerance], int]:
        """Of batches that are within their tolerance: the hint up to which another count would say so."""
        return Latest(_MOST)

    def _note_failures(self, receipt: Receipt, batch: Batch) -> Receipt:
        """Take note of the failures of a request, and end the batch if they are too many.

        Returns:
            The receipt, with the state as it is now.
        """
        tolerance, failures = batch.tolerated_failures, receipt.failed + receipt.held
        if tolerance is None or not failures or receipt.state.terminal:
            return receipt
        # The items are marked. Whoever fails next, or the reaper, makes up for a hint that was not written.
        with suppress(Throttled, ServiceUnavailable, *GONE):
            row = self.ports.batches.hint_failures(batch.batch_id, failures)
            known = self._next.get((batch.batch_id, tolerance), tolerance.allowed(0))
            if row is not None and row.failing > known:
                row = self._tolerate(row)
                return replace(receipt, state=row.state, complete=row.state is State.COMPLETE)
        return receipt

    def _tolerate(self, batch: Batch) -> Batch:
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
        least, most = (0, batch.items) if tolerance.percent is None else self._done_bounds(batch, held)
        if not tolerance.exceeded(failed, done_min=least, done_max=most):
            # Counted again at the hint that may exceed it; close below that, after a fiftieth more failures.
            room = max(tolerance.allowed(least) - failed, failed // 50)
            self._next[batch.batch_id, tolerance] = batch.failing + max(0, room)
            return batch
        batch, certain = self.inspect(batch)
        if batch.state.terminal or not certain:
            return batch
        batch_id, now, cause = batch.batch_id, self.ports.clock.now(), Cause.FAILURES
        row, _ = self.ports.batches.end(batch_id, State.CANCELLED, now=now, sources=LIVE, cause=cause)
        return batch if row is None else self._known.remember(row)

    def _failures(self, batch: Batch) -> tuple[int, Batch]:
        """At least so many items have failed or are held; and the row with those that are held."""
        walk = Walk(self.ports, batch, budget=BUDGET).finish()
        tally = walk.tally if walk.stopped_at is None else walk.tally._replace(whole=False)
        failed = self._failed.counted(replace(batch, failed_more=True), tally, budget=BUDGET).failed
        held = self._held.counted(batch, budget=BUDGET)
        return failed + held.held, held

    def _done_bounds(self, batch: Batch, before: Batch) -> tuple[int, int]:
        """How many items are done at least and at most; held ones count.

        An item that is held may be done at any time. Those that were held before the count of done items make
        the upper bound, and those that are held after it the lower one, so neither misses it.

        Args:
            batch: the row.
            before: the row with the items that were held when failures were counted.
        """
        walk = Walk(self.ports, batch, budget=BUDGET).finish()
        least = most = batch.items - walk.pending
        if walk.stopped_at is not None:
            bounds = self._bounds(batch, STATUS_READS - 1)
            least, most = bounds.done_min, bounds.done_max
        least += self._held.counted(batch, budget=BUDGET).held
        return least, batch.items if before.held_more else min(batch.items, most + before.held)

    def _note_failed(self, batch: Batch) -> None:
        """Note that items of a batch have failed, or are held; never fails.

        Their marks are settled. Whoever fails next, the reaper or the end makes up for what was not noted.
        """
        with suppress(Throttled, ServiceUnavailable, *GONE):
            batch = self._failing(batch)
            if batch.may_wait:
                self._waiting(batch, WAITS_FAILING)

    def _note_marked(self, batch: Batch, spans: Iterable[tuple[int, int]]) -> None:
        """Note the progress of a batch, if items were marked where that is to be counted; never fails.

        Args:
            batch: the row.
            spans: what was marked, as ordinals: start and stop.
        """
        if batch.next_milestone is None:
            return
        stride = max(1, batch.items // LOOKS)
        if any((stop - 1) // stride > (start - 1) // stride for start, stop in spans):
            with suppress(Throttled, ServiceUnavailable, *GONE):
                self._tell_progress(batch)

    def look(self, batch: Batch) -> Batch:
        """Look whether too much failed in a batch, or something is to be told of it.

        Args:
            batch: the row, as it is now; one without a tolerance, holds and milestones costs nothing.

        Returns:
            The row afterwards.
        """
        batch = self._tolerate(batch)
        if batch.may_wait:
            batch = self._waiting(batch, BUDGET)
        return batch if batch.next_milestone is None else self._tell_progress(batch)

    def _failing(self, batch: Batch) -> Batch:
        if batch.failing_at is not None or batch.state.terminal:
            return batch
        trouble = Trouble.HELD if batch.holds else Trouble.FAILING
        return self._tell(batch, Telling("failing_at", self.ports.clock.now(), trouble))

    def _waiting(self, batch: Batch, budget: int) -> Batch:
        if not self._only_held(batch, budget):
            return batch
        if batch.draining and (row := self._known.current(batch.batch_id)).items > batch.items:
            return row  # those that were added meanwhile may be pending
        batch = self._failing(batch)
        return self._tell(batch, Telling("waiting_at", self.ports.clock.now()))

    def _only_held(self, batch: Batch, budget: int) -> bool:
        """Whether items are pending, and all of them are held for certain; the first that is not ends it."""
        walk = Walk(self.ports, batch, budget=budget // 3, chunk=1)
        notes: dict[int, FailureRow] = {}
        for level, number, word, _ in walk:
            if level == 0:
                found = list(self._tree.children(0, number, word, batch.items))
                own = self.ports.parts.notes(batch.batch_id, found)
                if len(own) < len(found):
                    return False
                notes |= own
        if not notes or walk.stopped_at is not None:
            return False
        return len(self._held.takings(batch, list(notes.values())).free) == len(notes)

    def _tell_progress(self, batch: Batch) -> Batch:
        walk = Walk(self.ports, batch, budget=COUNTED, chunk=COUNTED).finish()
        percent = min((batch.items - walk.pending) * WHOLE // max(1, batch.items), WHOLE - 1)
        reached = [one for one in batch.milestones if batch.milestone < one <= percent]
        if not reached:
            return batch
        row = self._known.current(batch.batch_id)
        if row.milestones != batch.milestones:
            return row  # this process did not know of a change; the next look does
        return self._tell(row, Telling("milestone", reached[-1]))

    def _tell(self, batch: Batch, told: Telling) -> Batch:
        if (row := self.ports.batches.tell(batch.batch_id, told)) is None:
            return self._known.current(batch.batch_id)  # others were first
        return self._known.remember(row)

    def _end_idle(self, batch: Batch, state: State, now: int) -> bool:
        """End it only as it was checked: after a close or a drain in between, it was not idle for long."""
        return self.ports.batches.end(batch.batch_id, state, now=now, sources=(batch.state,), quiet=batch)[1]
