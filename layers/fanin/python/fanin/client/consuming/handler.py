"""A consumer on Lambda: each message is handled on its own, all are acknowledged together."""

import functools
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Unpack

from fanin.client.consuming.acknowledging import Acknowledger
from fanin.client.consuming.window import Handling, MessageHandler, MessageWindow, check_handler
from fanin.client.messages import sqs_records
from fanin.domain.directory import is_fifo
from fanin.entry.partial_batch import partial_batch_response
from fanin.errors import NotConfigured
from fanin.names import CONSUMERS, METRIC_SKIPPED, METRICS_NAMESPACE


class SqsHandler:
    """A Lambda handler for an SQS queue, made of a function of one message by ``@tracker.sqs_handler``.

    The event source mapping needs ``ReportBatchItemFailures``. A message is deleted only after its item was
    marked: if the acknowledgement fails, the messages are reported as failed and are delivered again. On a
    FIFO queue, the messages behind a failed one of their group are not handled; they come again, in order.

    Args:
        handle: does the work of one message.
        acknowledger: makes a new acknowledger for each event.
        how: as ``Handling`` says. Messages that are dropped are counted in the metric ``MessagesSkipped``.

    Raises:
        InvalidRequest: ``handle`` cannot be called.
        NotConfigured: Powertools is not installed.

    Attributes:
        handle: that function, so that a test can call it alone.
    """

    def __init__(
        self, handle: MessageHandler, acknowledger: Callable[[], Acknowledger], **how: Unpack[Handling]
    ) -> None:
        if find_spec("aws_lambda_powertools") is None:
            raise NotConfigured("sqs_handler needs Powertools: pip install 'fanin[lambda]'")
        check_handler(handle)
        functools.update_wrapper(self, handle)
        self.handle = handle
        self._acknowledger = acknowledger
        self._how = how

    def __call__(self, event: Mapping[str, Any], context: Any = None) -> dict[str, Any]:  # noqa: ARG002  Lambda passes it
        """Handle an SQS event.

        Args:
            event: what Lambda hands over.
            context: Lambda's context.

        Returns:
            The partial batch response: the messages to deliver again.

        Raises:
            InvalidRequest: it is not an event of SQS.
            NotConfigured: the ack queue is not known.
        """
        records = sqs_records(event)
        if not records:
            return partial_batch_response(())
        window = MessageWindow(
            self.handle,
            self._acknowledger(),
            fifo=is_fifo(str(records[0].get("eventSourceARN"))),
            **self._how,
        )
        again = window.run(records)
        if window.skipped:
            _count_skipped(window.skipped)
        return partial_batch_response(sorted({str(records[place]["messageId"]) for place in again}))


def _count_skipped(messages: int) -> None:
    """Write a metric of its own, since the function's owner may use the namespace of the other metrics."""
    from aws_lambda_powertools.metrics import MetricUnit, single_metric  # noqa: PLC0415 - an extra

    with single_metric(
        name=METRIC_SKIPPED, unit=MetricUnit.Count, value=messages, namespace=METRICS_NAMESPACE
    ) as metric:
        metric.add_dimension(name="service", value=CONSUMERS)
