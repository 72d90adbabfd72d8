"""A consumer anywhere: long polling, the same promises as on Lambda."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from fanin.client.backoff import Backoff
from fanin.client.consuming.acking import Deliver
from fanin.client.consuming.handling import Handle, Round
from fanin.client.messages import ReceivedMessage, from_queue
from fanin.client.queues import fifo, queue_errors
from fanin.errors import ServiceUnavailable, Throttled

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

logger = logging.getLogger("fanin")

SQS_WAITS: Final = Backoff(first=0.5)
"""How long a consumer waits when SQS does not answer, unless it is told otherwise."""


class Consumer:
    """Receives, handles, acknowledges, and only then deletes.

    A process that dies in between leaves its messages to the queue, which delivers them again when their
    visibility timeout is over: choose one longer than ten messages take. Run as many as you like.

    Args:
        sqs: client.
        queue_url: the queue, standard or FIFO.
        handle: does the work of one message.
        deliver: tells the ledger.
        wait: seconds a poll waits for messages, 0 to 20.
        visibility_timeout: seconds the messages are hidden from others; None takes the queue's.
        backoff: how long to wait when SQS does not answer.
    """

    def __init__(
        self,
        sqs: SQSClient,
        queue_url: str,
        handle: Handle,
        deliver: Deliver,
        *,
        wait: int = 20,
        visibility_timeout: int | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._fifo = fifo(queue_url)
        self._handle = handle
        self._deliver = deliver
        self._options: dict[str, Any] = {"WaitTimeSeconds": wait}
        if visibility_timeout is not None:
            self._options["VisibilityTimeout"] = visibility_timeout
        self._backoff = backoff or SQS_WAITS

    def run(self, until: Callable[[], bool] = lambda: False) -> int:
        """Poll until told to stop.

        Args:
            until: asked before each poll; True stops. By default it goes on for ever.

        Returns:
            How many messages were received.
        """
        received, silent = 0, 0
        while not until():
            try:
                received += self.poll()
                silent = 0
            except (ServiceUnavailable, Throttled) as error:
                logger.warning("polling again in a while: %s", error)
                self._backoff.wait(silent)
                silent += 1
        return received

    def poll(self) -> int:
        """Receive up to ten messages once, and see them through.

        Returns:
            How many were received.
        """
        with queue_errors(self._queue_url):
            answer = self._sqs.receive_message(
                QueueUrl=self._queue_url,
                MaxNumberOfMessages=10,
                MessageAttributeNames=["All"],
                MessageSystemAttributeNames=["All"],
                **self._options,
            )
        messages = [from_queue(message) for message in answer.get("Messages", [])]
        current = Round(self._handle, self._deliver)
        handled = self._handled(current, messages)
        again = current.finish()
        self._delete([message for message in handled if message.message_id not in again])
        return len(messages)

    def _handled(self, current: Round, messages: Iterable[ReceivedMessage]) -> list[ReceivedMessage]:
        handled: list[ReceivedMessage] = []
        broken: set[str | None] = set()
        for message in messages:
            if self._fifo and message.group_id in broken:
                continue
            try:
                current.run(message)
            except Exception:  # the handler's business: log it, and let the queue deliver again
                logger.exception("message %s failed and comes again", message.message_id)
                broken.add(message.group_id)
            else:
                handled.append(message)
        return handled

    def _delete(self, messages: list[ReceivedMessage]) -> None:
        if not messages:
            return
        entries: list[Any] = [
            {"Id": str(index), "ReceiptHandle": message.raw["ReceiptHandle"]}
            for index, message in enumerate(messages)
        ]
        with queue_errors(self._queue_url):
            answer = self._sqs.delete_message_batch(QueueUrl=self._queue_url, Entries=entries)
        for failure in answer.get("Failed", []):
            message = messages[int(failure["Id"])]
            logger.warning(
                "message %s is marked done but comes again: %s", message.message_id, failure["Code"]
            )
