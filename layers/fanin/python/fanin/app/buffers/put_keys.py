"""Idempotency keys of puts: what each key has put in, so that a repeat puts nothing in twice.

The slots of a key are those that the ledger gives to the same key each time. But a slot alone does not say
whether its message was sent. So a note stands beside it, which says so before anybody is told that the work
is in. The note names the batch before slots are taken there, so that a repeat finds them also after the
buffer has changed to another batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from fanin.app.buffers.records import Entry
from fanin.app.buffers.slots import RENEWAL
from fanin.app.ports import Ports
from fanin.app.ports.records import Record
from fanin.domain.principals import NOBODY, IdempotencyKey, Principal
from fanin.errors import IdempotencyKeyReused

_PUT: Final = "put/"


class Note(NamedTuple):
    """What a key has put in.

    Attributes:
        key: as given.
        digest: of the payloads.
        items: item ids of the payloads, in order. For a payload that is left, this is the item to give up
            first; "" if there is none.
        left: indices of the payloads whose work is not in; empty once all messages were sent.
        batch_id: the batch in which slots for these are taken.
        name: of its row.
        owner: of the key.
        round: how often slots were given up for others.
        sent_at: when the last messages were sent, ms.
        version: of the note.
        new: whether this call made the note, so that no other has taken slots for the key.
    """

    key: str
    digest: str
    items: tuple[str, ...]
    left: tuple[int, ...]
    batch_id: int
    name: str
    owner: str
    round: int = 0
    sent_at: int = 0
    version: int = 0
    new: bool = False

    @property
    def caller(self) -> Principal | None:
        """To whom the slots belong; None if nobody has checked who it is."""
        return None if self.owner == NOBODY else Principal("", self.owner)

    @property
    def slots_key(self) -> str:
        """The key under which the ledger gives out the slots of this round."""
        if not self.round:
            return self.key
        again = f"put again {self.round} {_digest(self.key)}"
        if len(self.left) == len(self.items):
            return again
        return f"{again} {'.'.join(map(str, self.left))}"

    @property
    def replaced(self) -> tuple[str, ...]:
        """The items to give up before slots are taken for what is left."""
        return tuple(self.items[index] for index in self.left if self.items[index])

    def filled(self, items: Sequence[str]) -> tuple[str, ...]:
        """All item ids, with ``items`` for the payloads that are left."""
        new = dict(zip(self.left, items, strict=True))
        return tuple(new.get(index, item) for index, item in enumerate(self.items))

    def value(self) -> dict[str, Any]:
        return {
            "digest": self.digest,
            "round": self.round,
            "items": list(self.items),
            "left": list(self.left),
            "batch_id": self.batch_id,
            "sent_at": self.sent_at,
        }


class PutKeys:
    """Keeps the notes with the parts of the buffer's first batch, so that they outlive a change of its batch.

    Args:
        ports: the parts table and the clock.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def find(self, entry: Entry, key: IdempotencyKey, payloads: Sequence[str]) -> Note:
        """The note of a key, made if there is none.

        Raises:
            InvalidRequest: the key is not text of 1 to 256 characters.
            IdempotencyKeyReused: the key was used for other payloads.
        """
        count = len(payloads)
        note = Note(
            key.text,
            _digest(*payloads),
            ("",) * count,
            tuple(range(count)),
            entry.buffer.batch_id,
            key.name,
            key.owner,
        )
        record, wrote = self._write(entry, note)
        if record is None:
            return note
        if record.value["digest"] != note.digest:
            raise IdempotencyKeyReused(
                f"idempotency key {key.text!r} was used to put other payloads; use a new key for these"
            )
        return _note(note, record)._replace(new=wrote)

    # Each of the following has no effect if another process changed the note meanwhile.

    def move(self, entry: Entry, note: Note) -> None:
        """Note that slots are taken in the buffer's present batch; those of the note's batch are not."""
        self._write(entry, note._replace(batch_id=entry.buffer.batch_id))

    def put_again(self, entry: Entry, note: Note, items: Sequence[str], left: Sequence[int]) -> None:
        """Note that other slots are taken for some payloads, in the buffer's present batch.

        Args:
            entry: of the buffer.
            note: as it was read.
            items: of all payloads, as in the note.
            left: indices of the payloads that get other slots; none if the work of all is in.
        """
        again = note._replace(
            items=tuple(items),
            left=tuple(left),
            batch_id=entry.buffer.batch_id,
            round=note.round + 1,
        )
        self._write(entry, again)

    def keep(self, entry: Entry, note: Note, items: Sequence[str]) -> bool:
        """Note that the messages of all payloads were sent.

        Returns:
            Whether the work is in. If not, another process has given some items up for others meanwhile.
        """
        sent = note._replace(items=tuple(items), left=(), sent_at=self._ports.clock.now())
        record, _ = self._write(entry, sent)
        if record is None:
            return False
        now = _note(note, record)
        return (now.items, now.left) == (sent.items, ())

    def _write(self, entry: Entry, note: Note) -> tuple[Record | None, bool]:
        until = max(entry.renew_at, self._ports.clock.now()) // 1000 + RENEWAL
        return self._ports.records.put(
            str(entry.born), _PUT + note.name, note.value(), expires_at=until, if_version=note.version
        )


def _note(asked: Note, record: Record) -> Note:
    """The note of a record, which belongs to the key of the note that was asked for."""
    value = record.value
    return Note(
        asked.key,
        value["digest"],
        tuple(value["items"]),
        tuple(value["left"]),
        value["batch_id"],
        asked.name,
        asked.owner,
        value["round"],
        value["sent_at"],
        record.version,
    )


def _digest(*texts: str) -> str:
    return hashlib.blake2b(json.dumps(texts).encode(), digest_size=16).hexdigest()
