"""Logs, metrics and traces of the functions, made with Powertools for AWS Lambda.

No event and no message body is ever logged: they carry other people's data, and stream records carry the
salts of batches, with which item ids could be forged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from aws_lambda_powertools import Logger, Metrics, Tracer

from fanin import names
from fanin.domain.acks import Receipt
from fanin.domain.batch import Batch, Kind, State
from fanin.entry.invocation import INVOCATION

if TYPE_CHECKING:
    from fanin.app.ledger.reaper import Reaped

Handler: TypeAlias = Callable[[dict[str, Any], Any], Any]

_FRAMES: Final = {
    State.COMPLETE: names.METRIC_FRAMES_COMPLETED,
    State.TIMED_OUT: names.METRIC_FRAMES_TIMED_OUT,
}

logger: Final = Logger()
metrics: Final = Metrics(namespace=names.METRICS_NAMESPACE)


@cache
def tracer() -> Tracer:
    """The tracer, made at the first call, because it patches botocore, which an import should not do."""
    return Tracer(patch_modules=["botocore"])


def gauge(metric: str, value: int) -> None:
    """Record a metric's value, also if it is zero, so that an alarm can tell zero from missing data."""
    metrics.add_metric(metric, "Count", value)


def count(metric: str, value: int = 1) -> None:
    """Record a metric's value unless it is zero."""
    if value:
        gauge(metric, value)


def count_receipts(receipts: Iterable[Receipt]) -> None:
    """Record how many items were marked for the first time, were marked before, or came too late."""
    for receipt in receipts:
        count(names.METRIC_FIRST, receipt.first)
        count(names.METRIC_DUPLICATE, len(receipt.duplicates))
        count(names.METRIC_LATE, receipt.late)


def count_failures(receipts: Iterable[Receipt]) -> None:
    """Record how many items failed for the first time, and how many are held."""
    for receipt in receipts:
        count(names.METRIC_FAILED, receipt.first)
        count(names.METRIC_HELD, receipt.held)


def count_reaped(reaped: Reaped) -> None:
    """Record what a run of the reaper did; the metrics of its alarms are written also if they are zero."""
    count(names.METRIC_SETTLED, reaped.settled)
    count(names.METRIC_ORPHANED, reaped.orphaned)
    count(names.METRIC_TIMED_OUT, reaped.timed_out)
    count(names.METRIC_REPEATS, reaped.spared)
    gauge(names.METRIC_STALLED, reaped.stalled)
    gauge(names.METRIC_STUCK, reaped.stuck)
    gauge(names.METRIC_UNREAPED, reaped.failed)


def count_end(batch: Batch) -> None:
    """Record that a batch has ended, and for a frame how it ended."""
    count(names.METRIC_ENDED)
    if batch.kind is Kind.FRAME and batch.state in _FRAMES:
        count(_FRAMES[batch.state])


def observed(handler: Handler) -> Handler:
    """Give a Lambda handler JSON logs with a correlation id, a trace, and metrics written at its end.

    While it runs, ``INVOCATION`` knows how much time it has left.

    The correlation id is the invocation's request id; a handler that knows a better one may set it.
    """

    @wraps(handler)
    def correlated(event: dict[str, Any], context: Any) -> Any:
        logger.set_correlation_id(context.aws_request_id)
        return handler(event, context)

    logged = logger.inject_lambda_context(correlated, clear_state=True)

    @cache
    def traced() -> Handler:
        return cast("Handler", tracer().capture_lambda_handler(logged, capture_response=False))

    @wraps(handler)
    def invoke(event: dict[str, Any], context: Any) -> Any:
        INVOCATION.begin(context.get_remaining_time_in_millis() / 1000)
        try:
            return traced()(event, context)
        finally:
            INVOCATION.end()
            if metrics.metric_set:
                metrics.flush_metrics()

    return invoke
