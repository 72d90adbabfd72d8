"""Sending JSON objects to an SQS queue, such as jobs, and records to be retried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from fanin.adapters.aws import client_factory, translated
from fanin.adapters.backoff import Backoff
from fanin.domain.limits import MAX_QUEUE_BYTES, MAX_QUEUE_MESSAGES, chunks
from fanin.errors import RequestTooLarge, Throttled
from fanin.wire.json_text import compact

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


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
