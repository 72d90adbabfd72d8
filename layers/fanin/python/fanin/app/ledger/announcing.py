"""Announcing a batch: its end, to parent, event bus, alarm and targets; and what is told of it before.

The event of the end is made of what a ledger says about the batch, and cut to what fits.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import Final

from fanin import names
from fanin.app.api import Ledger
from fanin.app.attention import look_again
from fanin.app.ledger.failed import Failed, Held
from fanin.app.ledger.kinds import Kinds
from fanin.app.ledger.marking import Marking
from fanin.app.ledger.walk import BUDGET, count_totals
from fanin.app.ports import Ports
from fanin.app.ports.batches import ItemPlace
from fanin.app.ports.events import Event
from fanin.app.ports.words import Tally
from fanin.app.targets.records import read_targets, send_jobs
from fanin.domain import limits
from fanin.domain.batch import WHOLE, Batch, ChildFailures, Mode, State, Told
from fanin.domain.ids import parse_item
from fanin.domain.marks import Done, Failure
from fanin.domain.paging import pages
from fanin.domain.reports import FailedItem
from fanin.domain.targets import When
from fanin.domain.totals import MAX_CHILD_SUM
from fanin.errors import GONE
from fanin.wire.batches import BATCH
from fanin.wire.items import MISSING_RANGE

LISTED: Final = 100
"""How many missing ranges and failed items an event lists; the API pages through the rest."""
QUOTED: Final = 256
"""How many characters of a reason an event quotes."""
COUNTED: Final = 100
"""How many pages of failed items are counted for an event, of up to 394 each; it says if there are more."""
FIRST_FAILURES: Final = 10
"""Failures that ``Batch Failing`` lists."""


def announce(ports: Ports, ledger: Marking, ended: Ledger, batch: Batch, kinds: Kinds) -> None:
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
    steps.append(partial(kinds.announced, batch))
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
    counted = count_totals(ports, Held(ports).counted(batch, budget=BUDGET))
    at = batch.ended_at or ports.clock.now()
    event = fitted(kinds.ended(ended, batch, end_event(ended, batch, counted=counted, at=at)))
    return event._replace(id=ports.defaults.event_prefix + event.id)


def _acknowledge_parent(ports: Ports, ledger: Marking, batch: Batch, item: str) -> None:
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
        mark, exact = _of_parent(ports, batch, item, block.batch_id)
        ledger.mark_parent(mark, exact=exact).whole()


def _of_parent(ports: Ports, batch: Batch, item: str, parent_id: int) -> tuple[Done | Failure, bool]:
    """What a child makes of its parent item. If complete, it brings its sums to the totals of the same names.

    Returns:
        The mark, and whether its sums are exact. Those of an estimated child are not, nor those of a partial
        one that takes too many reads; one that is too large to be added is left out.
    """
    if not batch.used:
        return Failure(item, f"batch {batch.instead_of} did not complete, nor was it tried again"), True
    if batch.state is not State.COMPLETE:
        return Failure(item, f"batch {batch.batch_id} ended as {batch.state}"), True
    child = Failed(ports).counted(batch, Tally(whole=False), budget=BUDGET)
    parent = ports.batches.read([parent_id]).get(parent_id) if child.totals or not child.succeeded else None
    if parent is None:
        return Done(item), True
    child = count_totals(ports, child)
    common = {name: child.totals[name] for name in parent.totals if name in child.totals}
    fitting = {name: total for name, total in common.items() if abs(total) <= MAX_CHILD_SUM}
    exact = not common or (child.totals_exact and len(fitting) == len(common))
    if child.succeeded or parent.child_failures is ChildFailures.IGNORE:
        return Done(item, fitting), exact
    least = "at least " if child.failed_more else ""
    why = f"batch {child.batch_id} completed with {least}{limits.counted(child.failed, 'failed item')}"
    return Failure(item, why, totals=fitting), exact


def end_event(ledger: Ledger, batch: Batch, *, counted: Batch, at: int) -> Event:
    """The event of the end of a plain batch, however large it is; see ``fitted``.

    Args:
        ledger: lists failed and missing items of the batch.
        batch: the row, in its terminal state.
        counted: the row, with its held items and its totals counted.
        at: when it ended, ms since the epoch.
    """
    detail = {**_shown(counted), **_failed(ledger, counted)}
    if batch.mode is Mode.EXACT and not batch.all_done:
        missing = ledger.missing(batch.batch_id, limit=LISTED)
        detail["missing"] = [MISSING_RANGE.encode(found) for found in missing.ranges]
        detail["missing_more"] = missing.cursor is not None
    return Event(f"{batch.batch_id}.{batch.state}", names.DETAIL_TYPES[batch.state], detail, at)


def _shown(batch: Batch) -> dict[str, object]:
    """The batch as the API shows it."""
    return {**BATCH.encode(replace(batch, attention=None))}


def fitted(event: Event) -> Event:
    """Cut the lists of an event that the bus would refuse for ever, and say so in its detail."""
    lists = {name: listed for name, listed in event.detail.items() if isinstance(listed, list)}
    most, fitted = LISTED, event
    while fitted.size > limits.MAX_ENTRY and most:
        most //= 2
        cut: dict[str, object] = {name: listed[:most] for name, listed in lists.items()}
        if cut.get("missing") != lists.get("missing"):
            cut["missing_more"] = True
        fitted = event._replace(detail={**event.detail, **cut, "truncated": True})
    return fitted


def _failed(ledger: Ledger, batch: Batch) -> Mapping[str, object]:
    """How many items failed (a lower bound if ``failed_more``), and the first of them."""
    count, more = 0, False
    listed: list[FailedItem] = []
    listing = pages(ledger.failures, batch.batch_id, limit=limits.MAX_PAGE)
    for page in islice(listing, COUNTED if batch.failed_more or batch.failed else 0):
        failed = [failure for failure in page.failures if not failure.held]
        count += len(failed)
        listed += failed[: LISTED - len(listed)]
        more = page.cursor is not None
        if not batch.failed_more and len(listed) == LISTED:
            break
    return {
        "failed": count if batch.failed_more else batch.failed,
        "failed_more": batch.failed_more and more,
        "failures": _quoted(listed),
    }


def _quoted(failures: Iterable[FailedItem]) -> list[dict[str, object]]:
    return [{"ordinal": one.ordinal, "item": one.item, "reason": one.reason[:QUOTED]} for one in failures]


def tell_early(ports: Ports, ledger: Ledger, batch: Batch, *, before: Batch) -> None:
    """Publish what is told of a batch by its row, and was not by the row before; may be repeated.

    Its targets that asked for that are told, too.

    Raises:
        Throttled, ServiceUnavailable: the bus did not accept an event; call again.
    """
    for told in batch.told_since(before):
        event = early_event(ports, ledger, batch, told)
        ports.events.publish(event)
        targets = read_targets(ports.records, batch.batch_id, range(batch.targets)) if batch.targets else ()
        if wanting := [one.number for one in targets if one.target.when is told.kind]:
            send_jobs(ports, batch, event, wanting)


def told_at_end(batch: Batch, event: Event) -> Batch:
    """The row of an ended batch as it would be if all had been noticed that its end shows.

    Args:
        batch: the row.
        event: of the end, which has counted failures and held items.
    """
    detail = event.detail
    failed = bool(detail["failed"] or detail["held"])
    whole = batch.state is State.COMPLETE and not batch.partial
    failing_at = batch.failing_at or (batch.ended_at if failed else None)
    return replace(batch, failing_at=failing_at, milestone=WHOLE if whole else batch.milestone)


def early_event(ports: Ports, ledger: Ledger, batch: Batch, told: Told) -> Event:
    """The event of what is told, with the batch as its row is."""
    detail = _shown(batch if told.kind is When.PROGRESS else Held(ports).counted(batch))
    if told.kind is When.PROGRESS:
        detail["percent"] = told.percent
    else:
        detail["failures"] = _quoted(ledger.failures(batch.batch_id, limit=FIRST_FAILURES).failures)
    name = f"{ports.defaults.event_prefix}{batch.batch_id}.{told.name}"
    at = told.at or batch.ended_at or ports.clock.now()
    return Event(name, names.EARLY_TYPES[told.kind], detail, at)
