"""Queues on SQS: those of buffers, made here unless the user brings one; and JSON objects sent to a queue."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from fanin import names
from fanin.adapters.aws import client_factory, error_code, translated
from fanin.adapters.backoff import Backoff
from fanin.app.ports.queues import QueueState, Received
from fanin.domain.limits import MAX_QUEUE_BYTES, MAX_QUEUE_MESSAGES, chunks
from fanin.errors import ChannelRefused, NotConfigured, RequestTooLarge, Throttled
from fanin.wire.json_text import compact

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


_RETENTION: Final = names.RETENTION_DAYS * 86_400  # seconds
MAX_RECEIVES: Final = 10
"""How often the work of a buffer is received before its message becomes a dead letter."""
_GONE: Final = {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "InvalidAddress"}
_DENIED: Final = {"AccessDenied", "AccessDeniedException"}
_MOST: Final = 10
_LONGEST_NAME: Final = 80
_LEAST_OF_NAME: Final = 8  # characters of the buffer's name that the name of its queue shows


class SqsQueues:
    """A ``Queues``.

    Args:
        prefix: gives what the names of queues made here begin with, at each ``create``; what it raises is
            raised there.
        client: makes the client, when first used.
        dead_letters: gives the ARN of the queue for messages that were received too often, at each
            ``create``; None delivers them again and again.
        key: gives the ARN of the KMS key that encrypts the messages, at each ``create``; None leaves that to
            a key of SQS.
    """

    def __init__(
        self,
        prefix: Callable[[], str],
        client: Callable[[], SQSClient] | None = None,
        *,
        dead_letters: Callable[[], str | None] = lambda: None,
        key: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._prefix = prefix
        self._dead_letters = dead_letters
        self._key = key
        self._make_client = client or client_factory("sqs", read_timeout=28)  # a long poll takes 20 s

    @cached_property
    def _client(self) -> SQSClient:
        with translated():
            return self._make_client()

    def create(self, name: str, born: int) -> str:
        queue_name = self._queue_name(name, born)
        redrive: dict[Any, str] = {}
        if arn := self._dead_letters():
            policy = {"deadLetterTargetArn": arn, "maxReceiveCount": MAX_RECEIVES}
            redrive["RedrivePolicy"] = json.dumps(policy)
        key = self._key()
        encryption: dict[Any, str] = {"KmsMasterKeyId": key} if key else {"SqsManagedSseEnabled": "true"}
        with translated():
            url = self._client.create_queue(
                QueueName=queue_name,
                Attributes={"MessageRetentionPeriod": str(_RETENTION), **encryption, **redrive},
                tags={names.CHANNEL_TAG: "buffer"},
            )["QueueUrl"]
            self._refuse_plain_http(url)
        return url

    def _queue_name(self, name: str, born: int) -> str:
        """A name that no other queue has; a long name of a buffer is cut, since SQS takes 80 characters."""
        prefix, end = self._prefix(), f"-{born:014x}"
        room = _LONGEST_NAME - len(prefix) - len(end)
        if room < _LEAST_OF_NAME:
            raise NotConfigured(
                f"{names.ENV_BUFFER_PREFIX} has {len(prefix)} characters, and the name of a queue has at most"
                f" {_LONGEST_NAME}; set a prefix of at most {len(prefix) + room - _LEAST_OF_NAME}"
            )
        return prefix + name[:room] + end

    def _refuse_plain_http(self, queue: str) -> None:
        """Refuse plain HTTP, unless this process itself speaks it, as with an emulator.

        A queue that exists already gets the policy again: the process that created it may have died before.
        """
        if not self._client.meta.endpoint_url.startswith("https:"):
            return
        answer = self._client.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
        statement = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": answer["Attributes"]["QueueArn"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        self._client.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})

    def delete(self, queue: str) -> None:
        with translated():
            try:
                self._client.delete_queue(QueueUrl=queue)
            except ClientError as error:
                if error_code(error) not in _GONE:
                    raise

    def receive(self, queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:
        hidden = {} if visibility_timeout is None else {"VisibilityTimeout": visibility_timeout}
        with _usable(queue):
            answer = self._client.receive_message(
                QueueUrl=queue,
                MaxNumberOfMessages=most,
                WaitTimeSeconds=wait,
                MessageAttributeNames=[names.ITEM_ATTRIBUTE],
                MessageSystemAttributeNames=["SentTimestamp"],
                **hidden,  # type: ignore[arg-type]
            )
        return [
            Received(
                message["ReceiptHandle"],
                message["Body"],
                {
                    name: value.get("StringValue", "")
                    for name, value in message.get("MessageAttributes", {}).items()
                },
                int(message["Attributes"]["SentTimestamp"]),
            )
            for message in answer.get("Messages", [])
        ]

    def remove(self, queue: str, handles: Sequence[str]) -> None:
        for first in range(0, len(handles), _MOST):
            group = handles[first : first + _MOST]
            with _usable(queue):
                # SQS refuses handles that have expired: the message is gone, or another consumer has it.
                self._client.delete_message_batch(
                    QueueUrl=queue,
                    Entries=[
                        {"Id": str(index), "ReceiptHandle": handle} for index, handle in enumerate(group)
                    ],
                )

    def state(self, queue: str) -> QueueState:
        with _usable(queue):
            answer = self._client.get_queue_attributes(
                QueueUrl=queue,
                AttributeNames=["MessageRetentionPeriod", "ApproximateNumberOfMessagesNotVisible"],
            )
        attributes = answer["Attributes"]
        return QueueState(
            int(attributes["MessageRetentionPeriod"]),
            int(attributes["ApproximateNumberOfMessagesNotVisible"]),
        )


@contextmanager
def _usable(queue: str) -> Iterator[None]:
    """Turn the errors of a queue that is gone, or not accessible, into ``ChannelRefused``."""
    with translated():
        try:
            yield
        except ClientError as error:
            if error_code(error) not in _GONE | _DENIED:
                raise
            raise ChannelRefused(
                f"the queue {queue[:200]!r} cannot be used ({error_code(error)}): it must exist, and carry"
                f" the tag {names.CHANNEL_TAG}"
            ) from error


class SqsQueue:
    """Sends JSON objects to one queue.

    Args:
        url: gives the URL of the queue, at each call; what it raises is raised there.
        client: makes the client, when first used.
        backoff: waits between tries.
    """

    def __init__(
        self,
        url: Callable[[], str],
        client: Callable[[], SQSClient] | None = None,
        *,
        backoff: Backoff | None = None,
    ) -> None:
        self._url = url
        self._make_client = client or client_factory("sqs")
        self._backoff = backoff or Backoff()

    @cached_property
    def _client(self) -> SQSClient:
        with translated():
            return self._make_client()

    def send(self, messages: Iterable[Mapping[str, object]]) -> None:
        """Send messages, ten at a time; those that the queue did not accept are sent again.

        Raises:
            Throttled: the queue did not accept some messages in all tries; the others were sent.
            RequestTooLarge: a message is over 256 KB, or the queue will never accept it.
        """
        url = self._url()
        for group in chunks(
            (_body(message) for message in messages),
            max_items=MAX_QUEUE_MESSAGES,
            size_of=_bytes,
            max_bytes=MAX_QUEUE_BYTES,
        ):
            self._send(url, group)

    def _send(self, url: str, bodies: Sequence[str]) -> None:
        waiting = {str(index): body for index, body in enumerate(bodies)}
        for _ in self._backoff:
            with translated():
                answer = self._client.send_message_batch(
                    QueueUrl=url,
                    Entries=[{"Id": index, "MessageBody": body} for index, body in waiting.items()],
                )
            for sent in answer.get("Successful", []):
                del waiting[sent["Id"]]
            for failed in answer.get("Failed", []):
                if failed["SenderFault"]:
                    raise RequestTooLarge(
                        f"the queue refuses a message, change it: {failed.get('Message', '')}"
                    )
            if not waiting:
                return
        raise Throttled(f"the queue did not accept {len(waiting)} messages; try again later", retry_after=1)


def _body(message: Mapping[str, object]) -> str:
    body = compact(message)
    if (size := _bytes(body)) > MAX_QUEUE_BYTES:
        raise RequestTooLarge(
            f"a message of {size} bytes is over the {MAX_QUEUE_BYTES} that a queue takes; split it"
        )
    return body


def _bytes(body: str) -> int:
    return len(body.encode())
