"""The reaper: checks live batches that are due, completes or ends them, and tells of stalls."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from fanin.app.api import Ledger
from fanin.app.ledger.watching import Watching
from fanin.app.ports.batches import Activity
from fanin.domain.batch import ALARM_LATE, LIVE, Batch, OnDeadline, State, Trouble
from fanin.domain.diagnosis import Code

Report: TypeAlias = Callable[[int, Exception], None]
"""Called with the id of a batch that could not be handled, and the reason."""


@dataclass(frozen=True, slots=True)
class Reaped:
    """What one run of the reaper did.

    Attributes:
        seen: live batches that were due.
        settled: completed here because all items were done: a process or a stream record was lost.
        timed_out: ended by a deadline whose alarm was lost, or by their pattern's idle time.
        cancelled: ended because more items failed than they tolerate.
        orphaned: ended because they were idle, or past their lifetime.
        spared: idle, but kept by their pattern, such as frames whose sender was asked to repeat.
        stalled: told as stalled: without activity for their ``stall_after``, and not for a good reason.
        stuck: how many of the orphaned were closed, so that their producers may be waiting for them.
        unfinished: had more to repair than one inspection may; the next run goes on with them.
        failed: could not be handled; the next run tries them again.
        more: whether time ended the run, and more are due.
    """

    seen: int = 0
    settled: int = 0
    timed_out: int = 0
    cancelled: int = 0
    orphaned: int = 0
    spared: int = 0
    stalled: int = 0
    stuck: int = 0
    unfinished: int = 0
    failed: int = 0
    more: bool = False


EARLY_MS = 2_000
"""How early an alarm may ring, since the clocks of two services differ."""


class Reaping(Watching, Ledger):
    """Ends batches whose time has come: by their alarms, and by the reaper's runs."""

    def meet_deadline(self, batch_id: int) -> Batch | None:
        """End a batch whose deadline has come, unless all its items are done or its pattern postpones it.

        May be called at any time and any number of times: a batch that is unknown, or has ended, or whose
        deadline lies ahead stays as it is.

        Returns:
            The row afterwards; None if there is no such batch. It is still live if its pattern postponed it,
            or if more must be repaired than one inspection may: the reaper goes on with it.
        """
        batch = self.ports.batches.read([batch_id]).get(batch_id)
        now = self.ports.clock.now()
        if batch is None or batch.state.terminal or batch.deadline is None or now < batch.deadline - EARLY_MS:
            return batch
        batch, certain = self.inspect(batch)
        if batch.state.terminal or not certain:
            return batch
        if (later := self._kinds.due(self, batch)) is not None:
            return later
        partial = batch.on_deadline is OnDeadline.COMPLETE
        state = State.COMPLETE if partial else State.TIMED_OUT
        row, _ = self.ports.batches.end(batch_id, state, now=now, sources=LIVE, partial=partial)
        return row

    def reap(self, *, stop_at: int | None = None, report: Report | None = None) -> Reaped:
        """Check the batches that are due, the longest due first; the next run finds the rest.

        Each batch is handled on its own. One that cannot be handled is due again in the next run, behind all
        that are due now.

        Args:
            stop_at: time after which no further batch is begun, ms; None checks all of them.
            report: told of each batch that could not be handled; None raises their errors at the end.

        Raises:
            ExceptionGroup: some batches could not be handled, and there is no ``report``.
        """
        counts: Counter[str] = Counter()
        errors: list[Exception] = []
        more = False
        for batch_id in self.ports.batches.due(self.ports.clock.now()):
            if more := stop_at is not None and self.ports.clock.now() >= stop_at:
                break
            try:
                counts.update(self._check(batch_id))
            except Exception as error:  # noqa: BLE001  the batches behind it must be checked all the same
                counts.update(("seen", "failed"))
                if report is None:
                    errors.append(error)
                else:
                    report(batch_id, error)
        if errors:
            raise ExceptionGroup(
                f"the reaper could not handle {len(errors)} of the batches that are due", errors
            )
        return Reaped(**counts, more=more)

    # Each of these returns the fields of ``Reaped`` in which a batch counts.

    def _check(self, batch_id: int) -> Sequence[str]:
        """Complete, end or spare a batch that the index lists as due, as its row is now."""
        batch = self.ports.batches.read([batch_id]).get(batch_id)
        if batch is None or batch.state.terminal:
            return ()  # the index lags behind the rows
        try:
            return "seen", *self._checked(batch)
        except Exception:
            with suppress(Exception):  # if this fails, the batch stays due, and the next run begins with it
                self._queue_again(batch)
            raise

    def _checked(self, batch: Batch) -> Sequence[str]:
        now = self.ports.clock.now()
        if batch.deadline is not None and batch.deadline + ALARM_LATE <= now:
            return self._late(batch)
        batch, certain = self.inspect(batch)
        if batch.state.terminal:
            return ("settled",)
        if not certain:
            return self._queue_again(batch)
        if (batch := self.look(batch)).state.terminal:
            return ("cancelled",)
        return self._spare(batch, now) if batch.idle_at > now else self._end(batch, now)

    def _spare(self, batch: Batch, now: int) -> Sequence[str]:
        if batch.stalled(now):
            return self._tell_stall(batch, now)
        self.ports.batches.touch(batch.batch_id, Activity(batch.touched_at, batch.look_at(now)))
        return ()

    def _late(self, batch: Batch) -> Sequence[str]:
        after = self.meet_deadline(batch.batch_id)
        if after is None or after.state is State.CANCELLED:
            return ()
        if after.state.terminal:
            return ("settled",) if after.state is State.COMPLETE and not after.partial else ("timed_out",)
        return () if after.deadline != batch.deadline else self._queue_again(batch)

    def _end(self, batch: Batch, now: int) -> Sequence[str]:
        state = self._kinds.idle(self, batch)
        if state is None:
            return ("spared",)
        if not self._end_idle(batch, state, now):
            return ()
        if state is State.TIMED_OUT:
            return ("timed_out",)
        return ("orphaned", "stuck") if batch.waited_for else ("orphaned",)

    def _tell_stall(self, batch: Batch, now: int) -> Sequence[str]:
        """Tell of a stall, unless the batch waits for a good reason: then look again later.

        A look costs up to a hundred reads and requests to queues, and a batch may hold items for days. So
        the pause is as long as the batch has been quiet, which doubles it each time.

        The event comes first. If the process dies before the mark, the next run tells it again with the same
        id, so that it is never lost.
        """
        event = self._kinds.stalled(batch)
        after = replace(batch, stall_told=batch.touched_at).look_at(now)
        if event is None:
            pause = now - batch.active_until(now)
            self.ports.batches.touch(batch.batch_id, Activity(batch.touched_at, min(after, now + pause)))
            return ()
        self.ports.events.publish(event)
        finding = cast("Mapping[str, str]", event.detail["finding"])
        dead = finding["code"] == Code.DEAD_LETTERS_WAITING
        trouble = Trouble.DEAD_LETTERS if dead else Trouble.STALLED
        activity = Activity(batch.touched_at, after)
        self.ports.batches.tell_stall(batch.batch_id, activity, trouble, finding["title"])
        return ("stalled",)

    def _queue_again(self, batch: Batch) -> Sequence[str]:
        """Make the batch due now, and so the last of all that are due, so that it holds up no other."""
        self.ports.batches.touch(batch.batch_id, Activity(batch.touched_at, self.ports.clock.now()))
        return ("unfinished",)
