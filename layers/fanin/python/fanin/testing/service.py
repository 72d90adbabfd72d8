"""The whole service in one process, for tests."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import count
from typing import Final

from fanin.adapters.memory import Callback, OnCall, SeededRandom
from fanin.adapters.memory.accesses import nothing
from fanin.adapters.memory.sqs import Queue
from fanin.app.api import Fanin
from fanin.app.ports.events import Event
from fanin.client.sqs import SQSClient
from fanin.client.tracker import Tracker
from fanin.domain.limits import MAX_VISIBILITY_TIMEOUT
from fanin.entry.in_memory.clock import ServiceClock, StandingClock
from fanin.entry.in_memory.event_source import LambdaHandler
from fanin.entry.in_memory.runtime import Runtime
from fanin.entry.in_memory.sources import Dead
from fanin.errors import InvalidRequest, NotConfigured, ServiceUnavailable
from fanin.names import CHANNEL_TAG, TRACKED_TAG

START: Final = datetime(2026, 11, 23, 9, tzinfo=UTC)
"""Where the clock stands at first, unless a test says otherwise."""

MAX_RECEIVES: Final = 1000
LARGEST_WINDOW: Final = 10_000
"""Limits of SQS and of its event source mappings."""


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise InvalidRequest(f"{name} is a number from {least} to {most}, not {value!r}")


class InMemoryService:
    """The whole service for one test: tables, functions, queues, event bus and alarms, in this process.

    What follows from a call is done before the call returns: an end is announced, the item of a parent batch
    marked, a scatter's messages sent, a consumer called. Time stands still until ``advance``, or until
    something waits (``wait``, a backoff, a poll of an empty queue): then it passes at once, and what is due
    meanwhile happens in order. So a test takes milliseconds, and runs the same way each time.

    Args:
        start: the time at first.
        seed: seed of all ids and random draws; the same seed gives the same run.
        on_call: called with the name of an access (``words.clear``) and ``before`` or ``after``, around each
            access to a store, a queue, an alarm or the bus, to fail it by raising. See ``Fault``.

    Attributes:
        clock: its ``seconds``, ``monotonic`` and ``sleep`` replace ``time.time`` and its like in your code.
        services: the eight services behind the tracker.
        sqs: a client for its queues, with the calls of boto3's.
        dead: what could not be handled, each with the name of the function.

    Raises:
        InvalidRequest: ``start`` has no time zone.
    """

    def __init__(self, *, start: datetime = START, seed: int = 0, on_call: OnCall | None = None) -> None:
        if start.tzinfo is None:
            raise InvalidRequest(f"the start {start} has no time zone; use datetime(2030, 1, 1, tzinfo=UTC)")
        at = int(start.timestamp() * 1000)
        self._runtime = Runtime(StandingClock(at), SeededRandom(seed), on_call)
        self._names = count(1)
        self.clock: ServiceClock = self._runtime.clock
        self.services: Fanin = self._runtime.services
        self.sqs: SQSClient = self._runtime.sqs
        self.dead: list[Dead] = self._runtime.dead

    @cached_property
    def tracker(self) -> Tracker:
        """A tracker of the service, with all its methods."""
        return Tracker(self.services, lambda: self.sqs, self._runtime.ack_queue_url, self.clock)

    @property
    def on_call(self) -> OnCall:
        """Called around each access; set it to make accesses fail from now on, and to None to stop that."""
        return self._runtime.on_call

    @on_call.setter
    def on_call(self, on_call: OnCall | None) -> None:
        self._runtime.on_call = on_call or nothing

    @property
    def now(self) -> datetime:
        """The time by the service's clock."""
        return datetime.fromtimestamp(self.clock.now() / 1000, UTC)

    def advance(self, time: timedelta) -> None:
        """Move the clock forward by ``time``, and run in order what becomes due.

        Deadlines are met, the reaper and the registrar come by every five minutes, messages come again or
        expire, and what failed is tried again.

        Raises:
            InvalidRequest: ``time`` is negative, or not a timedelta.
        """
        if not isinstance(time, timedelta) or time < timedelta(0):
            raise InvalidRequest(f"advance takes a timedelta that is not negative, not {time!r}")
        self.clock.sleep(time.total_seconds())

    @property
    def events(self) -> Sequence[Event]:
        """All events of the bus, in order, as subscribers get them."""
        return tuple(self._runtime.bus.told)

    def events_of(self, batch_id: int) -> list[Event]:
        """The events of a batch, a scatter or a frame."""
        return [event for event in self.events if event.detail.get("batch_id") == batch_id]

    @property
    def callbacks(self) -> Sequence[Callback]:
        """What targets were told, in order: tasks, durable functions and webhooks. Queues get messages."""
        return tuple(self._runtime.memory.callbacks.told)

    @property
    def unrouted(self) -> Sequence[Event]:
        """Events of other sources that matched no route, or that no queue accepted."""
        return tuple(self._runtime.bus.unrouted)

    def queue(
        self,
        name: str | None = None,
        *,
        max_receives: int | None = None,
        visibility_timeout: int = 30,
        fifo: bool = False,
        channel: bool = False,
        attributes: Mapping[str, str] | None = None,
    ) -> str:
        """Make a queue.

        Args:
            name: the queue's name; generated if None.
            max_receives: how often a message is received before it goes to the queue's dead letters, and its
                item is marked failed, as with a ``TrackedQueue``. None delivers it again and again.
            visibility_timeout: seconds until a message comes again that was received and not deleted.
            fifo: keeps the order within each message group.
            channel: lets the service send to it: it carries the tag ``fanin:channel``.
            attributes: more attributes, by SQS's names.

        Returns:
            The queue's URL.

        Raises:
            InvalidRequest: a number is out of SQS's range.
        """
        if max_receives is not None:
            _within("max_receives", max_receives, 1, MAX_RECEIVES)
        _within("visibility_timeout", visibility_timeout, 0, MAX_VISIBILITY_TIMEOUT)
        named = name or f"queue-{next(self._names)}"
        suffix = ".fifo" if fifo and not named.endswith(".fifo") else ""
        more = {"VisibilityTimeout": str(visibility_timeout), **(attributes or {})}
        tags = {TRACKED_TAG: "test"} | ({CHANNEL_TAG: "test"} if channel else {})
        return self._runtime.queue(named + suffix, max_receives=max_receives, attributes=more, tags=tags).url

    def consume(self, queue_url: str, handler: LambdaHandler, *, batch_size: int = 10) -> None:
        """Hand the messages of a queue to a Lambda handler from now on, as an event source mapping does.

        Messages that it reports in ``batchItemFailures``, or all if it raises, are delivered again after the
        visibility timeout.

        Args:
            queue_url: of the queue.
            handler: such as ``@tracker.sqs_handler`` makes; called with an event and a context.
            batch_size: most messages of one call, 1 to 10,000.

        Raises:
            NotConfigured: there is no such queue.
            InvalidRequest: the batch size is out of range.
        """
        _within("batch_size", batch_size, 1, LARGEST_WINDOW)
        self._existing(queue_url)
        self._runtime.consume(queue_url, handler, most=batch_size)
        self._runtime.settle()

    def deliver_twice(self, queue_url: str, *, share: float = 1.0) -> None:
        """Deliver each message that is sent from now on once more after it was deleted, as SQS may.

        Args:
            queue_url: of the queue.
            share: which share of the messages, 0 to 1.

        Raises:
            NotConfigured: there is no such queue.
            InvalidRequest: the share is out of range.
        """
        _within("share", share, 0, 1)
        self._existing(queue_url).duplicated = share

    def upload(self, key: str) -> None:
        """Pretend that the payload of a claim check was uploaded to its URL; ``key`` is the claim's."""
        self._runtime.memory.claims.uploaded.add(key)

    def _existing(self, queue_url: str) -> Queue:
        queue = self._runtime.queues.find(queue_url)
        if queue is None:
            raise NotConfigured(f"there is no queue {queue_url!r} in memory; make it with service.queue()")
        return queue


