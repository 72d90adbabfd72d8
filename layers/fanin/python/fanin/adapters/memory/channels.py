"""Users' queues in memory."""

from __future__ import annotations

from collections.abc import Sequence

from fanin.adapters.memory.accesses import Accesses
from fanin.app.ports.channels import Outgoing
from fanin.app.ports.system import Clock
from fanin.errors import ChannelRefused


class MemoryChannels:
    """A ``Channels`` that keeps the messages it is sent.

    Attributes:
        queues: URL → messages, in order. A URL that is not a key is not a queue.
        times: URL → when each message was sent, ms, in the same order.
    """

    def __init__(self, accesses: Accesses, clock: Clock) -> None:
        self.queues: dict[str, list[Outgoing]] = {}
        self.times: dict[str, list[int]] = {}
        self._accesses = accesses
        self._clock = clock

    def resolve(self, channel: str) -> str:
        if channel not in self.queues:
            raise ChannelRefused(f"there is no queue {channel!r} with the tag fanin:channel")
        return channel

    def send(self, messages: Sequence[Outgoing]) -> list[str | None]:
        return [self._accesses.send("channels.send", lambda: self._put(message)) for message in messages]  # noqa: B023

    def _put(self, message: Outgoing) -> str | None:
        if message.channel not in self.queues:
            return "there is no such queue"
        self.queues[message.channel].append(message)
        self.times.setdefault(message.channel, []).append(self._clock.now())
        return None
