"""Users' queues on SQS: fanin sends only to those that carry its tag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from fanin import names
from fanin.adapters.aws import client_factory, error_code, translated
from fanin.adapters.backoff import Backoff
from fanin.app.ports.channels import Outgoing
from fanin.errors import ChannelRefused, Throttled

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_MOST_MESSAGES: Final = 10
_MOST_BYTES: Final = 256 * 1024
_GONE: Final = {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "InvalidAddress"}
_DENIED: Final = {"AccessDenied", "AccessDeniedException"}


class SqsChannels:
    """A ``Channels``.

    Args:
        client: makes the client, when first used.
        threads: how many requests may run at a time.
        backoff: waits between tries.
    """

    def __init__(
        self,
        client: Callable[[], SQSClient] | None = None,
        *,
        threads: int = 16,
        backoff: Backoff | None = None,
    ) -> None:
        self._make_client = client or client_factory("sqs", connections=threads)
        self._threads = threads
        self._backoff = backoff or Backoff()

    @cached_property
    def _client(self) -> SQSClient:
        with translated():
            return self._make_client()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._threads, thread_name_prefix="fanin-channels")

    def resolve(self, channel: str) -> str:
        with translated():
            try:
                url = self._url(channel)
                tags = self._client.list_queue_tags(QueueUrl=url).get("Tags", {})
            except ClientError as error:
                if error_code(error) in _GONE | _DENIED:
                    raise _refused(channel) from error
                raise
        if names.CHANNEL_TAG not in tags:
            raise _refused(channel)
        return url

    def _url(self, channel: str) -> str:
        if not channel.startswith("arn:"):
            return channel
        *_, account, queue = channel.split(":")
        return self._client.get_queue_url(QueueName=queue, QueueOwnerAWSAccountId=account)["QueueUrl"]

    def send(self, messages: Sequence[Outgoing]) -> list[str | None]:
        _ = self._client  # made here, before threads can race for it
        refused: list[str | None] = [None] * len(messages)
        groups = _groups(messages)
        if len(groups) == 1:
            self._send(messages, groups[0], refused)
        else:
            list(self._pool.map(lambda group: self._send(messages, group, refused), groups))
        return refused

    def _send(self, messages: Sequence[Outgoing], group: Sequence[int], refused: list[str | None]) -> None:
        channel = messages[group[0]].channel
        waiting = list(group)
        for _ in self._backoff:
            entries = [_entry(index, messages[index]) for index in waiting]
            with translated():
                try:
                    answer = self._client.send_message_batch(QueueUrl=channel, Entries=entries)
                except ClientError as error:
                    if error_code(error) not in _GONE | _DENIED:
                        raise
                    for index in waiting:
                        refused[index] = f"the queue refuses messages ({error_code(error)})"
                    return
            for failed in answer.get("Failed", []):
                if failed["SenderFault"]:
                    refused[int(failed["Id"])] = failed.get("Message", failed["Code"])
            waiting = [int(entry["Id"]) for entry in answer.get("Failed", []) if not entry["SenderFault"]]
            if not waiting:
                return
        raise Throttled(f"a queue did not accept {len(waiting)} messages; try again later", retry_after=1)


def _groups(messages: Sequence[Outgoing]) -> list[list[int]]:
    """Group messages into requests: of one channel, at most ten, at most 256 KB together."""
    open_groups: dict[str, tuple[list[int], int]] = {}
    groups: list[list[int]] = []
    for index, message in enumerate(messages):
        size = len(message.body.encode()) + sum(len(n) + len(v) for n, v in message.attributes.items())
        group, held = open_groups.get(message.channel, ([], 0))
        if not group or len(group) == _MOST_MESSAGES or held + size > _MOST_BYTES:
            group, held = [], 0
            groups.append(group)
        group.append(index)
        open_groups[message.channel] = group, held + size
    return groups


def _entry(index: int, message: Outgoing) -> Any:
    attributes = {
        name: {"DataType": "String", "StringValue": value}
        for name, value in message.attributes.items()
        if value
    }
    return {"Id": str(index), "MessageBody": message.body, "MessageAttributes": attributes}


def _refused(channel: str) -> ChannelRefused:
    return ChannelRefused(
        f"{channel[:200]!r} is not a queue that fanin may use: it must exist and carry the tag"
        f" {names.CHANNEL_TAG}"
    )
