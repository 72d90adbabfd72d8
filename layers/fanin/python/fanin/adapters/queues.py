"""The queues of buffers on SQS, made here unless the user brings one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from fanin import names
from fanin.adapters.aws import error_code, ignoring, once, translated
from fanin.adapters.channels import DENIED, GONE
from fanin.app.ports.queues import QueueState, Received
from fanin.errors import ChannelRefused, NotConfigured

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


MAX_RECEIVES: Final = 10
"""How often the work of a buffer is received before its message becomes a dead letter."""
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
        # A long poll takes 20 s.
        self._client = once(client, "sqs", read_timeout=28)

    def create(self, name: str, born: int) -> str:
        queue_name = self._queue_name(name, born)
        attributes: dict[Any, str] = {"MessageRetentionPeriod": str(names.RETENTION_DAYS * 86_400)}
        if arn := self._dead_letters():
            policy = {"deadLetterTargetArn": arn, "maxReceiveCount": MAX_RECEIVES}
            attributes["RedrivePolicy"] = json.dumps(policy)
        key = self._key()
        attributes |= {"KmsMasterKeyId": key} if key else {"SqsManagedSseEnabled": "true"}
        tags = {names.CHANNEL_TAG: "buffer"}
        with translated():
            made = self._client().create_queue(QueueName=queue_name, Attributes=attributes, tags=tags)
            self._refuse_plain_http(made["QueueUrl"])
        return made["QueueUrl"]

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
        if not self._client().meta.endpoint_url.startswith("https:"):
            return
        answer = self._client().get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
        statement = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": answer["Attributes"]["QueueArn"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        self._client().set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})

    def delete(self, queue: str) -> None:
        with translated(), ignoring(GONE):
            self._client().delete_queue(QueueUrl=queue)

    def receive(self, queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:
        hidden = {} if visibility_timeout is None else {"VisibilityTimeout": visibility_timeout}
        with _usable(queue):
            answer = self._client().receive_message(
                QueueUrl=queue,
                MaxNumberOfMessages=most,
                WaitTimeSeconds=wait,
                MessageAttributeNames=[names.ITEM_ATTRIBUTE],
                MessageSystemAttributeNames=["SentTimestamp"],
                **hidden,  # type: ignore[arg-type]
            )
        return list(map(_received, answer.get("Messages", [])))

    def remove(self, queue: str, handles: Sequence[str]) -> None:
        for first in range(0, len(handles), _MOST):
            group = handles[first : first + _MOST]
            entries: Any = [{"Id": str(i), "ReceiptHandle": handle} for i, handle in enumerate(group)]
            with _usable(queue):
                # SQS refuses handles that have expired: the message is gone, or another consumer has it.
                self._client().delete_message_batch(QueueUrl=queue, Entries=entries)

    def state(self, queue: str) -> QueueState:
        wanted: Any = ["MessageRetentionPeriod", "ApproximateNumberOfMessagesNotVisible"]
        with _usable(queue):
            answer: Any = self._client().get_queue_attributes(QueueUrl=queue, AttributeNames=wanted)
        return QueueState(*(int(answer["Attributes"][name]) for name in wanted))


def _received(message: Mapping[str, Any]) -> Received:
    attributes = message.get("MessageAttributes", {}).items()
    texts = {name: value.get("StringValue", "") for name, value in attributes}
    sent_at = int(message["Attributes"]["SentTimestamp"])
    return Received(message["ReceiptHandle"], message["Body"], texts, sent_at)


def _usable(queue: str) -> AbstractContextManager[None]:
    """Turn the errors of a queue that is gone, or not accessible, into ``ChannelRefused``."""

    def refusal(error: ClientError) -> ChannelRefused | None:
        if (code := error_code(error)) not in GONE | DENIED:
            return None
        return ChannelRefused(
            f"the queue {queue[:200]!r} cannot be used ({code}): it must exist, and carry"
            f" the tag {names.CHANNEL_TAG}"
        )

    return translated(refusal)
