"""Messages that a function received from SQS: let them come again later, or copy them to another queue."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fanin.adapters.aws import client_factory, once, translated

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

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
        self._client = once(client or client_factory("sqs"))
        self._urls: dict[str, str] = {}

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

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(change, range(0, len(waits), _MOST)))

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
        attributes: Any = {
            name: _attribute(value) for name, value in message.get("messageAttributes", {}).items()
        }
        options: Any = {"DelaySeconds": delay} if delay else {}
        with translated():
            self._client().send_message(
                QueueUrl=url,
                MessageBody=message["body"],
                MessageAttributes=attributes,
                **options,
            )

    def _url(self, arn: str) -> str:
        if arn not in self._urls:
            account, name = arn.split(":")[4:6]
            with translated():
                answer = self._client().get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
            self._urls[arn] = answer["QueueUrl"]
        return self._urls[arn]


def _attribute(received: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute as SQS takes it; Lambda hands over binary values in base64."""
    if received.get("binaryValue") is not None:
        return {"DataType": received["dataType"], "BinaryValue": base64.b64decode(received["binaryValue"])}
    return {"DataType": received["dataType"], "StringValue": received["stringValue"]}
