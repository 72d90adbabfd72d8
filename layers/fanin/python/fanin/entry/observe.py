"""Logs and metrics of the functions, made with Powertools for AWS Lambda.

An invocation writes one line with its metrics, if it has any, and no other line unless something went wrong,
an operator acted, or it is in the sample of the setting ``log_sample``: at a million calls, lines are money.
Traces are Lambda's own, where the setting ``tracing`` asks for them; no code of the functions takes part.

No event and no message body is ever logged: they carry other people's data, and stream records carry the
salts of batches, with which item ids could be forged.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from aws_lambda_powertools import Logger, Metrics

from fanin import names
from fanin.domain.batch import Batch, Kind, State
from fanin.domain.marks import Receipt
from fanin.entry.invocation import INVOCATION
from fanin.entry.settings import Settings

if TYPE_CHECKING:
    from fanin.app.ledger.reaper import Reaped

Handler: TypeAlias = Callable[[dict[str, Any], Any], Any]

_FRAMES: Final = {
    State.COMPLETE: names.METRIC_FRAMES_COMPLETED,
    State.TIMED_OUT: names.METRIC_FRAMES_TIMED_OUT,
}

logger: Final = Logger()
metrics: Final = Metrics(namespace=names.METRICS_NAMESPACE)
counted: Final[Counter[str]] = Counter()
"""What the invocation in progress has counted: the sum of a metric is written, not each of its values."""


def gauge(metric: str, value: int) -> None:
    """Record a value of a metric, also if it is zero."""
    metrics.add_metric(metric, "Count", value)


def count(metric: str, value: int = 1) -> None:
    """Add to a metric; one whose sum is zero is not written."""
    counted[metric] += value


def count_receipts(receipts: Iterable[Receipt]) -> None:
    """Record how many items were done or failed for the first time, are held, were marked before, or late."""
    for receipt in receipts:
        count(names.METRIC_FIRST, max(receipt.first - receipt.failed, 0))
        count(names.METRIC_FAILED, receipt.failed)
        count(names.METRIC_HELD, receipt.held)
        count(names.METRIC_DUPLICATE, len(receipt.duplicates))
        count(names.METRIC_LATE, receipt.late)


def count_reaped(reaped: Reaped) -> None:
    """Record what a run of the reaper did; CloudWatch charges for a metric only while it has values."""
    count(names.METRIC_SETTLED, reaped.settled)
    count(names.METRIC_ORPHANED, reaped.orphaned)
    count(names.METRIC_TIMED_OUT, reaped.timed_out)
    count(names.METRIC_REPEATS, reaped.spared)
    count(names.METRIC_STALLED, reaped.stalled)
    count(names.METRIC_STUCK, reaped.stuck)
    count(names.METRIC_UNREAPED, reaped.failed)


def count_end(batch: Batch) -> None:
    """Record that a batch has ended, and for a frame how it ended."""
    count(names.METRIC_ENDED)
    if batch.kind is Kind.FRAME and batch.state in _FRAMES:
        count(_FRAMES[batch.state])


def observed(handler: Handler) -> Handler:
    """Give a Lambda handler JSON logs with a correlation id, and metrics written at its end.

    While it runs, ``INVOCATION`` knows how much time it has left.

    The correlation id is the invocation's request id; a handler that knows a better one may set it.
    """

    @wraps(handler)
    def correlated(event: dict[str, Any], context: Any) -> Any:
        logger.set_correlation_id(context.aws_request_id)
        return handler(event, context)

    logged = logger.inject_lambda_context(correlated, clear_state=True)

    @wraps(handler)
    def invoke(event: dict[str, Any], context: Any) -> Any:
        INVOCATION.begin(context.get_remaining_time_in_millis() / 1000)
        # A hash decides whether it is in the sample, so that retries of it are in it as well.
        sampled = zlib.crc32(context.aws_request_id.encode()) % 100 < _log_sample()
        began = time.monotonic()
        try:
            return logged(event, context)
        finally:
            INVOCATION.end()
            if sampled:
                logger.info("handled", extra={"milliseconds": round((time.monotonic() - began) * 1000, 1)})
            _write_metrics()

    return invoke


@cache
def _log_sample() -> int:
    return Settings.from_env().log_sample


def _write_metrics() -> None:
    """Write what was recorded as one line; nothing if nothing was."""
    for metric, value in counted.items():
        if value:
            gauge(metric, value)
    counted.clear()
    if metrics.metric_set:
        metrics.flush_metrics()
