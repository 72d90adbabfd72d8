"""Consumers: a Lambda handler, and one that polls a queue in any process and guarantees the same."""

import logging
from collections.abc import Callable, Mapping
from functools import partial, update_wrapper
from importlib.util import find_spec
from typing import Any, Final, Unpack

from fanin.adapters.backoff import Backoff
from fanin.client.consuming.acknowledging import Acknowledger
from fanin.client.consuming.window import Handling, MessageHandler, MessageWindow, check_handler
from fanin.client.messages import sqs_records
from fanin.client.sqs import PolledQueue, SQSClient
from fanin.domain.directory import is_fifo
from fanin.entry.partial_batch import partial_batch_response
from fanin.errors import NotConfigured, ServiceUnavailable, Throttled
from fanin.names import CONSUMERS, METRIC_SKIPPED, METRICS_NAMESPACE

logger = logging.getLogger("fanin")

SQS_WAITS: Final = Backoff(base=0.5, cap=20.0)
"""Waits of a consumer while SQS does not answer, by default."""


class Consumer:
    """Polls a queue for consumers outside of Lambda: it receives, handles, acknowledges, and then deletes.

    If the process dies in between, SQS delivers its messages again after their visibility timeout: choose one
    that is longer than the handling of ten messages. Any number of consumers may share a queue.

    Make one with ``tracker.consumer``::

        tracker.consumer(queue_url, handle).run()

    Args:
        sqs: client.
        queue_url: the queue, standard or FIFO.
        handle: does the work of one message.
        acknowledge: tells the ledger, as ``tracker.acknowledger()`` does.
        wait: seconds that a poll waits for messages, 0 to 20.
        visibility_timeout: seconds for which other consumers do not get the messages; None leaves it to the
            queue.
        backoff: waits after SQS did not answer.
        how: as ``Handling`` says.

    Raises:
        InvalidRequest: an argument is not what it should be.

    Attributes:
        skipped: how many messages were dropped without being handled, because their batch had ended.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        handle: MessageHandler,
        acknowledge: Acknowledger,
        *,
        wait: int = 20,
        visibility_timeout: int | None = None,
        backoff: Backoff | None = None,
        **how: Unpack[Handling],
    ) -> None:
        check_handler(handle)
        self._queue = PolledQueue(sqs, queue_url, wait=wait, visibility_timeout=visibility_timeout)
        self._window = partial(
            MessageWindow, handle, acknowledge, fifo=is_fifo(queue_url), source=queue_url, **how
        )
        self.skipped = 0
        self._backoff = backoff or SQS_WAITS

    def run(self, until: Callable[[], bool] = lambda: False) -> int:
        """Poll until told to stop; while SQS does not answer, wait longer and longer.

        A poll takes up to its ``wait``, and then the handling of up to ten messages. To stop at a signal,
        set an event in its handler, and pass ``until=event.is_set``: what was received is finished first.

        Args:
            until: called before each poll; True stops. By default polling never stops.

        Returns:
            How many messages were received.

        Raises:
            AccessDenied: the credentials do not allow to receive from the queue.
            NotConfigured: the queue does not exist, or credentials or a region are missing.
        """
        received, silent = 0, 0
        while not until():
            try:
                received += self.poll()
                silent = 0
            except (ServiceUnavailable, Throttled) as error:
                logger.warning("the queue cannot be polled now, trying again: %s", error)
                self._backoff.wait(silent)
                silent += 1
        return received

    def poll(self) -> int:
        """Receive up to ten messages once; handle, acknowledge and delete them.

        Returns:
            How many messages were received.

        Raises:
            AccessDenied, NotConfigured: as ``run`` does.
            ServiceUnavailable, Throttled: SQS did not answer, or asked to slow down.
        """
        messages = self._queue.receive()
        window = self._window()
        again = window.run(messages)
        self.skipped += window.skipped
        self._queue.delete([message for place, message in enumerate(messages) if place not in again])
        return len(messages)


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
        update_wrapper(self, handle)
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
