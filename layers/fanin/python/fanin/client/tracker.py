"""The tracker: all of fanin for its users, over HTTPS, directly on the tables, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias, TypedDict, Unpack, overload

from botocore.credentials import Credentials

from fanin.adapters.system import SystemRandom
from fanin.app.api import Buffers, Directory, Fanin, Frames, Routing
from fanin.client import local_stack
from fanin.client.buffers import ROOM_WAITS, Producer, Taker
from fanin.client.consuming.acknowledging import Acknowledger, LedgerAcknowledger, QueueAcknowledger
from fanin.client.conversions import BatchOptions, member
from fanin.client.diagnostics import DiagnosticCalls
from fanin.client.ended_batches import SkipEnded, Skipping
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import Identity, Sign, SigV4, Urllib3Transport
from fanin.client.items_in_hand import IN_HAND
from fanin.client.ledger import LedgerCalls
from fanin.client.marking import each, error_of
from fanin.client.messages import ReceivedMessage
from fanin.client.producing.batch import TrackedBatch
from fanin.client.reading import WaitingClock
from fanin.client.sqs import SQSClient, sqs_client
from fanin.domain import limits
from fanin.domain.access import checked_name
from fanin.domain.batch import CloseWhen
from fanin.domain.failures import Keep
from fanin.domain.ids import Group, parse_item
from fanin.domain.marks import Mark, Marked
from fanin.entry.settings import Settings
from fanin.errors import FaninError, InvalidRequest, ItemFailed, NotConfigured
from fanin.names import ENV_ACK_QUEUE_URL, ENV_API_URL, ENV_BATCHES_TABLE, ENV_PROFILE

if TYPE_CHECKING:
    import boto3

    from fanin.client.consuming.consumer import Consumer, SqsHandler
    from fanin.client.consuming.window import Handling, MessageHandler
    from fanin.client.scatters import ScatterCalls

_LOCAL_READ_TIMEOUT: Final = 120.0
"""Seconds; a burst of first calls starts a process for each on this machine."""

AckPath: TypeAlias = Literal["api", "queue"]
"""How acknowledgements reach the ledger: through its API, or through the ack queue."""


class ConsumerOptions(TypedDict, total=False):
    """How a consumer acknowledges, and what it keeps.

    Attributes:
        via: ``"queue"`` acknowledges through the ack queue, which is cheaper and takes some seconds.
        keep: ``"message"`` keeps the message of an item that failed for good with its batch;
            ``"reason"`` keeps the reason alone.
        skip_ended: drop messages of batches that are known to have ended, without calling the handler.
            ``"look"`` reads the batch first, at most every 30 seconds, which ``via="queue"`` needs to
            learn of an end. False handles every message.
        results: what the handler returns is the result of its item, unless it is None: a JSON value of up
            to 1 MiB, or up to 256 KiB with ``via="queue"``. The batch was opened with ``results=True``.
            After anything else the message comes again.
    """

    via: AckPath
    keep: Keep | str
    skip_ended: SkipEnded
    results: bool


class Tracker(LedgerCalls, DiagnosticCalls):
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
        services: the eight services.
        sqs: makes the client that producers and consumers use.
        ack_queue_url: the queue for ``via="queue"`` and ``ack_later``, the stack's output ``AckQueueUrl``.
        clock: tells the time from which a timedelta counts, and waits; the machine's by default.
    """

    def __init__(
        self,
        services: Fanin,
        sqs: Callable[[], SQSClient] = sqs_client,
        ack_queue_url: str | None = None,
        clock: WaitingClock | None = None,
    ) -> None:
        super().__init__(services.ledger, clock)
        self.services = services
        self._make_sqs = sqs
        self._ack_queue_url = ack_queue_url
        # Of an item that adds to its batch only the limit of that is looked at, which never changes.
        self._row_of_limit = lru_cache(1_000)(self._row)

    @cached_property
    def sqs(self) -> SQSClient:
        """The client for queues."""
        return self._make_sqs()

    @classmethod
    def from_env(cls) -> Self:
        """Connect to the stack that the environment names.

        With ``FANIN_PROFILE=local`` that is the stack of ``fanin local up``; else, with ``FANIN_API_URL``,
        the API there, called with SigV4; else, with ``FANIN_BATCHES_TABLE`` and its like, those tables.

        Raises:
            NotConfigured: no such variable is set, or not all that are needed.
        """
        settings = Settings.from_env()
        environment = settings.environment
        if local_stack.wants_local(environment):
            return cls.local()
        if url := environment.get(ENV_API_URL):
            return cls.over_https(url, ack_queue_url=settings.ack_queue_url)
        if environment.get(ENV_BATCHES_TABLE):
            return cls.direct(settings)
        raise NotConfigured(
            f"no stack to talk to; set {ENV_API_URL} (the stack's output ApiUrl),"
            f" {ENV_PROFILE}={local_stack.LOCAL} for the stack of `fanin local up`, or {ENV_BATCHES_TABLE}"
            " and the other tables"
        )

    @classmethod
    def local(cls, start: Path | None = None) -> Self:
        """Connect to the stack of ``fanin local up``, which the nearest ``.fanin/local.json`` describes.

        Args:
            start: the folder to search; then come those above it, and no others. By default the current
                folder and those above it; if none has the file, the stack that was started last.

        Raises:
            NotConfigured: there is no such file, or it is damaged.
        """
        stack = local_stack.nearest(start) if start else local_stack.current()
        transport = Urllib3Transport(read_timeout=_LOCAL_READ_TIMEOUT)
        keys = Identity(Credentials(stack.access_key_id, stack.secret_access_key), stack.region)
        api = HttpsApi(stack.api_url, sign=SigV4(keys), transport=transport)

        def sqs() -> SQSClient:
            return sqs_client(stack.session(), stack.endpoint_url)

        return cls(HttpsServices(api), sqs, stack.ack_queue_url)

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
        """Connect to the API at a URL.

        Args:
            url: the stack's output ``ApiUrl``.
            session: credentials for the API and for queues; by default boto3's default session.
            region: the API's region, if neither its URL nor the session says it.
            sign: another authentication than SigV4: ``fanin.Bearer(token)`` or ``fanin.unsigned``.
            ack_queue_url: the stack's output ``AckQueueUrl``, for ``via="queue"`` and ``ack_later``.
        """
        api = HttpsApi(url, sign=sign or SigV4(session, region))
        return cls(HttpsServices(api), lambda: sqs_client(session), ack_queue_url)

    @classmethod
    def direct(cls, settings: Settings | None = None, *, opened_by: str = "") -> Self:
        """Connect to the tables, without the API in between: for those whose role may use the tables.

        Args:
            settings: names the tables; by default the environment does (``FANIN_BATCHES_TABLE`` …).
            opened_by: name of this program, for the ``opened_by`` of its batches; at most 256 bytes. Nobody
                checks it. The API knows its callers by itself.

        Raises:
            InvalidRequest: ``opened_by`` is too long.
            NotConfigured: a table is not named.
        """
        from fanin.app.services import Services  # noqa: PLC0415 - the use cases and the DynamoDB adapters,
        from fanin.entry import wiring  # noqa: PLC0415 - which no other stack needs

        named = settings or Settings.from_env()
        ports = wiring.connect(named)
        if opened_by:
            ports = replace(ports, defaults=replace(ports.defaults, opened_by=checked_name(opened_by)))
        return cls(Services(ports, rows=limits.MAX_ROWS_DIRECT), sqs_client, named.ack_queue_url)

    @classmethod
    def in_memory(cls) -> Self:
        """Start the whole service within this process, for tests and small jobs; it ends with the process.

        What follows from a call is done before it returns, and what is due with the next call. Queues are
        made with ``tracker.sqs.create_queue``. Tests that move the clock use ``fanin.testing``.
        """
        from fanin.entry.in_memory.clock import RealClock  # noqa: PLC0415 - use cases that nobody else needs
        from fanin.entry.in_memory.runtime import Runtime  # noqa: PLC0415

        runtime = Runtime(RealClock(), SystemRandom())
        return cls(runtime.services, lambda: runtime.sqs, runtime.ack_queue_url, runtime.clock)

    @property
    def frames(self) -> Frames:
        """Guaranteed delivery: the service for a ``Repeater`` and an ``IdempotentReceiver``."""
        return self.services.frames

    @cached_property
    def scatters(self) -> ScatterCalls:
        """Scatter-gather: send a message to many, reply, and read the replies."""
        from fanin.client.scatters import ScatterCalls  # noqa: PLC0415

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
        self,
        *,
        on_error: Literal["cancel", "leave"] | None = None,
        close: CloseWhen | str = CloseWhen.NOW,
        key: str | None = None,
        **options: Unpack[BatchOptions],
    ) -> Iterator[TrackedBatch]:
        """Open a batch, and close it at the end of the ``with`` block.

        If the block raises, the batch is cancelled, because nobody would send the rest. Messages that were
        sent are dropped by consumers that have learned of it, and handled by others, whose acknowledgements
        come too late.

        A handler that opens a batch for the item of its message (``parent_item=message.item``) hands the item
        on to it: the consumer does not mark the item, the end of the batch does. If the block raises
        anything but ``ItemFailed``, the batch stays open; the message comes again, and the next block
        resumes the same batch: what it adds and sends, in the same order, gets the same items. A batch that
        an earlier block has closed takes nothing more, so ``send`` sends nothing then.

        Args:
            on_error: what to do with the batch if the block raises. ``"cancel"`` cancels it; ``"leave"``
                leaves it open, for a caller who goes on with ``attach``. By default it is cancelled, unless
                it is one that the next delivery of a message resumes.
            close: when the batch takes no more items: ``"now"``, at the end of the block; or ``"drained"``,
                when all that it has are done, so that handlers may add more; see ``message.add_items``.
            key: idempotency key; see ``open``.
            options: those of ``BatchOptions``: ``user_key``, ``deadline``, ``limit`` …
        """
        if on_error not in (None, "cancel", "leave"):
            raise InvalidRequest(f'on_error must be "cancel", "leave" or None, not {limits.shown(on_error)}')
        when = member(CloseWhen, close)
        resumable = IN_HAND.expects_child(options.get("parent_item"))
        batch = TrackedBatch(
            self, self.open(key=key, **options), lambda: self.sqs, resumable=resumable, note=self.note_sent
        )
        try:
            yield batch
        except BaseException as error:
            comes_again = resumable and not isinstance(error, ItemFailed)
            if on_error == "cancel" or (on_error is None and not comes_again):
                _cancel(batch, error)
            raise
        batch.close(when=when)

    def attach(self, batch_id: int) -> TrackedBatch:
        """Go on with a batch that was opened before, perhaps by another process.

        Raises:
            BatchNotFound: there is no such batch.
        """
        return TrackedBatch(self, self.status(batch_id).batch, lambda: self.sqs, note=self.note_sent)

    @overload
    def sqs_handler(self, handle: MessageHandler) -> SqsHandler: ...
    @overload
    def sqs_handler(self, **options: Unpack[ConsumerOptions]) -> Callable[[MessageHandler], SqsHandler]: ...
    def sqs_handler(
        self, handle: MessageHandler | None = None, **options: Unpack[ConsumerOptions]
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
            options: those of ``ConsumerOptions``.
        """
        # Those who only produce, or ask, need none of what consumes.
        from fanin.client.consuming.consumer import SqsHandler  # noqa: PLC0415

        made = partial(
            SqsHandler,
            acknowledger=cache(partial(self.acknowledger, options.get("via", "api"))),
            **self._handling(**options),
        )
        return made if handle is None else made(handle)

    def consumer(
        self,
        queue_url: str,
        handle: MessageHandler,
        *,
        wait: int = 20,
        visibility_timeout: int | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer:
        """Make a consumer that polls a queue from this process; call its ``run``. See ``Consumer``.

        Args:
            queue_url: the queue, standard or FIFO.
            handle: does the work of one message, as in ``sqs_handler``.
            wait: seconds that a poll waits for messages, 0 to 20.
            visibility_timeout: seconds for which other consumers do not get the messages; None leaves it to
                the queue.
            options: those of ``ConsumerOptions``.

        Raises:
            NotConfigured: ``via="queue"``, and the ack queue is not known.
        """
        from fanin.client.consuming.consumer import SQS_WAITS, Consumer  # noqa: PLC0415

        return Consumer(
            self.sqs,
            queue_url,
            handle,
            self.acknowledger(options.get("via", "api")),
            wait=wait,
            visibility_timeout=visibility_timeout,
            backoff=replace(SQS_WAITS, sleep=self.clock.sleep),
            **self._handling(**options),
        )

    def _handling(
        self,
        *,
        via: AckPath = "api",
        keep: Keep | str = Keep.MESSAGE,
        skip_ended: SkipEnded = True,
        results: bool = False,
    ) -> Handling:
        """How consumers of this tracker handle messages."""
        return {
            "keep": member(Keep, keep),
            "results": limits.flag("results", results),
            "skipping": Skipping(self.ended, self._row, skip_ended, receipts=via == "api"),
            # Acknowledgements that go through a queue need no ledger.
            "note": self.note_retries if via == "api" else None,
            "now": self.clock.now,
            "batch_of": self._batch_of,
        }

    def _batch_of(self, message: ReceivedMessage) -> TrackedBatch:
        """The batch of a message, to which its item may add."""
        block, _ = parse_item(message.item or "")
        row = self._row_of_limit(block.batch_id)
        return TrackedBatch(self, row, lambda: self.sqs, note=self.note_sent, item=message.item)

    def ack_later(self, marks: Mark | Group | Iterable[Mark | Group]) -> None:
        """Mark items through the ack queue, which is cheaper in bulk and takes some seconds.

        What only the ledger refuses, such as a malformed id or one that it did not issue, is not reported
        here; it ends in the ack queue's dead-letter queue, apart from the other marks.

        Args:
            marks: as in ``ack``; failures may be among them, with their messages.

        Raises:
            NotConfigured: the ack queue is not known.
            InvalidRequest: the only mark is of a wrong type, or its message is larger than the queue takes.
            PartlyMarked: some of several marks are malformed, or were not taken by the queue; all others were
                sent.
        """
        given = list(each(marks))
        unsettled = self.acknowledger("queue")(given)
        if unsettled:
            refused = {at: why for at, why in unsettled.items() if not why.retryable}
            left = {at: why for at, why in unsettled.items() if why.retryable}
            raise error_of(Marked((), refused, left), dict(enumerate(given)), of=len(given))

    def acknowledger(self, via: AckPath = "api") -> Acknowledger:
        """Make an acknowledger for your own ``Consumer`` or ``IdempotentReceiver``.

        Args:
            via: ``"api"`` returns when the items are marked, ``"queue"`` when the ack queue has them. While
                the ledger is overloaded, ``"api"`` uses the ack queue, if it is known.

        Raises:
            NotConfigured: ``via="queue"``, and the ack queue is not known.
        """
        if via not in ("api", "queue"):
            raise InvalidRequest(f'via must be "api" or "queue", not {limits.shown(via)}')
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
