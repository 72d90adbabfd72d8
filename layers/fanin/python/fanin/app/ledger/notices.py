"""Announcing the end of a batch: to its parent, to the event bus, to its alarm, and to its targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Protocol

from fanin.app.api import Ledger
from fanin.app.attention import look_again
from fanin.app.ledger.early_events import tell_early, told_at_end
from fanin.app.ledger.end_events import end_event
from fanin.app.ledger.failed import Failed
from fanin.app.ledger.held import Held
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.walk import Totals
from fanin.app.ports import Ports
from fanin.app.ports.batches import ItemPlace
from fanin.app.ports.events import Event
from fanin.app.ports.words import Tally
from fanin.app.targets.jobs import send_jobs
from fanin.domain import plurals
from fanin.domain.batch import Batch, ChildFailures, State
from fanin.domain.ids import parse_item
from fanin.domain.marks import Done, Failure, Mark, Marked
from fanin.domain.totals import MAX_CHILD_SUM
from fanin.errors import GONE

END_READS = 10_000
"""How many rows are read at most to count the items that are held, or have failed, when a batch has ended."""


class ParentMarker(Protocol):
    """Marks the parent items of batches that have ended."""

    def mark(self, marks: Sequence[Mark]) -> Marked:
        """Mark parent items as failed."""
        ...

    def mark_parent(self, mark: Done | Failure, *, exact: bool) -> Marked:
        """Mark a parent item, and add the sums of its complete child to the totals of its batch."""
        ...


def announce(ports: Ports, ledger: ParentMarker, ended: Ledger, batch: Batch, kinds: Kinds) -> None:
    """Mark the parent item of an ended batch, delete the alarm, publish the event, and have targets told.

    What was to be told before the end, and was not noticed while the batch lived, is told right before it.

    If a person should look at the batch, it is listed from here on.

    Every step is tried, whatever became of those before it. Every step may be repeated: the acknowledgement
    is idempotent, and the event's id consists of batch and state, so that a consumer can drop a repeat.

    Args:
        ports: the bus and the alarms.
        ledger: marks the parent item.
        ended: lists failed and missing items of the batch, which may have been removed since.
        batch: the row, in its terminal state.
        kinds: hooks of the patterns, which may change the event.

    Raises:
        Throttled: a store or the bus is overloaded; call again.
        ServiceUnavailable: the bus did not accept the event; call again.
        ExceptionGroup: several steps failed.
    """
    steps: list[Callable[[], object]] = []
    if batch.parent_item is not None:
        steps.append(partial(_acknowledge_parent, ports, ledger, batch, batch.parent_item))
    if batch.deadline is not None:
        steps.append(partial(ports.timers.clear, batch.batch_id))
    event = cache(lambda: event_of(ports, ended, batch, kinds))
    # In one step, so that nothing is told of the batch once its end was.
    steps.append(lambda: _publish(ports, ended, batch, event()))
    if batch.targets:
        steps.append(lambda: send_jobs(ports, batch, event(), range(batch.targets)))
    steps.append(partial(look_again, ports, batch))
    if tell := kinds.announced.get(batch.kind):
        steps.append(partial(tell, batch))
    errors: list[Exception] = []
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001  one failing step must not stop the others
            errors.append(error)
    if len(errors) > 1:
        raise ExceptionGroup(
            f"{len(errors)} of {len(steps)} steps to announce the end of batch {batch.batch_id} failed;"
            " announce it again, since every step may be repeated",
            errors,
        )
    if errors:
        raise errors[0]


def _publish(ports: Ports, ended: Ledger, batch: Batch, event: Event) -> None:
    tell_early(ports, ended, told_at_end(batch, event), before=batch)
    ports.events.publish(event)


def event_of(ports: Ports, ended: Ledger, batch: Batch, kinds: Kinds) -> Event:
    """The event of the end of a batch, as it is published and as targets are told."""
    counted = Totals(ports).counted(Held(ports).counted(batch, budget=END_READS))
    at = batch.ended_at or ports.clock.now()
    event = end_event(ended, batch, counted=counted, at=at, on_end=kinds.ended.get(batch.kind))
    return event._replace(id=ports.defaults.event_prefix + event.id)


def _acknowledge_parent(ports: Ports, ledger: ParentMarker, batch: Batch, item: str) -> None:
    """Mark the parent item done if its child succeeded, else failed, unless another batch decides about it.

    A batch that was never used marks nothing, because its producer may not know of it. But if it took the
    place of one that was used, that one has failed the item. A batch whose own place was taken marks nothing.
    """
    if not batch.used and batch.instead_of is None:
        return
    block, ordinal = parse_item(item)
    # The note lives no longer than the child; its event may come when it has expired.
    if ports.batches.child_of(ItemPlace(block.batch_id, ordinal)) not in {None, batch.batch_id}:
        return
    with suppress(*GONE):  # the parent batch was removed
        if not batch.used:
            why = f"batch {batch.instead_of} did not complete, nor was it tried again"
            ledger.mark([Failure(item, why)]).whole()
        elif batch.state is State.COMPLETE:
            mark, exact = _of_complete(ports, batch, item, block.batch_id)
            ledger.mark_parent(mark, exact=exact).whole()
        else:
            ledger.mark([Failure(item, f"batch {batch.batch_id} ended as {batch.state}")]).whole()


def _of_complete(ports: Ports, batch: Batch, item: str, parent_id: int) -> tuple[Done | Failure, bool]:
    """What a complete child makes of its parent item. It brings its sums to the totals of the same names.

    Returns:
        The mark, and whether its sums are exact. Those of an estimated child are not, nor those of a partial
        one that takes too many reads; one that is too large to be added is left out.
    """
    child = Failed(ports).counted(batch, Tally(whole=False), budget=END_READS)
    parent = ports.batches.read([parent_id]).get(parent_id) if child.totals or not child.succeeded else None
    if parent is None:
        return Done(item), True
    child = Totals(ports).counted(child)
    common = {name: child.totals[name] for name in parent.totals if name in child.totals}
    fitting = {name: total for name, total in common.items() if abs(total) <= MAX_CHILD_SUM}
    exact = not common or (child.totals_exact and len(fitting) == len(common))
    if child.succeeded or parent.child_failures is ChildFailures.IGNORE:
        return Done(item, fitting), exact
    least = "at least " if child.failed_more else ""
    why = f"batch {child.batch_id} completed with {least}{plurals.counted(child.failed, 'failed item')}"
    return Failure(item, why, totals=fitting), exact
