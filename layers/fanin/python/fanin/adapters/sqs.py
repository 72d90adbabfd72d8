"""Sending JSON objects to an SQS queue, such as jobs, and records to be retried."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fanin.adapters.aws import client_factory, translated
from fanin.adapters.backoff import Backoff
from fanin.errors import RequestTooLarge, Throttled

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_MOST_MESSAGES: Final = 10
_MOST_BYTES: Final = 256 * 1024


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
        for group in _groups(messages):
            self._send(url, group)

    def _send(self, url: str, bodies: list[str]) -> None:
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


def _groups(messages: Iterable[Mapping[str, object]]) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for message in messages:
        body = json.dumps(message, separators=(",", ":"))  # ASCII, so characters are bytes
        if len(body) > _MOST_BYTES:
            raise RequestTooLarge(f"a message of {len(body)} bytes is over {_MOST_BYTES}; split it")
        if len(group) == _MOST_MESSAGES or size + len(body) > _MOST_BYTES:
            yield group
            group, size = [], 0
        group.append(body)
        size += len(body)
    if group:
        yield group
