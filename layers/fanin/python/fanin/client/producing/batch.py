"""A batch in a producer's hands."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from fanin.client.backoff import Backoff
from fanin.client.calls import LedgerCalls
from fanin.client.friendly import Span
from fanin.client.messages import Attribute, Message, Sendable
from fanin.client.paging import pages
from fanin.client.producing.sending import Sender
from fanin.client.queues import REQUEST_BYTES
from fanin.domain.acks import Failure, Receipt
from fanin.domain.batch import Batch
from fanin.domain.ids import Group
from fanin.domain.reports import Progress
from fanin.errors import LimitReached, SendFailed, Throttled

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_BLOCK: Final = 10_000
_BLOCK_BYTES: Final = 64 * 2**20
_PATIENCE: Final = 8  # tries of an addition that is throttled


class TrackedBatch:
    """One batch of a tracker: what ``with tracker.batch(...)`` gives, and ``tracker.attach(batch_id)``.

    Attributes:
        id: the batch id.
        row: the batch as it was when this object was made or last closed or cancelled.
    """

    def __init__(
        self,
        calls: LedgerCalls,
        row: Batch,
        sqs: Callable[[], SQSClient],
        *,
        backoff: Backoff | None = None,
    ) -> None:
        self._calls = calls
        self._make_sqs = sqs
        self._backoff = backoff or Backoff(first=0.5, sleep=calls.clock.sleep)
        self.row = row

    @property
    def id(self) -> int:
        return self.row.batch_id

    def __repr__(self) -> str:
        return f"TrackedBatch({self.id}, {self.row.state.value})"

    def add(self, count: int, *, key: str | None = None) -> Group:
        """Add items; the ids of the group go with your messages, however you send them."""
        return self._calls.add(self.id, count, key=key)

    def send(
        self,
        queue_url: str,
        messages: Iterable[Sendable],
        *,
        attributes: Mapping[str, Attribute] | None = None,
        workers: int = 8,
        block: int = _BLOCK,
        request_bytes: int = REQUEST_BYTES,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Add an item for each message, stamp its id on the message, and send it.

        Streams: messages are read as fast as they go out, a block ahead. Items are added a block at a time,
        each under an idempotency key. Where the batch is bounded, blocks are a quarter of its limit and
        the producer waits while it is full: that is the back-pressure.

        Args:
            queue_url: the SQS queue, standard or FIFO.
            messages: texts, objects (sent as JSON), or ``Message``.
            attributes: message attributes of every message.
            workers: requests at a time (one on a FIFO queue, to keep the order).
            block: items added at a time.
            request_bytes: bytes of one request; up to 1 MiB if the queue's MaximumMessageSize allows it.
            progress: called with the number of messages sent, after each request.

        Returns:
            How many messages were sent.

        Raises:
            SendFailed: the queue did not take some messages; it names their items, and all others are sent.
            RequestTooLarge: a message is larger than ``request_bytes``.
            BatchClosed: the batch takes no more items.
            AccessDenied, NotConfigured, ServiceUnavailable: the queue, or the service, cannot be reached.
        """
        sender = Sender(
            self._make_sqs(),
            queue_url,
            group_id=str(self.id),
            attributes=attributes,
            workers=workers,
            request_bytes=request_bytes,
            backoff=Backoff(sleep=self._calls.clock.sleep),
        )
        size = block if self.row.limit is None else max(1, min(block, self.row.limit // 4))
        sent = 0
        failed: dict[str, str] = {}
        for taken, refused in sender.send(self._blocks(messages, size)):
            sent += taken
            failed |= refused
            if progress is not None:
                progress(taken)
        if failed:
            item, reason = next(iter(failed.items()))
            raise SendFailed(
                f"{len(failed)} of {sent + len(failed)} messages were not taken by {queue_url}, "
                f"among them item {item} ({reason}); send them again under their ids, or fail their items",
                items=failed,
            )
        return sent

    def _blocks(self, messages: Iterable[Sendable], size: int) -> Iterator[Iterable[tuple[str, Message]]]:
        stream = (Message.of(message) for message in messages)
        for block in pages(stream, most=size, size_of=_weight, most_bytes=_BLOCK_BYTES):
            yield zip(self._admitted(len(block)), block, strict=True)

    def _admitted(self, count: int) -> Group:
        """Add items, waiting while the batch is full; that ends, at the latest when the batch does."""
        key = uuid.uuid4().hex
        attempt = 0
        while True:
            try:
                return self.add(count, key=key)
            except (LimitReached, Throttled) as busy:
                if isinstance(busy, Throttled) and attempt >= _PATIENCE:
                    raise
                self._backoff.wait(attempt, busy.retry_after)
                attempt += 1

    def fail(self, items: str | Failure | Iterable[str | Failure], reason: str = "") -> list[Receipt]:
        """Mark items done as failed; see ``Tracker.fail``."""
        return self._calls.fail(items, reason)

    def close(self) -> Batch:
        """Take no more items; the batch completes with its last item."""
        self.row = self._calls.close(self.id)
        return self.row

    def cancel(self) -> Batch:
        """End the batch now."""
        self.row = self._calls.cancel(self.id)
        return self.row

    def status(self, *, exact: bool = False) -> Progress:
        """How far it is."""
        return self._calls.status(self.id, exact=exact)

    def wait(self, timeout: Span | float | None = None) -> Progress:
        """Wait until the batch has ended; close it first, since an open batch never completes.

        Raises:
            TimeoutError: it has not ended in time.
        """
        return self._calls.wait(self.id, timeout)


def _weight(message: Message) -> int:
    return len(message.body) if isinstance(message.body, str) else 1024
