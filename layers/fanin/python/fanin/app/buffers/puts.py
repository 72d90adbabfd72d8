"""Putting work in without a key: take the slots, send the messages, and tell consumers that wait for work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from fanin import names
from fanin.app.buffers.records import NAMESPACE, BufferRecords
from fanin.app.buffers.slots import SEND_MS, Slots
from fanin.app.ports import Ports
from fanin.app.ports.queues import Outgoing
from fanin.domain import ids
from fanin.domain.buffer import Accepted, PutOutcome
from fanin.errors import ChannelRefused, FaninError, ServiceUnavailable, Throttled

_MORE: Final = 5  # seconds for which the record of a consumer that died outlives its wait


class WaitingConsumers:
    """Counts the consumers that wait.

    Args:
        ports: the directory table, clock and randomness.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def count(self, name: str) -> int:
        """How many consumers are waiting for work of a buffer, up to a hundred."""
        return len(self._ports.directory.page(_namespace(name)).records)

    @contextmanager
    def waiting(self, name: str, until: int) -> Iterator[None]:
        """Count as a consumer of a buffer that waits, until ``until`` in ms."""
        waiter = self._ports.random.bytes(8).hex()
        self.came(name, waiter, until)
        try:
            yield
        finally:
            self.left(name, waiter)

    def came(self, name: str, waiter: str, until: int) -> None:
        """Count a consumer of a buffer from now on, until ``until`` in ms."""
        self._ports.directory.put(_namespace(name), waiter, {}, expires_at=until // 1000 + _MORE)

    def left(self, name: str, waiter: str) -> None:
        """Count it no longer; if that cannot be written, its record expires by itself.

        An error would keep from the consumer the work that it has just received, and such work comes again
        only later, as received once more.
        """
        with suppress(Throttled, ServiceUnavailable):
            self._ports.directory.delete(_namespace(name), waiter)


def _namespace(name: str) -> str:
    return f"{NAMESPACE}/{name}"


class Puts:
    """Puts work into buffers.

    Args:
        ports: the queues and the clock.
        records: the buffers' records.
        slots: of the buffers.
        consumers: tell whether a consumer is waiting.
    """

    def __init__(
        self, ports: Ports, records: BufferRecords, slots: Slots, consumers: WaitingConsumers
    ) -> None:
        self._ports = ports
        self._records = records
        self._slots = slots
        self._consumers = consumers

    def put(self, name: str, payloads: Sequence[str]) -> Accepted:
        """Put work in. If that fails, its slots are given up, and messages that were sent are void."""
        started = self._ports.clock.now()
        entry, group = self._slots.admit(self._records.fresh(name), len(payloads))
        outcome = self.outcome(name)
        try:
            self.send(entry.buffer.queue, dict(zip(group, payloads, strict=True)), started)
        except FaninError:
            self._slots.give_up(list(group), "its message was not sent")
            raise
        self._slots.mark(entry, ids.parse_prefix(group.prefix).stop)
        return Accepted(outcome, tuple(group))

    def send(self, queue: str, work: Mapping[str, str], started: int) -> None:
        """Send payloads, by item id.

        Raises:
            ChannelRefused: the queue does not take them.
            Throttled: not all were sent, or only so late that their slots may have been given up.
        """
        messages = [Outgoing(queue, payload, {names.ITEM_ATTRIBUTE: item}) for item, payload in work.items()]
        refused = self._ports.channels.send(messages)
        if reason := next(filter(None, refused), None):
            raise ChannelRefused(
                f"the queue of the buffer refuses the work: {reason};"
                " change the work or the queue, then put it again"
            )
        if self._ports.clock.now() - started > SEND_MS:
            raise Throttled("putting the work took too long; put it again", retry_after=1)

    def outcome(self, name: str) -> PutOutcome:
        return PutOutcome.READY if self._consumers.count(name) else PutOutcome.WAITING
