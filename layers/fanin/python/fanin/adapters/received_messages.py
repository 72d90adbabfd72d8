"""Messages that a function received from SQS: let them come again later, or copy them to another queue.

And what is known of dead-letter queues: reasons name the queue that a letter comes from, since nobody sends
to a dead-letter queue, and its tags say whether the messages of failed items may be stored.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from fanin import names
from fanin.adapters.aws import once, translated
from fanin.adapters.channels import url_of
from fanin.adapters.forks import Threads
from fanin.app.ports.system import Clock
from fanin.domain.failures import Keep
from fanin.errors import AccessDenied, FaninError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

logger = logging.getLogger("fanin")

ReceivedRecord: TypeAlias = Mapping[str, Any]
"""A record of the event that Lambda makes of SQS messages."""

_MOST: Final = 10  # messages in a batch call
_THREADS: Final = 8


class ReceivedMessages:
    """Postpones messages, and moves them to another queue.

    Args:
        client: makes the client, when first used.
    """

    def __init__(self, client: Callable[[], SQSClient] | None = None) -> None:
        self._client = once(client, "sqs")
        self._threads = Threads(_THREADS, "postponing", self._client)
        self._url = cache(translated()(lambda arn: url_of(self._client(), arn)))

    def postpone(self, waits: Sequence[tuple[ReceivedRecord, int]]) -> None:
        """Let messages come again after so many seconds, instead of after the queue's visibility timeout.

        Without an answer, and for a message whose visibility cannot be changed any more, the queue's timeout
        applies.

        Args:
            waits: messages of one queue, with seconds.

        Raises:
            Throttled, ServiceUnavailable, AccessDenied: some of them come again after the queue's timeout.
        """
        if not waits:
            return
        url = self._url(waits[0][0]["eventSourceARN"])

        def change(start: int) -> None:
            entries: list[Any] = [
                {"Id": str(index), "ReceiptHandle": message["receiptHandle"], "VisibilityTimeout": seconds}
                for index, (message, seconds) in enumerate(waits[start : start + _MOST])
            ]
            with translated():
                self._client().change_message_visibility_batch(QueueUrl=url, Entries=entries)

        self._threads.map(change, range(0, len(waits), _MOST))

    def put_back(self, message: ReceivedRecord, seconds: int) -> None:
        """Send a copy to the message's own queue, such as one of which only a part is left.

        Args:
            message: the message, perhaps with another body.
            seconds: time until the copy can be received, up to 900.

        Raises:
            FaninError: it was not sent.
        """
        self.send_to(self._url(message["eventSourceARN"]), message, delay=seconds)

    def send_to(self, url: str, message: ReceivedRecord, *, delay: int = 0) -> None:
        """Send a copy to another queue; deleting the original afterwards completes the move.

        Args:
            url: the other queue.
            message: its body and its attributes are copied unchanged, so the copy is as large as the
                original.
            delay: seconds until the copy can be received.

        Raises:
            FaninError: it was not sent.
        """
        received = message.get("messageAttributes", {})
        attributes: Any = {name: _attribute(value) for name, value in received.items()}
        options: Any = {"DelaySeconds": delay} if delay else {}
        with translated():
            self._client().send_message(
                QueueUrl=url, MessageBody=message["body"], MessageAttributes=attributes, **options
            )


def _attribute(received: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute as SQS takes it; Lambda hands over binary values in base64."""
    if (binary := received.get("binaryValue")) is not None:
        return {"DataType": received["dataType"], "BinaryValue": base64.b64decode(binary)}
    return {"DataType": received["dataType"], "StringValue": received["stringValue"]}


FRESH_MS: Final = 60_000
"""How long the tags of a queue are remembered: about as long as SQS takes to show new ones."""


class DeadLetterQueues:
    """Finds the queue whose dead letters a queue takes, and remembers it; reads tags of queues.

    Args:
        clock: tells the time.
        client: makes the client, when first used.
    """

    def __init__(self, clock: Clock, client: Callable[[], SQSClient] | None = None) -> None:
        self._clock = clock
        self._client = once(client, "sqs")
        self._sources = cache(translated()(self._find_source))
        self._tags: dict[str, tuple[int, Keep]] = {}

    def source_of(self, dead_letters: str) -> str | None:
        """ARN of the one queue whose dead letters a queue takes, by the ARN of that.

        Returns:
            None if it has several sources or none, or they could not be listed; only the last is asked again.
        """
        try:
            return self._sources(dead_letters)
        except (FaninError, ClientError, BotoCoreError) as error:  # a reason is not worth failing for
            logger.warning("the sources of %s could not be listed: %s", dead_letters, error)
            return None

    def _find_source(self, dead_letters: str) -> str | None:
        url = url_of(self._client(), dead_letters)
        sources = self._client().list_dead_letter_source_queues(QueueUrl=url)["queueUrls"]
        # A queue and its dead-letter queue are in the same region and account.
        place = dead_letters.rpartition(":")[0]
        return f"{place}:{sources[0].rpartition('/')[2]}" if len(sources) == 1 else None

    def keep(self, arn: str) -> Keep:
        """What is kept of failed items whose messages are in a dead-letter queue.

        A process that may not read the tags keeps messages: where a queue has the tag, the construct that set
        it has also allowed to read it.

        Args:
            arn: of the dead-letter queue.

        Raises:
            Throttled, ServiceUnavailable: SQS did not say whether a message may be stored.
        """
        now = self._clock.now()
        known = self._tags.get(arn)
        if known is None or now - known[0] >= FRESH_MS:
            known = self._tags[arn] = (now, self._read_tag(arn))
        return known[1]

    def _read_tag(self, arn: str) -> Keep:
        try:
            with translated():
                url = url_of(self._client(), arn)
                tags = self._client().list_queue_tags(QueueUrl=url).get("Tags", {})
        except AccessDenied:
            return Keep.MESSAGE
        return Keep.REASON if tags.get(names.KEEP_TAG) == Keep.REASON else Keep.MESSAGE
