"""Runs at a fixed rate: settles or ends the batches that are due."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fanin import names
from fanin.entry import wiring
from fanin.entry.observe import count, gauge, logger, observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    # The last fifth of the time is left for the batch at hand: a large scatter's takes half a minute.
    turn = context.get_remaining_time_in_millis() * 4 // 5
    ledger = wiring.ledger()
    reaped = ledger.reap(stop_at=ledger.ports.clock.now() + turn, report=_report)
    count(names.METRIC_SETTLED, reaped.settled)
    count(names.METRIC_ORPHANED, reaped.orphaned)
    count(names.METRIC_TIMED_OUT, reaped.timed_out)
    count(names.METRIC_REPEATS, reaped.spared)
    gauge(names.METRIC_STUCK, reaped.stuck)
    gauge(names.METRIC_UNREAPED, reaped.failed)
    logger.info("reaped", extra=asdict(reaped))
    return asdict(reaped)


def _report(batch_id: int, error: Exception) -> None:
    logger.error("could not reap a batch", exc_info=error, extra={"batch_id": batch_id})
