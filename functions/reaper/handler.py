"""Runs at a fixed rate: settles or ends the batches that are due."""

from dataclasses import asdict
from typing import Any

from fanin.entry import wiring
from fanin.entry.observe import count_reaped, logger, observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    ledger = wiring.ledger()
    # The last fifth of the time is left for the batch at hand: a large scatter's takes half a minute.
    stop_at = ledger.ports.clock.now() + context.get_remaining_time_in_millis() * 4 // 5
    reaped = ledger.reap(stop_at=stop_at, report=_report)
    count_reaped(reaped)
    logger.info("reaped", extra=asdict(reaped))
    return asdict(reaped)


def _report(batch_id: int, error: Exception) -> None:
    logger.error("could not reap a batch", exc_info=error, extra={"batch_id": batch_id})
