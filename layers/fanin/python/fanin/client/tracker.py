"""The tracker: everything one can do with fanin, over HTTPS, straight on the tables, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, overload

from fanin.app.api import Buffers, Directory, Fanin, Frames, Routing
from fanin.client import connecting
from fanin.client.buffers import ROOM_WAITS, Producer, Taker
from fanin.client.clock import Clock
from fanin.client.consuming.acknowledging import (
    Acknowledger,
    ItemOutcome,
    LedgerAcknowledger,
    QueueAcknowledger,
)
from fanin.client.consuming.consumer import SQS_WAITS, Consumer
from fanin.client.consuming.handler import SqsHandler
from fanin.client.consuming.window import MessageHandler
from fanin.client.https.transport import Sign
from fanin.client.ledger import LedgerCalls
from fanin.client.producing.batch import TrackedBatch
from fanin.client.scatters import ScatterCalls
from fanin.domain.acks import Failure
from fanin.entry.settings import Settings
from fanin.errors import FaninError, NotConfigured
from fanin.names import ENV_ACK_QUEUE_URL

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_sqs import SQSClient

AckPath: TypeAlias = Literal["api", "queue"]
"""How a consumer's outcomes reach the ledger: asked at once, or left in the ack queue."""


class Tracker(LedgerCalls):
    """The face of fanin: batches, acknowledgements, producers and consumers.

    Make one with ``from_env``, ``local``, ``over_https``, ``direct`` or ``in_memory``; all have the same
    methods. A tracker is cheap to make (clients come with the first call) and safe to share by threads.

        >>> tracker = Tracker.in_memory()
        >>> with tracker.batch(user_key="catalog-42") as batch:
        ...     group = batch.add(3)
        >>> [receipt.complete for receipt in tracker.ack(group)]
        [True]

    Args:
        services: where the batches are kept, and the patterns on them.
        sqs: makes the client that producers and consumers use.
        ack_queue_url: the queue of ``via="queue"`` and ``ack_later``, the stack's output ``AckQueueUrl``.
        clock: from which a timedelta counts, and by which it waits; the machine's by default.
    """

    def __init__(
        self,
        services: Fanin,
        sqs: Callable[[], SQSClient] = connecting.sqs_client,
        ack_queue_url: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(services.ledger, clock)
        self.services = services
        self._make_sqs = sqs
        self._ack_queue_url = ack_queue_url

    @classmethod
    def from_env(cls) -> Self:
        """The stack that the environment names.

        ``FANIN_PROFILE=local`` is the stack of ``fanin local up``. Else ``FANIN_API_URL`` is an API, called
        with SigV4. Else ``FANIN_BATCHES_TABLE`` and its like are tables, used directly.

        Raises:
            NotConfigured: it names none.
        """
        return cls(*connecting.from_env())

    @classmethod
    def local(cls, start: Path | None = None) -> Self:
        """The stack of ``fanin local up``, by the nearest ``.fanin/local.json``.

        Args:
            start: where to look first, and then in the folders above; this folder by default.

        Raises:
            NotConfigured: no such file was found.
        """
        return cls(*connecting.local(start))

    @classmethod
    def over_https(
        cls,
        url: str,
        *,
        session: boto3.Session | None = None,
        region: str | None = None,
        sign: Sign | None = None,
        ack_queue_url: str | None = None,
    ) -> Self:
        """The API at a URL.

        Args:
            url: the stack's output ``ApiUrl``.
            session: credentials for the API and for the queues; boto3's default by default.
            region: the API's, where its URL does not say and it is not the session's.
            sign: another way than SigV4: ``fanin.Bearer(token)`` or ``fanin.unsigned``.
            ack_queue_url: the stack's output ``AckQueueUrl``.
        """
        return cls(
            *connecting.over_https(
                url, session=session, region=region, sign=sign, ack_queue_url=ack_queue_url
            )
        )

    @classmethod
    def direct(cls, settings: Settings | None = None) -> Self:
        """The tables themselves, without the API between: for those whose role may use them.

        Args:
            settings: names the tables; by default the environment does (``FANIN_BATCHES_TABLE`` …).

        Raises:
            NotConfigured: a table is not named.
        """
        return cls(*connecting.direct(settings))

    @classmethod
    def in_memory(cls) -> Self:
        """The whole service within this process, for tests and small jobs; it ends with the process.

        What follows from a call is done before it returns, and what is due with the next call. Queues are
        made with ``tracker.sqs.create_queue``. Tests that move the clock use ``fanin.testing``.
        """
        return cls(*connecting.in_memory())

    @cached_property
    def sqs(self) -> SQSClient:
        """The client for queues, made with its first use."""
        return self._make_sqs()

    @property
    def frames(self) -> Frames:
        """Frames, for a ``Repeater`` and an ``IdempotentReceiver``."""
        return self.services.frames

    @cached_property
    def scatters(self) -> ScatterCalls:
        """Scatter-gather: to send a message to many, to reply, and to read the replies."""
        return ScatterCalls(self.services.scatters, lambda: self.sqs)

    @property
    def directory(self) -> Directory:
        """Who listens where: to register, keep alive, move and leave."""
        return self.services.directory

    @property
    def routing(self) -> Routing:
        """Which events go to whom, and events to be routed."""
        return self.services.routing

    @property
    def buffers(self) -> Buffers:
        """Bounded buffers: to define, look at and delete them."""
        return self.services.buffers

    def producer(self, buffer: str) -> Producer:
        """Make a producer that puts work into a buffer, waiting while it is full."""
        backoff = replace(ROOM_WAITS, sleep=self.clock.sleep)
        return Producer(self.services.buffers, buffer, backoff=backoff, now=self.clock.monotonic)

    def taker(
        self, buffer: str, *, most: int = 10, wait: int = 20, visibility_timeout: int | None = None
    ) -> Taker:
        """Make a taker that takes work out of a buffer. See ``Taker``."""
        return Taker(self.buffers, buffer, most=most, wait=wait, visibility_timeout=visibility_timeout)

    @contextmanager
    def batch(
        self, *, on_error: Literal["cancel", "leave"] = "cancel", **options: Any
    ) -> Iterator[TrackedBatch]:
        """Open a batch, and close it at the end of the ``with`` block.

        If the block raises, the batch is cancelled, since nobody will send the rest: messages that are out
        are still handled, and their acknowledgements come late. ``on_error="leave"`` leaves it open for
        a caller who goes on with ``attach``.

        Args:
            on_error: what becomes of the batch when the block raises.
            options: of ``open``: ``user_key``, ``deadline``, ``limit`` …
        """
        batch = TrackedBatch(self, self.open(**options), lambda: self.sqs)
        try:
            yield batch
        except BaseException as error:
            if on_error == "cancel":
                _cancel(batch, error)
            raise
        batch.close()

    def attach(self, batch_id: int) -> TrackedBatch:
        """A batch that was opened before, perhaps by somebody else."""
        return TrackedBatch(self, self.status(batch_id).batch, lambda: self.sqs)

    @overload
    def sqs_handler(self, handle: MessageHandler) -> SqsHandler: ...
    @overload
    def sqs_handler(self, *, via: AckPath = "api") -> Callable[[MessageHandler], SqsHandler]: ...
    def sqs_handler(
        self, handle: MessageHandler | None = None, *, via: AckPath = "api"
    ) -> SqsHandler | Callable[[MessageHandler], SqsHandler]:
        """Make a Lambda handler for an SQS queue of a function of one message; see ``SqsHandler``.

        ::

            @tracker.sqs_handler
            def handle(message):
                store(message.json())

        Args:
            handle: gets a ``ReceivedMessage``. It raises ``ItemFailed`` to mark the item failed for good; any
                other error gets the message again. A message without an item id is handled, and that is all.
            via: ``"queue"`` acknowledges through the ack queue: cheaper, and a little later.
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
        """Make a consumer that polls a queue from this process; ``run`` it. See ``Consumer``."""
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
        """Mark items done through the ack queue: cheaper in bulk, and marked within its batching window.

        A bad id is not reported here; it ends in the ack queue's dead-letter queue.

        Raises:
            NotConfigured: the ack queue is not known.
        """
        outcomes = [ItemOutcome(item) for item in ([items] if isinstance(items, str) else items)]
        outcomes += [ItemOutcome(failure.item, failure.reason) for failure in failures]
        self.acknowledger("queue")(outcomes)

    def acknowledger(self, via: AckPath = "api") -> Acknowledger:
        """How outcomes reach the ledger; for consumers of your own.

        Raises:
            NotConfigured: ``"queue"``, and the ack queue is not known.
        """
        if via == "api":
            return LedgerAcknowledger(self)
        if self._ack_queue_url is None:
            raise NotConfigured(f"the ack queue is not known; set {ENV_ACK_QUEUE_URL} or give ack_queue_url")
        return QueueAcknowledger(self.sqs, self._ack_queue_url)


def _cancel(batch: TrackedBatch, error: BaseException) -> None:
    """Cancel what an error broke off, without hiding that error."""
    try:
        batch.cancel()
    except FaninError as second:
        error.add_note(f"batch {batch.id} could not be cancelled: {second}")
