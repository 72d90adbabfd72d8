"""Queues in memory: those of buffers, where a received message comes again, and those of users."""

from collections.abc import Collection, Sequence
from functools import partial

from fanin.adapters.memory.accesses import Accesses
from fanin.adapters.memory.sqs.queue import Queue
from fanin.app.ports.queues import Channels, Offered, Outgoing, QueueReport, QueueState, Received
from fanin.app.ports.system import Clock, Random
from fanin.domain.directory import check_channel
from fanin.errors import ChannelRefused


class MemoryChannels(Channels):
    """A ``Channels`` that keeps the messages it is sent.

    Attributes:
        queues: URL → messages, in order. A URL that is not a key is not a queue.
        times: URL → when each message was sent, ms, in the same order.
        refusing: URL → why the queue, which exists, takes no message.
        busy: URLs of queues that take no message for now.
    """

    def __init__(self, accesses: Accesses, clock: Clock) -> None:
        self.queues: dict[str, list[Outgoing]] = {}
        self.times: dict[str, list[int]] = {}
        self.refusing: dict[str, str] = {}
        self.busy: set[str] = set()
        self._accesses = accesses
        self._clock = clock

    def resolve(self, channel: str, *, new: bool = True, again: bool = False) -> str:  # noqa: ARG002  in memory a new queue is visible at once
        if not again:
            check_channel(channel)
        if channel not in self.queues:
            raise ChannelRefused(f"there is no queue {channel!r} with the tag fanin:channel")
        return channel

    def offer(self, messages: Sequence[Outgoing]) -> Offered:
        refused: dict[int, str] = {}
        waiting: dict[int, str] = {}
        for place, message in enumerate(messages):
            if message.channel in self.busy:
                waiting[place] = "the queue is busy"
                continue
            answer = self._accesses.send("channels.send", lambda: self._put(message))  # noqa: B023
            if answer is not None:
                refused[place] = answer
        return Offered(refused, waiting)

    def _put(self, message: Outgoing) -> str | None:
        if message.channel not in self.queues:
            return "there is no such queue"
        if message.channel in self.refusing:
            return self.refusing[message.channel]
        self.queues[message.channel].append(message)
        self.times.setdefault(message.channel, []).append(self._clock.now())
        return None


PREFIX = "memory:"


class MemoryQueues:
    """A ``Queues`` over the queues of ``MemoryChannels``.

    ``receive`` does not wait, since time passes only when the clock is moved.

    Attributes:
        visibility_timeout: seconds until a received message comes again.
        retention: seconds until a message is dropped.
    """

    def __init__(self, channels: MemoryChannels, accesses: Accesses, clock: Clock, random: Random) -> None:
        self.visibility_timeout = 30
        self.retention = 345_600
        self._channels = channels
        self._accesses = accesses
        self._clock = clock
        self._random = random
        self._queues: dict[str, Queue] = {}

    def create(self, name: str, born: int) -> str:
        url = f"{PREFIX}{name}-{born:014x}"
        self._accesses.send("queues.create", lambda: self._channels.queues.setdefault(url, []))
        return url

    def delete(self, queue: str) -> None:
        def forget() -> None:
            self._channels.queues.pop(queue, None)
            self._channels.times.pop(queue, None)
            self._queues.pop(queue, None)

        self._accesses.send("queues.delete", forget)

    def receive(self, queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:  # noqa: ARG002
        def receive() -> list[Received]:
            found = self._queue(queue).receive(most, visibility_timeout)
            return [Received(held.handle, held.body, held.attributes, held.sent_at) for held in found]

        return self._accesses.send("queues.receive", receive)

    def remove(self, queue: str, handles: Sequence[str]) -> None:
        def remove() -> None:
            for handle in handles:
                self._queue(queue).remove(handle)

        if queue in self._channels.queues:
            self._accesses.send("queues.remove", remove)

    def state(self, queue: str) -> QueueState:
        counts = self._accesses.send("queues.state", lambda: self._queue(queue).counts())
        return QueueState(self.retention, counts[1])

    def _queue(self, url: str) -> Queue:
        """A queue, with what was sent to it."""
        if url not in self._channels.queues:
            raise ChannelRefused(f"there is no queue {url!r}")
        if url not in self._queues:
            self._queues[url] = Queue(url, url, url, self._clock, self._random)
        queue, arrived = self._queues[url], self._channels.queues[url]
        queue.attributes["VisibilityTimeout"] = str(self.visibility_timeout)
        queue.attributes["MessageRetentionPeriod"] = str(self.retention)
        for message, at in zip(arrived, self._channels.times.pop(url, []), strict=True):
            texts = {name: text for name, text in message.attributes.items() if isinstance(text, str)}
            queue.send(message.body, texts, sent_at=at).visible_at = 0  # whatever the clock says since
        arrived.clear()
        return queue


class MemoryInspection:
    """A ``QueueInspection`` that reports what it was given.

    Attributes:
        reports: URL → report; another queue cannot be looked at.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.reports: dict[str, QueueReport] = {}
        self._accesses = accesses

    def look(self, queues: Collection[str]) -> list[QueueReport]:
        return [self._accesses.send("inspection.look", partial(self._report, queue)) for queue in queues]

    def _report(self, queue: str) -> QueueReport:
        return self.reports.get(queue, QueueReport(queue, unseen=("its figures (no report)",)))
