"""Users' queues in memory."""

from __future__ import annotations

from collections.abc import Sequence

from fanin.adapters.memory.accesses import Accesses
from fanin.app.ports.channels import Offered, Outgoing
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
