"""Putting work in: take the slots, then send the messages; with a key, once for each key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fanin import names
from fanin.app.buffers.put_keys import PutKeys, Note
from fanin.app.buffers.records import BufferRecords, Entry
from fanin.app.buffers.slots import SEND_MS, TRIES, Slots, contended
from fanin.app.buffers.waiting_consumers import WaitingConsumers
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.channels import Outgoing
from fanin.app.ports.words import WordKey
from fanin.domain import ids
from fanin.domain.buffer import Accepted, Outcome
from fanin.domain.ids import Block, Group
from fanin.errors import BatchGone, BatchNotFound, ChannelRefused, FaninError, Throttled


class Puts:
    """Puts work into buffers.

    Args:
        ports: the queues and the clock.
        ledger: tells which items are pending.
        records: the buffers' records.
        slots: of the buffers.
        consumers: tell whether a consumer is waiting.
    """

    def __init__(
        self, ports: Ports, ledger: LedgerService, records: BufferRecords, slots: Slots, consumers: WaitingConsumers
    ) -> None:
        self._ports = ports
        self._ledger = ledger
        self._records = records
        self._slots = slots
        self._consumers = consumers
        self._keys = PutKeys(ports)

    def put(self, name: str, payloads: Sequence[str]) -> Accepted:
        """Put work in. If that fails, its slots are given up, and messages that were sent are void."""
        started = self._ports.clock.now()
        entry, group = self._slots.admit(self._records.fresh(name), len(payloads), None)
        outcome = self._outcome(name)
        try:
            self._send(entry.buffer.queue, dict(zip(group, payloads, strict=True)), started)
        except FaninError:
            self._slots.give_up(list(group), "its message was not sent")
            raise
        return self._accepted(entry, group, outcome)

    def put_once(self, name: str, payloads: Sequence[str], key: str) -> Accepted:
        """Put work in, unless the key has done so. After a failure, a repeat continues with the same slots.

        They are not given up here: another call with the key may have been told that its work is in.
        """
        started = self._ports.clock.now()
        entry = self._records.fresh(name)
        for _ in range(TRIES):
            note = self._keys.find(entry, key, payloads)
            if note.group is not None:
                if self._holds(entry, note, note.group):
                    return Accepted(self._outcome(name), tuple(_items(note.group)))
                self._keys.put_again(entry, note, note.group)
                continue
            if note.given_up is not None:
                self._slots.give_up(_items(note.given_up), "its work was put in again under its key")
            entry, group = self._slots.admit(entry, len(payloads), note.slots_key)
            anew = note.new and not self._slots.late(entry, group)
            unsent = range(len(group)) if anew else self._unsent(entry, group)
            if unsent is None:
                # Slots older than their note are an earlier version's, which may have accepted the work.
                self._keys.put_again(entry, note, None if note.new else group.prefix)
                continue
            outcome = self._outcome(name)
            self._send(entry.buffer.queue, {group[index]: payloads[index] for index in unsent}, started)
            if self._keys.keep(entry, note, group.prefix):
                return self._accepted(entry, group, outcome)
        raise contended(name)

    def _holds(self, entry: Entry, note: Note, group: str) -> bool:
        """Whether the work of a key is in, or done: not if it was cancelled, or its messages have expired."""
        block = ids.parse_prefix(group)
        try:
            batch = self._ledger.refresh([block.batch_id])[block.batch_id]
            pending = self._pending(block)
        except (BatchNotFound, BatchGone):
            return True
        if pending and batch.state.terminal:
            return False
        if not pending and not self._failed(block):
            return True
        retention = self._ports.queues.state(entry.buffer.queue).retention
        return self._ports.clock.now() < note.sent_at + retention * 1000

    def _unsent(self, entry: Entry, group: Group) -> Sequence[int] | None:
        """Find out, for slots that an earlier call has taken, which messages may be missing.

        Returns:
            Indices in the group; None if the work needs other slots: these are too old, or were given up, or
            their batch has ended without it.
        """
        block = ids.parse_prefix(group.prefix)
        batch = self._ledger.refresh([block.batch_id])[block.batch_id]
        pending = self._pending(block)
        if batch.state.terminal or self._slots.late(entry, group, batch):
            return None if pending or self._failed(block) else ()
        return [ordinal - block.first for ordinal in sorted(pending)]

    def _pending(self, block: Block) -> set[int]:
        return self._ledger.pending(block.batch_id, block.first, block.stop)

    def _failed(self, block: Block) -> bool:
        """Whether any item was given up, or died as a message."""
        tree = self._ports.tree
        places = [divmod(ordinal, tree.width) for ordinal in range(block.first, block.stop)]
        words = self._ports.words.read_failed({WordKey(block.batch_id, 0, number) for number, _ in places})
        return any(
            words.get(WordKey(block.batch_id, 0, number), 0) & tree.bits[position]
            for number, position in places
        )

    def _send(self, queue: str, work: Mapping[str, str], started: int) -> None:
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

    def _accepted(self, entry: Entry, group: Group, outcome: Outcome) -> Accepted:
        self._slots.mark(entry, ids.parse_prefix(group.prefix).stop)
        return Accepted(outcome, tuple(group))

    def _outcome(self, name: str) -> Outcome:
        return Outcome.READY if self._consumers.count(name) else Outcome.WAITING


def _items(prefix: str) -> list[str]:
    return [f"{prefix}:{index}" for index in range(ids.parse_prefix(prefix).size)]
