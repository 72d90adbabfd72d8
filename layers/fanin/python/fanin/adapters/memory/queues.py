"""Queues of buffers in memory: a received message comes again after a while, unless it is removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from fanin.adapters.memory.accesses import Accesses
from fanin.adapters.memory.channels import MemoryChannels
from fanin.app.ports.channels import Outgoing
from fanin.app.ports.queues import QueueState, Received
from fanin.app.ports.system import Clock
from fanin.errors import ChannelRefused

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
