"""The reaper: checks live batches that are due, completes the done ones, and ends the idle ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from fanin.app.ledger.deadlines import meet_deadline
from fanin.app.ledger.settle import Settler
from fanin.app.ports import Ports
from fanin.app.ports.batches import Activity
from fanin.domain.batch import LIVE, Batch, State


@dataclass(frozen=True, slots=True)
class Reaped:
    """What one run of the reaper did.

    Attributes:
        seen: live batches that were due.
        settled: completed here because all items were done: a process or a stream record was lost.
        timed_out: ended by a deadline whose alarm was lost, or by their pattern's idle time.
        orphaned: ended because they were idle, or past their lifetime.
        spared: idle, but kept by their pattern, such as frames whose sender was asked to repeat.
        stuck: how many of the orphaned were closed, so that their producers may be waiting for them.
        more: whether the budget ended the run, and more may be due.
    """

    seen: int = 0
    settled: int = 0
    timed_out: int = 0
    orphaned: int = 0
    spared: int = 0
    stuck: int = 0
    more: bool = False


def reap(
    ports: Ports,
    settler: Settler,
    postpone: Callable[[Batch], Batch | None],
    end_of: Callable[[Batch], State | None],
    *,
    budget: int = 1_000,
) -> Reaped:
    """Check about ``budget`` due batches, whole pages at a time; the next run finds the rest.

    Args:
        ports: the stores.
        settler: completes batches whose items are all done.
        postpone: see ``meet_deadline``.
        end_of: gives the state in which an idle batch ends, or None if its pattern spares it.
        budget: how many batches to check.
    """
    total = Reaped()
    for state in LIVE:
        cursor: str | None = None
        while True:
            page = ports.batches.page(state, due_before=ports.clock.now(), cursor=cursor)
            for batch in page.batches:
                total = _reap(
                    ports, settler, postpone, end_of, batch=batch, total=replace(total, seen=total.seen + 1)
                )
            cursor = page.cursor
            if cursor is None:
                break
            if total.seen >= budget:
                return replace(total, more=True)
    return total


def _reap(
    ports: Ports,
    settler: Settler,
    postpone: Callable[[Batch], Batch | None],
    end_of: Callable[[Batch], State | None],
    *,
    batch: Batch,
    total: Reaped,
) -> Reaped:
    now = ports.clock.now()
    if batch.deadline is not None and batch.deadline + 60_000 <= now:
        after = meet_deadline(ports, settler, batch.batch_id, postpone)
        ended = after is not None and after.state.terminal
        return replace(total, timed_out=total.timed_out + ended)
    if settler.finish(batch).state.terminal:
        return replace(total, settled=total.settled + 1)
    if batch.idle_at > now:
        ports.batches.touch(batch.batch_id, Activity(batch.touched_at, batch.look_at(now)))
        return total
    state = end_of(batch)
    if state is None:
        return replace(total, spared=total.spared + 1)
    # Only from the state that was checked: after a close in between, the batch has not been idle for long.
    _, moved = ports.batches.end(
        batch.batch_id, state, now=now, sources=(batch.state,), touched_at=batch.touched_at
    )
    if state is State.TIMED_OUT:
        return replace(total, timed_out=total.timed_out + moved)
    stuck = moved and batch.state is State.CLOSED
    return replace(total, orphaned=total.orphaned + moved, stuck=total.stuck + stuck)
