"""The events that tell of a batch before its end, and the one way in which they are published."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fanin import names
from fanin.app.api import Ledger
from fanin.app.ledger.end_events import QUOTED
from fanin.app.ledger.held import Held
from fanin.app.ports import Ports
from fanin.app.ports.events import Event
from fanin.app.targets.jobs import send_jobs
from fanin.app.targets.records import read_targets
from fanin.domain.batch import WHOLE, Batch, Early, State, Told
from fanin.wire.batches import BATCH

FIRST_FAILURES: Final = 10
"""Failures that ``Batch Failing`` lists."""


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
        if wanting := [one.number for one in targets if one.target.when.value == told.kind.value]:
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
    counted = batch if told.kind is Early.PROGRESS else Held(ports).counted(batch)
    detail: dict[str, object] = {**BATCH.encode(replace(counted, attention=None))}
    if told.kind is Early.PROGRESS:
        detail["percent"] = told.percent
    else:
        page = ledger.failures(batch.batch_id, limit=FIRST_FAILURES)
        detail["failures"] = [
            {"ordinal": one.ordinal, "item": one.item, "reason": one.reason[:QUOTED]} for one in page.failures
        ]
    return Event(
        id=f"{ports.defaults.event_prefix}{batch.batch_id}.{told.name}",
        detail_type=names.EARLY_TYPES[told.kind],
        detail=detail,
        time=told.at or batch.ended_at or ports.clock.now(),
    )
