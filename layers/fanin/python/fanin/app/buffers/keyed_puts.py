"""Putting work in with a key: once for each key, however late and however often the put is repeated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from fanin.app.buffers.put_keys import Note, PutKeys
from fanin.app.buffers.puts import Puts
from fanin.app.buffers.records import BufferRecords, Entry
from fanin.app.buffers.slots import TRIES, Slots, contended
from fanin.app.buffers.work_states import REPLACED, WorkState, WorkStates
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.domain import ids
from fanin.domain.buffer import Accepted
from fanin.domain.ids import Group
from fanin.domain.principals import IdempotencyKey
from fanin.errors import BatchClosed, BatchGone, BatchNotFound

_ROUNDS: Final = 3 * TRIES
"""How often a call reads the note of its key, which may change several times in a call."""


class KeyedPuts:
    """Puts work into buffers, unless its key has done so.

    Args:
        ports: the queues and the clock.
        ledger: tells what became of items.
        records: the buffers' records.
        slots: of the buffers.
        puts: sends the messages.
    """

    def __init__(
        self, ports: Ports, ledger: LedgerService, records: BufferRecords, slots: Slots, puts: Puts
    ) -> None:
        self._ports = ports
        self._ledger = ledger
        self._records = records
        self._slots = slots
        self._puts = puts
        self._keys = PutKeys(ports)
        self._states = WorkStates(ports, ledger)

    def put(self, name: str, payloads: Sequence[str], key: IdempotencyKey) -> Accepted:
        """Put work in, unless the key has done so. After a failure, a repeat continues with the same slots.

        They are not given up here: another call with the key may have been told that its work is in. A repeat
        sends only work that is neither finished nor possibly still in the queue.
        """
        started = self._ports.clock.now()
        entry = self._records.fresh(name)
        for _ in range(_ROUNDS):
            note = self._keys.find(entry, key, payloads)
            known = entry.buffer.batch_id
            if note.left and note.batch_id != known and (now := self._records.refresh(name)) != entry:
                entry = now  # the note may name the batch that the buffer has by now
                continue
            if note.left:
                accepted = self._go_on(entry, note, payloads, started)
            else:
                accepted = self._as_before(entry, note)
            if accepted is not None:
                return accepted
            entry = self._records.refresh(name)
        raise contended(name)

    def _as_before(self, entry: Entry, note: Note) -> Accepted | None:
        """The answer to a repeat, if the work is in or finished. If not, this notes what is not."""
        if dropped := self._dropped(entry, note):
            self._keys.put_again(entry, note, note.items, dropped)
            return None
        return Accepted(self._puts.outcome(entry.buffer.name), note.items)

    def _go_on(self, entry: Entry, note: Note, payloads: Sequence[str], started: int) -> Accepted | None:
        """Put in what is left; None if the note must be read again first.

        Args:
            entry: of the buffer, which has the batch that the note names, or a later one.
            note: of the key.
            payloads: all of them.
            started: when the call began, ms.
        """
        if finished := self._finished_meanwhile(note):
            left = [index for index in note.left if index not in finished]
            self._keys.put_again(entry, note, note.items, left)
            return None
        group = self._take(entry, note)
        unsent = None if group is None else self._unsent(entry, note, group)
        if group is None or unsent is None:
            return None
        outcome = self._puts.outcome(entry.buffer.name)
        slots = zip(group, note.left, strict=True)
        work = {item: payloads[index] for item, index in slots if item in unsent}
        self._puts.send(entry.buffer.queue, work, started)
        items = note.filled(group)
        if not self._keys.keep(entry, note, items):
            return None
        if group.batch_id == entry.buffer.batch_id:
            self._slots.mark(entry, ids.parse_prefix(group.prefix).stop)
        return Accepted(outcome, items)

    def _take(self, entry: Entry, note: Note) -> Group | None:
        """Take the slots of a round in the batch that its note names; None if the note must name another."""
        try:
            return self._slots.take(entry, note.batch_id, len(note.left), note.slots_key, note.caller)
        except (BatchClosed, BatchNotFound, BatchGone):  # none of them was taken there, and none will be
            if note.batch_id == entry.buffer.batch_id:
                # If the buffer was deleted and defined again, the note is the old one's.
                born, entry = entry.born, self._slots.renew(entry)
                if entry.born != born:
                    return None
        self._keys.move(entry, note)
        return None

    def _dropped(self, entry: Entry, note: Note) -> list[int]:
        """Which payloads of a key's work were dropped, or were in messages that have expired."""
        states = self._states.of(note.items)
        dropped = {WorkState.DROPPED}
        if WorkState.PENDING in states.values():
            retention = self._ports.queues.state(entry.buffer.queue).retention
            if self._ports.clock.now() >= note.sent_at + retention * 1000:
                dropped.add(WorkState.PENDING)
        return [index for index, item in enumerate(note.items) if states[item] in dropped]

    def _finished_meanwhile(self, note: Note) -> set[int]:
        """Give up the items that others replace; whichever consumers finished first need no other."""
        states = self._states.of(note.replaced)
        if pending := [item for item, state in states.items() if state is WorkState.PENDING]:
            self._slots.give_up(pending, REPLACED)
            states = self._states.of(note.replaced)
        return {index for index in note.left if states.get(note.items[index]) is WorkState.FINISHED}

    def _unsent(self, entry: Entry, note: Note, group: Group) -> Collection[str] | None:
        """Find out for which slots of a key messages may be missing.

        Returns:
            Items; None if some work needs other slots, which is noted then: these are too old, or were given
            up, or their batch has ended without them.
        """
        if note.new and not self._slots.late(entry, group):
            return group
        batch = self._ledger.refresh([group.batch_id])[group.batch_id]
        late = group.batch_id != entry.buffer.batch_id or self._slots.late(entry, group, batch)
        states = self._states.of(group)
        finished = {item for item, state in states.items() if state is WorkState.FINISHED}
        unsent = {item for item, state in states.items() if state is WorkState.PENDING and not late}
        if len(finished) + len(unsent) == len(group):
            return unsent
        left = [index for index, item in zip(note.left, group, strict=True) if item not in finished]
        self._keys.put_again(entry, note, note.filled(group), left)
        return None
