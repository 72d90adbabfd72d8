"""Putting work in without a key: take the slots, then send the messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fanin import names
from fanin.app.buffers.records import BufferRecords
from fanin.app.buffers.slots import SEND_MS, Slots
from fanin.app.buffers.waiting_consumers import WaitingConsumers
from fanin.app.ports import Ports
from fanin.app.ports.channels import Outgoing
from fanin.domain import ids
from fanin.domain.buffer import Accepted, Outcome
from fanin.errors import ChannelRefused, FaninError, Throttled


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

    def outcome(self, name: str) -> Outcome:
        return Outcome.READY if self._consumers.count(name) else Outcome.WAITING