class Fault:
    """An ``on_call`` that raises at one kind of access, a given number of times.

    ``before``: the access never arrived. ``after``: it took effect, and its answer was lost. A retryable
    error of ``fanin.errors`` is what an outage looks like; any other stands for a crash of the caller.

    Args:
        call: the access, such as ``words.clear``, ``events.publish`` or ``sqs.send_message_batch``.
        moment: ``before`` or ``after``.
        error: what to raise; ``ServiceUnavailable`` if None.
        times: how often to raise.
        skip: how many accesses of that kind succeed first.

    Attributes:
        left: how often it will still raise.

    Raises:
        InvalidRequest: ``call`` has no dot, or ``moment`` is neither ``before`` nor ``after``.
    """

    def __init__(
        self,
        call: str,
        moment: str = "before",
        *,
        error: Exception | None = None,
        times: int = 1,
        skip: int = 0,
    ) -> None:
        if "." not in call:
            raise InvalidRequest(f"a fault's call is an access such as 'words.clear', not {call!r}")
        if moment not in ("before", "after"):
            raise InvalidRequest(f"a fault's moment is 'before' or 'after', not {moment!r}")
        self.left = times
        self._where = call, moment
        self._error = error or ServiceUnavailable("no answer, for a test")
        self._skip = skip

    def __call__(self, call: str, moment: str) -> None:
        if (call, moment) != self._where or not self.left:
            return
        if self._skip:
            self._skip -= 1
            return
        self.left -= 1
        raise self._error
