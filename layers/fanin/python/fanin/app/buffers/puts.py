"""Putting work in: take the slots, send the messages, and tell whether a consumer waits for work.

With a key, work is put in once, however late and however often the put is repeated. The slots of a key are
those that the ledger gives to the same key each time. But a slot alone does not say whether its message was
sent. So a note stands beside it, which says so before anybody is told that the work is in. The note names the
batch before slots are taken there, so that a repeat finds them also after the buffer has changed to another
batch.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fanin import names
from fanin.app.buffers.records import BufferRecords, WorkEntry
from fanin.app.buffers.slots import RENEWAL, REPLACED, SEND_MS, TRIES, Slots, WorkState, contended
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.queues import Outgoing
from fanin.app.ports.records import Record
from fanin.domain import ids
from fanin.domain.access import NOBODY, IdempotencyKey, Principal
from fanin.domain.buffer import Accepted, PutOutcome
from fanin.errors import GONE, BatchClosed, ChannelRefused, FaninError, IdempotencyKeyReused, Throttled

_PUT: Final = "put/"
_KEPT: Final = ("digest", "round", "items", "left", "batch_id", "sent_at")
"""Fields of a note that its record has."""
_ROUNDS: Final = 3 * TRIES
"""How often a call reads the note of its key, which may change several times in a call."""


class Note(NamedTuple):
    """What a key has put in.

    Attributes:
        key: of the put.
        digest: of the payloads.
        items: item ids of the payloads, in order. For a payload that is left, this is the item to give up
            first; "" if there is none.
        left: indices of the payloads whose work is not in; empty once all messages were sent.
        batch_id: the batch in which slots for these are taken.
        round: how often slots were given up for others.
        sent_at: when the last messages were sent, ms.
        version: of the note.
        new: whether this call made the note, so that no other has taken slots for the key.
    """

    key: IdempotencyKey
    digest: str
    items: tuple[str, ...]
    left: tuple[int, ...]
    batch_id: int
    round: int = 0
    sent_at: int = 0
    version: int = 0
    new: bool = False

    @property
    def caller(self) -> Principal | None:
        """To whom the slots belong; None if nobody has checked who it is."""
        return None if self.key.owner == NOBODY else Principal("", self.key.owner)

    @property
    def slots_key(self) -> str:
        """The key under which the ledger gives out the slots of this round."""
        if not self.round:
            return self.key.text
        again = f"put again {self.round} {ids.digest(json.dumps([self.key.text]))}"
        some = len(self.left) < len(self.items)
        return f"{again} {'.'.join(map(str, self.left))}" if some else again

    @property
    def replaced(self) -> tuple[str, ...]:
        """The items to give up before slots are taken for what is left."""
        return tuple(self.items[index] for index in self.left if self.items[index])

    def filled(self, items: Sequence[str]) -> tuple[str, ...]:
        """All item ids, with ``items`` for the payloads that are left."""
        new = dict(zip(self.left, items, strict=True))
        return tuple(new.get(index, item) for index, item in enumerate(self.items))

    def value(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _KEPT}


def _note(asked: Note, record: Record) -> Note:
    """The note of a record, which belongs to the key of the note that was asked for."""
    kept = {name: record.value[name] for name in _KEPT}
    kept |= {"items": tuple(kept["items"]), "left": tuple(kept["left"])}
    return asked._replace(**kept, version=record.version, new=False)


class Puts:
    """Puts work into buffers.

    Args:
        ledger: tells what became of items; its ports are used too.
        records: the buffers' records, which tell whether a consumer is waiting, too.
        slots: of the buffers.
    """

    def __init__(self, ledger: LedgerService, records: BufferRecords, slots: Slots) -> None:
        self._ports = ledger.ports
        self._ledger = ledger
        self._records = records
        self._slots = slots

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
        return PutOutcome.READY if self._records.waiting(name) else PutOutcome.WAITING

    def put_once(self, name: str, payloads: Sequence[str], key: IdempotencyKey) -> Accepted:
        """Put work in, unless the key has done so. After a failure, a repeat continues with the same slots.

        They are not given up here: another call with the key may have been told that its work is in. A repeat
        sends only work that is neither finished nor possibly still in the queue.
        """
        started = self._ports.clock.now()
        entry = self._records.fresh(name)
        for _ in range(_ROUNDS):
            note = self._find_note(entry, key, payloads)
            known = entry.buffer.batch_id
            if note.left and note.batch_id != known and (now := self._records.refresh(name)) != entry:
                entry = now  # the note may name the batch that the buffer has by now
                continue
            if note.left:
                if accepted := self._go_on(entry, note, payloads, started):
                    return accepted
            elif dropped := self._dropped(entry, note):
                self._note_again(entry, note, note.items, dropped)
            else:
                return Accepted(self.outcome(name), note.items)
            entry = self._records.refresh(name)
        raise contended(name)

    def _go_on(self, entry: WorkEntry, note: Note, payloads: Sequence[str], started: int) -> Accepted | None:
        """Put in what is left; None if the note must be read again first.

        Args:
            entry: of the buffer, which has the batch that the note names, or a later one.
            note: of the key.
            payloads: all of them.
            started: when the call began, ms.
        """
        if finished := self._finished_meanwhile(note):
            left = [index for index in note.left if index not in finished]
            self._note_again(entry, note, note.items, left)
            return None
        if (group := self._take(entry, note)) is None:
            return None
        if (unsent := self._unsent(entry, note, group)) is None:
            return None
        outcome = self.outcome(entry.buffer.name)
        slots = zip(group, note.left, strict=True)
        work = {item: payloads[index] for item, index in slots if item in unsent}
        self.send(entry.buffer.queue, work, started)
        items = note.filled(group)
        if not self._note_sent(entry, note, items):
            return None
        if group.batch_id == entry.buffer.batch_id:
            self._slots.mark(entry, ids.parse_prefix(group.prefix).stop)
        return Accepted(outcome, items)

    def _take(self, entry: WorkEntry, note: Note) -> ids.Group | None:
        """Take the slots of a round in the batch that its note names; None if the note must name another."""
        try:
            return self._slots.take(entry, note.batch_id, len(note.left), note.slots_key, note.caller)
        except (BatchClosed, *GONE):  # none of them was taken there, and none will be
            if note.batch_id == entry.buffer.batch_id:
                # If the buffer was deleted and defined again, the note is the old one's.
                born, entry = entry.born, self._slots.renew(entry)
                if entry.born != born:
                    return None
        self._note_batch(entry, note)
        return None

    def _dropped(self, entry: WorkEntry, note: Note) -> list[int]:
        """Which payloads of a key's work were dropped, or were in messages that have expired."""
        states = self._slots.states(note.items)
        dropped = {WorkState.DROPPED}
        if WorkState.PENDING in states.values():
            retention = self._ports.queues.state(entry.buffer.queue).retention
            if self._ports.clock.now() >= note.sent_at + retention * 1000:
                dropped.add(WorkState.PENDING)
        return [index for index, item in enumerate(note.items) if states[item] in dropped]

    def _finished_meanwhile(self, note: Note) -> set[int]:
        """Give up the items that others replace; whichever consumers finished first need no other."""
        states = self._slots.states(note.replaced)
        if pending := [item for item, state in states.items() if state is WorkState.PENDING]:
            self._slots.give_up(pending, REPLACED)
            states = self._slots.states(note.replaced)
        return {index for index in note.left if states.get(note.items[index]) is WorkState.FINISHED}

    def _unsent(self, entry: WorkEntry, note: Note, group: ids.Group) -> Collection[str] | None:
        """Find out for which slots of a key messages may be missing.

        Returns:
            Items; None if some work needs other slots, which is noted then: these are too old, or were given
            up, or their batch has ended without them.
        """
        if note.new and not self._slots.late(entry, group):
            return group
        batch = self._ledger.refresh([group.batch_id])[group.batch_id]
        late = group.batch_id != entry.buffer.batch_id or self._slots.late(entry, group, batch)
        states = self._slots.states(group)
        finished = {item for item, state in states.items() if state is WorkState.FINISHED}
        unsent = {item for item, state in states.items() if state is WorkState.PENDING and not late}
        if len(finished) + len(unsent) == len(group):
            return unsent
        left = [index for index, item in zip(note.left, group, strict=True) if item not in finished]
        self._note_again(entry, note, note.filled(group), left)
        return None

    # The notes of keys are kept with the parts of the buffer's first batch, so that they outlive a change of
    # its batch.

    def _find_note(self, entry: WorkEntry, key: IdempotencyKey, payloads: Sequence[str]) -> Note:
        """The note of a key, made if there is none.

        Raises:
            IdempotencyKeyReused: the key was used for other payloads.
        """
        digest = ids.digest(json.dumps(list(payloads)))
        items, left = ("",) * len(payloads), tuple(range(len(payloads)))
        note = Note(key, digest, items, left, entry.buffer.batch_id)
        record, wrote = self._write_note(entry, note)
        if record is None:
            return note
        if record.value["digest"] != note.digest:
            raise IdempotencyKeyReused(
                f"idempotency key {key.text!r} was used to put other payloads; use a new key for these"
            )
        return _note(note, record)._replace(new=wrote)

    # Each of the following has no effect if another process changed the note meanwhile.

    def _note_batch(self, entry: WorkEntry, note: Note) -> None:
        """Note that slots are taken in the buffer's present batch; those of the note's batch are not."""
        self._write_note(entry, note._replace(batch_id=entry.buffer.batch_id))

    def _note_again(self, entry: WorkEntry, note: Note, items: Sequence[str], left: Sequence[int]) -> None:
        """Note that other slots are taken for some payloads, in the buffer's present batch.

        Args:
            entry: of the buffer.
            note: as it was read.
            items: of all payloads, as in the note.
            left: indices of the payloads that get other slots; none if the work of all is in.
        """
        self._note_batch(entry, note._replace(items=tuple(items), left=tuple(left), round=note.round + 1))

    def _note_sent(self, entry: WorkEntry, note: Note, items: Sequence[str]) -> bool:
        """Note that the messages of all payloads were sent.

        Returns:
            Whether the work is in. If not, another process has given some items up for others meanwhile.
        """
        sent = note._replace(items=tuple(items), left=(), sent_at=self._ports.clock.now())
        record, _ = self._write_note(entry, sent)
        if record is None:
            return False
        now = _note(note, record)
        return (now.items, now.left) == (sent.items, ())

    def _write_note(self, entry: WorkEntry, note: Note) -> tuple[Record | None, bool]:
        until = max(entry.renew_at, self._ports.clock.now()) // 1000 + RENEWAL
        place, put = (str(entry.born), _PUT + note.key.name), self._ports.records.put
        return put(*place, note.value(), expires_at=until, if_version=note.version)
