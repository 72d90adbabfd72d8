"""The tracker: all of fanin for its users, over HTTPS, directly on the tables, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from fanin.app.api import Buffers, Directory, Fanin, Frames, Routing
from fanin.client.buffers import ROOM_WAITS, Producer, Taker
from fanin.client.clock import Clock
from fanin.client.connecting import StackConnection, sqs_client
from fanin.client.consuming.acknowledging import (
    Acknowledger,
    ItemOutcome,
    LedgerAcknowledger,
    QueueAcknowledger,
)
from fanin.client.consuming.consumer import SQS_WAITS, Consumer
from fanin.client.consuming.handler import SqsHandler
from fanin.client.consuming.window import MessageHandler
from fanin.client.items_in_hand import IN_HAND
from fanin.client.ledger import LedgerCalls
from fanin.client.producing.batch import TrackedBatch
from fanin.client.scatters import ScatterCalls
from fanin.domain.acks import Failure
from fanin.errors import FaninError, ItemFailed, NotConfigured
from fanin.names import ENV_ACK_QUEUE_URL

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

AckPath: TypeAlias = Literal["api", "queue"]
"""How acknowledgements reach the ledger: through its API, or through the ack queue."""


class Tracker(StackConnection, LedgerCalls):
    """All of fanin for one stack: batches and acknowledgements, producers and consumers, and the patterns.

    Make one with ``from_env``, ``local``, ``over_https``, ``direct`` or ``in_memory``; each has all methods.
    A tracker is cheap to make, because clients are made when they are first used, and threads may share it.

        >>> tracker = Tracker.in_memory()
        >>> with tracker.batch(user_key="catalog-42") as batch:
        ...     group = batch.add(3)
        >>> [receipt.complete for receipt in tracker.ack(group)]
        [True]

    The calls raise the errors of ``fanin.errors``.

    Args:
        services: the six services.
        sqs: makes the client that producers and consumers use.
        ack_queue_url: the queue for ``via="queue"`` and ``ack_later``, the stack's output ``AckQueueUrl``.
        clock: tells the time from which a timedelta counts, and waits; the machine's by default.
    """

    def __init__(
        self,
        services: Fanin,
        sqs: Callable[[], SQSClient] = sqs_client,
        ack_queue_url: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        StackConnection.__init__(self, services, sqs, ack_queue_url, clock)
        LedgerCalls.__init__(self, services.ledger, self.clock)

    @property
    def frames(self) -> Frames:
        """Guaranteed delivery: the service for a ``Repeater`` and an ``IdempotentReceiver``."""
        return self.services.frames

    @cached_property
    def scatters(self) -> ScatterCalls:
        """Scatter-gather: send a message to many, reply, and read the replies."""
        return ScatterCalls(self.services.scatters, lambda: self.sqs)

    @property
    def directory(self) -> Directory:
        """The directory of instances: register, renew, move and deregister."""
        return self.services.directory

    @property
    def routing(self) -> Routing:
        """Content-based routing: routes, and events to be routed."""
        return self.services.routing

    @property
    def buffers(self) -> Buffers:
        """Bounded buffers: define, read and delete them."""
        return self.services.buffers

    def producer(self, buffer: str) -> Producer:
        """Make a producer that puts work into a buffer, and waits while it is full; see ``Producer``."""
        backoff = replace(ROOM_WAITS, sleep=self.clock.sleep)
        return Producer(self.services.buffers, buffer, backoff=backoff, now=self.clock.monotonic)

    def taker(
        self, buffer: str, *, most: int = 10, wait: int = 20, visibility_timeout: int | None = None
    ) -> Taker:
        """Make a taker that takes work out of a buffer; see ``Taker``."""
        return Taker(self.buffers, buffer, most=most, wait=wait, visibility_timeout=visibility_timeout)

    @contextmanager
    def batch(
        self, *, on_error: Literal["cancel", "leave"] | None = None, **options: Any
    ) -> Iterator[TrackedBatch]:
        """Open a batch, and close it at the end of the ``with`` block.

        If the block raises, the batch is cancelled, because nobody would send the rest. Messages that were
        sent are still handled; their acknowledgements come too late.

        A handler that opens a batch for the item of its message (``parent_item=message.item``) hands the item
        on to it: the consumer does not mark the item, the end of the batch does. If the block raises
        anything but ``ItemFailed``, the batch stays open; the message comes again, and the next block
        resumes the same batch: what it adds and sends, in the same order, gets the same items. A batch that
        an earlier block has closed takes nothing more, so ``send`` sends nothing then.

        Args:
            on_error: what to do with the batch if the block raises. ``"cancel"`` cancels it; ``"leave"``
                leaves it open, for a caller who goes on with ``attach``. By default it is cancelled, unless
                it is one that the next delivery of a message resumes.
            options: those of ``open``: ``user_key``, ``deadline``, ``limit`` …
        """
        resumable = IN_HAND.expects_child(options.get("parent_item"))
        batch = TrackedBatch(self, self.open(**options), lambda: self.sqs, resumable=resumable)
        try:
            yield batch
        except BaseException as error:
            comes_again = resumable and not isinstance(error, ItemFailed)
            if on_error == "cancel" or (on_error is None and not comes_again):
                _cancel(batch, error)
            raise
        batch.close()

    def attach(self, batch_id: int) -> TrackedBatch:
        """Go on with a batch that was opened before, perhaps by another process.

        Raises:
            BatchNotFound: there is no such batch.
        """
        return TrackedBatch(self, self.status(batch_id).batch, lambda: self.sqs)

    @overload
    def sqs_handler(self, handle: MessageHandler) -> SqsHandler: ...
    @overload
    def sqs_handler(self, *, via: AckPath = "api") -> Callable[[MessageHandler], SqsHandler]: ...
    def sqs_handler(
        self, handle: MessageHandler | None = None, *, via: AckPath = "api"
    ) -> SqsHandler | Callable[[MessageHandler], SqsHandler]:
        """Turn a function of one message into a Lambda handler for an SQS queue; see ``SqsHandler``.

        ::

            @tracker.sqs_handler
            def handle(message):
                store(message.json())

        Args:
            handle: gets a ``ReceivedMessage``. It raises ``ItemFailed`` to mark the item failed for good;
                after any other error the message comes again. A message without an item id is handled only,
                and so is one for whose item it opens a batch: the end of that batch marks the item.
            via: ``"queue"`` acknowledges through the ack queue, which is cheaper and takes some seconds.
        """
        if handle is not None:
            return SqsHandler(handle, lambda: self.acknowledger(via))
        return lambda handle: SqsHandler(handle, lambda: self.acknowledger(via))

    def consumer(
        self,
        queue_url: str,
        handle: MessageHandler,
        *,
        via: AckPath = "api",
        wait: int = 20,
        visibility_timeout: int | None = None,
    ) -> Consumer:
        """Make a consumer that polls a queue from this process; call its ``run``. See ``Consumer``.

        Args:
            queue_url: the queue, standard or FIFO.
            handle: does the work of one message, as in ``sqs_handler``.
            via: ``"queue"`` acknowledges through the ack queue, which is cheaper and takes some seconds.
            wait: seconds that a poll waits for messages, 0 to 20.
            visibility_timeout: seconds for which other consumers do not get the messages; None leaves it to
                the queue.

        Raises:
            NotConfigured: ``via="queue"``, and the ack queue is not known.
        """
        return Consumer(
            self.sqs,
            queue_url,
            handle,
            self.acknowledger(via),
            wait=wait,
            visibility_timeout=visibility_timeout,
            backoff=replace(SQS_WAITS, sleep=self.clock.sleep),
        )

    def ack_later(self, items: str | Iterable[str], *, failures: Iterable[Failure] = ()) -> None:
        """Mark items done through the ack queue, which is cheaper in bulk and takes some seconds.

        A bad id is not reported here; its message ends in the ack queue's dead-letter queue.

        Args:
            items: an item id, or several.
            failures: items that failed.

        Raises:
            NotConfigured: the ack queue is not known.
        """
        outcomes = [ItemOutcome(item) for item in ([items] if isinstance(items, str) else items)]
        outcomes += [ItemOutcome(failure.item, failure.reason) for failure in failures]
        self.acknowledger("queue")(outcomes)

    def acknowledger(self, via: AckPath = "api") -> Acknowledger:
        """Make an acknowledger for your own ``Consumer`` or ``IdempotentReceiver``.

        Args:
            via: ``"api"`` returns when the items are marked, ``"queue"`` when the ack queue has them. While
                the ledger is overloaded, ``"api"`` uses the ack queue, if it is known.

        Raises:
            NotConfigured: ``via="queue"``, and the ack queue is not known.
        """
        if via == "api":
            return LedgerAcknowledger(self, self.acknowledger("queue") if self._ack_queue_url else None)
        if self._ack_queue_url is None:
            raise NotConfigured(f"the ack queue is not known; set {ENV_ACK_QUEUE_URL}, or pass ack_queue_url")
        return QueueAcknowledger(self.sqs, self._ack_queue_url)


def _cancel(batch: TrackedBatch, error: BaseException) -> None:
    """Cancel a batch because of an error; if that fails, add a note to the error instead of hiding it."""
    try:
        batch.cancel()
    except FaninError as second:
        error.add_note(f"batch {batch.id} could not be cancelled: {second}")
