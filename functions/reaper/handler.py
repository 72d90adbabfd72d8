"""Runs at a fixed rate: settles or ends the batches that are due."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fanin import names
from fanin.entry import wiring
from fanin.entry.observe import count, gauge, logger, observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    reaped = wiring.ledger().reap()
    count(names.METRIC_SETTLED, reaped.settled)
    count(names.METRIC_ORPHANED, reaped.orphaned)
    count(names.METRIC_TIMED_OUT, reaped.timed_out)
    count(names.METRIC_REPEATS, reaped.spared)
    gauge(names.METRIC_STUCK, reaped.stuck)
    logger.info("reaped", extra=asdict(reaped))
    return asdict(reaped)
