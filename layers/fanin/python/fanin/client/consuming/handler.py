"""A consumer on Lambda: each message on its own, one acknowledgement for all, partial failures."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from fanin.client.consuming.acknowledging import Deliver
from fanin.client.consuming.window import Handle, Round
from fanin.client.messages import from_lambda
from fanin.client.queues import fifo
from fanin.errors import NotConfigured


class SqsHandler:
    """The Lambda handler that ``@tracker.sqs_handler`` makes of a function of one message.

    The event source mapping needs ``ReportBatchItemFailures``. A message is deleted only when its item is
    marked: if the acknowledgement fails, its messages are reported as failed and come again. On a FIFO
    queue, the messages that follow a failed one in its group are not handled but come again in order.

    Attributes:
        handle: the function, for tests of it alone.
    """

    def __init__(self, handle: Handle, delivery: Callable[[], Deliver]) -> None:
        functools.update_wrapper(self, handle)
        self.handle = handle
        self._delivery = delivery

    def __call__(self, event: Mapping[str, Any], context: Any = None) -> dict[str, Any]:
        """Handle an event of SQS.

        Returns:
            The partial batch response: the messages that must come again.

        Raises:
            NotConfigured: Powertools is not installed.
        """
        try:
            from aws_lambda_powertools.utilities import batch  # noqa: PLC0415 - an extra of the package
        except ImportError as error:
            raise NotConfigured("sqs_handler needs Powertools: pip install 'fanin[lambda]'") from error

        current = Round(self.handle, self._delivery())
        processor: batch.BatchProcessor
        if fifo(event["Records"][0]["eventSourceARN"]):
            processor = batch.SqsFifoPartialProcessor(skip_group_on_error=True)
            processor.raise_on_entire_batch_failure = False
        else:
            processor = batch.BatchProcessor(batch.EventType.SQS, raise_on_entire_batch_failure=False)

        def record_handler(record: Any) -> None:
            current.run(from_lambda(record.raw_event))

        response = batch.process_partial_response(
            event=dict(event), record_handler=record_handler, processor=processor, context=context
        )
        failed = {str(failure["itemIdentifier"]) for failure in response["batchItemFailures"]}
        failed |= current.finish()
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in sorted(failed)]}
