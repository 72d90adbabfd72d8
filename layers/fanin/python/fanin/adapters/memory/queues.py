"""Queues in memory: those of buffers, where a received message comes again, and those of users."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from fanin.adapters.memory.accesses import Accesses
from fanin.app.ports.channels import Offered, Outgoing
from fanin.app.ports.queues import QueueReport, QueueState, Received
from fanin.app.ports.system import Clock
from fanin.domain.directory import check_channel
from fanin.errors import ChannelRefused


class MemoryChannels:
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

    def send(self, messages: Sequence[Outgoing]) -> list[str | None]:
        return self.offer(messages).answers(len(messages))

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


@dataclass
class _Held:
    message: Outgoing
    sent_at: int
    invisible_until: int = 0
    handle: str = ""


class MemoryQueues:
    """A ``Queues`` over the queues of ``MemoryChannels``.

    ``receive`` does not wait, since time passes only when the clock is moved.

    Attributes:
        visibility_timeout: seconds until a received message comes again.
        retention: seconds until a message is dropped.
    """

    def __init__(self, channels: MemoryChannels, accesses: Accesses, clock: Clock) -> None:
        self.visibility_timeout = 30
        self.retention = 345_600
        self._channels = channels
        self._accesses = accesses
        self._clock = clock
        self._held: dict[str, list[_Held]] = {}
        self._numbers = count(1)

    def create(self, name: str, born: int) -> str:
        url = f"{PREFIX}{name}-{born:014x}"
        self._accesses.send("queues.create", lambda: self._channels.queues.setdefault(url, []))
        return url

    def delete(self, queue: str) -> None:
        def forget() -> None:
            self._channels.queues.pop(queue, None)
            self._channels.times.pop(queue, None)
            self._held.pop(queue, None)

        self._accesses.send("queues.delete", forget)

    def receive(self, queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:  # noqa: ARG002
        return self._accesses.send("queues.receive", lambda: self._receive(queue, most, visibility_timeout))

    def _receive(self, queue: str, most: int, visibility_timeout: int | None) -> list[Received]:
        now = self._clock.now()
        received: list[Received] = []
        for held in self._kept(queue):
            if held.invisible_until <= now and len(received) < most:
                held.invisible_until = (
                    now
                    + (self.visibility_timeout if visibility_timeout is None else visibility_timeout) * 1000
                )
                held.handle = f"delivery-{next(self._numbers)}"
                message = held.message
                texts = {name: text for name, text in message.attributes.items() if isinstance(text, str)}
                received.append(Received(held.handle, message.body, texts, held.sent_at))
        return received

    def remove(self, queue: str, handles: Sequence[str]) -> None:
        def drop() -> None:
            self._held[queue] = [held for held in self._kept(queue) if held.handle not in handles]

        if queue in self._channels.queues:
            self._accesses.send("queues.remove", drop)

    def state(self, queue: str) -> QueueState:
        def count_messages() -> QueueState:
            now = self._clock.now()
            return QueueState(
                self.retention, sum(bool(held.invisible_until > now) for held in self._kept(queue))
            )

        return self._accesses.send("queues.state", count_messages)

    def _kept(self, queue: str) -> list[_Held]:
        """The messages of a queue, new ones included, without those past the retention."""
        if queue not in self._channels.queues:
            raise ChannelRefused(f"there is no queue {queue!r}")
        now, arrived = self._clock.now(), self._channels.queues[queue]
        times = self._channels.times.pop(queue, [])
        held = self._held.get(queue, []) + [_Held(*one) for one in zip(arrived, times, strict=True)]
        arrived.clear()
        self._held[queue] = [one for one in held if now - one.sent_at < self.retention * 1000]
        return self._held[queue]


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
