"""A batch as its producer uses it: add items, send their messages, close."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from fanin.adapters.backoff import Backoff
from fanin.client.conversions import Duration
from fanin.client.ledger import LedgerCalls
from fanin.client.messages import Attribute, Message, Sendable
from fanin.client.paging import chunks
from fanin.client.producing.sender import Sender
from fanin.client.queues import REQUEST_BYTES
from fanin.domain.acks import Failure, Receipt
from fanin.domain.batch import Batch
from fanin.domain.ids import Group
from fanin.domain.reports import Progress
from fanin.errors import InvalidRequest, LimitReached, SendFailed, Throttled

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_BLOCK: Final = 10_000
_BLOCK_BYTES: Final = 64 * 2**20
_PATIENCE: Final = 8  # how often a throttled addition of items is repeated


class TrackedBatch:
    """Adds items to one batch and sends their messages; ``tracker.batch`` and ``tracker.attach`` make one.

    ::

        with tracker.batch(user_key="catalog-42") as batch:
            batch.send(queue_url, rows)

    Args:
        ledger: the ledger's calls, a ``Tracker``.
        row: the batch.
        sqs: makes the client that messages are sent with.
        backoff: waits while the batch is full, or the ledger throttles.

    Attributes:
        id: the batch id.
        row: the batch as it was when this object was made, or when it was last closed or cancelled here.
    """

    def __init__(
        self,
        ledger: LedgerCalls,
        row: Batch,
        sqs: Callable[[], SQSClient],
        *,
        backoff: Backoff | None = None,
    ) -> None:
        self._ledger = ledger
        self._make_sqs = sqs
        self._backoff = backoff or Backoff(base=0.5, cap=20.0, sleep=ledger.clock.sleep)
        self.row = row

    @property
    def id(self) -> int:
        return self.row.batch_id

    def __repr__(self) -> str:
        return f"TrackedBatch({self.id}, {self.row.state.value})"

    def add(self, count: int, *, key: str | None = None) -> Group:
        """Add items, for messages that you send yourself; see ``Tracker.add``.

        Returns:
            The ids of the items, a sequence. Each goes with one message.
        """
        return self._ledger.add(self.id, count, key=key)

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
        """Add an item for each message, put its id on the message, and send the messages.

        Messages are read as fast as they are sent, at most one block ahead. Items are added block by block,
        each under an idempotency key. If the batch has a limit, a block is a quarter of it, and this call
        waits while the batch is full: back-pressure.

        Args:
            queue_url: the SQS queue, standard or FIFO.
            messages: texts, objects (sent as JSON), or ``Message``; also an endless stream.
            attributes: message attributes of every message; those of a ``Message`` take precedence.
            workers: how many requests are sent at a time; always one on a FIFO queue, which keeps the order.
            block: how many items are added at a time.
            request_bytes: most bytes of one request; up to 1 MiB if the queue's MaximumMessageSize allows it.
            progress: called after each request with the number of messages it sent.

        Returns:
            How many messages were sent.

        Raises:
            InvalidRequest: ``messages`` is one message; nothing was added.
            SendFailed: the queue did not accept some messages; ``items`` says which and why. All others were
                sent.
            RequestTooLarge: a message is larger than ``request_bytes``.
            BatchClosed: the batch accepts no more items.
            AccessDenied, NotConfigured, ServiceUnavailable: the queue or the service cannot be reached.
        """
        if isinstance(messages, str | bytes | Mapping | Message):
            raise InvalidRequest(
                f"messages must be several, not one {type(messages).__name__}; to send one, write [message]"
            )
        sender = Sender(
            self._make_sqs(),
            queue_url,
            group_id=str(self.id),
            attributes=attributes,
            workers=workers,
            request_bytes=request_bytes,
            backoff=Backoff(sleep=self._ledger.clock.sleep),
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
                f"{queue_url} did not accept {len(failed)} of {sent + len(failed)} messages "
                f"(the first: item {item}, {reason}); send them again under their item ids, "
                "or fail their items",
                items=failed,
            )
        return sent

    def _blocks(self, messages: Iterable[Sendable], size: int) -> Iterator[Iterable[tuple[str, Message]]]:
        stream = (Message.of(message) for message in messages)
        for block in chunks(stream, max_items=size, size_of=_weight, max_bytes=_BLOCK_BYTES):
            yield zip(self._admitted(len(block)), block, strict=True)

    def _admitted(self, count: int) -> Group:
        """Add items, waiting while the batch is full; stops with ``BatchClosed`` when the batch ends."""
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
        return self._ledger.fail(items, reason)

    def close(self) -> Batch:
        """Accept no more items; the batch completes when its last item is done."""
        self.row = self._ledger.close(self.id)
        return self.row

    def cancel(self) -> Batch:
        """End the batch now."""
        self.row = self._ledger.cancel(self.id)
        return self.row

    def status(self, *, exact: bool = False) -> Progress:
        """Read the batch and how far it is; see ``Tracker.status``."""
        return self._ledger.status(self.id, exact=exact)

    def wait(self, timeout: Duration | float | None = None) -> Progress:
        """Wait until the batch has ended; close it first, since an open batch never completes.

        Args:
            timeout: seconds, or a timedelta; None waits for as long as the batch lives.

        Raises:
            TimeoutError: the batch has not ended in time.
        """
        return self._ledger.wait(self.id, timeout)


def _weight(message: Message) -> int:
    return len(message.body) if isinstance(message.body, str) else 1024
