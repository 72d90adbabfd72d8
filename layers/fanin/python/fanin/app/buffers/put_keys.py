"""Idempotency keys of puts: what each key has put in, so that a repeat puts nothing in twice.

The slots of a key are those that the ledger gives to the same key each time. But a slot alone does not say
whether its message was sent. So a note stands beside it, which says so before anybody is told that the work
is in. As long as it does not, slots that are of no use any more may be given up for others.
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
from fanin.domain import limits
from fanin.errors import IdempotencyKeyReused

_PUT: Final = "put/"


class Note(NamedTuple):
    """What a key has put in.

    Attributes:
        key: as given.
        digest: of the payloads.
        round: how often its slots were given up for others.
        group: prefix of the items whose messages were sent, ``<batch id>:<group id>``; None before that.
        sent_at: when they were, ms.
        given_up: prefix of the items that this round replaces: their messages do not count any more.
        version: of the note.
        new: whether this call made the note, so that no other has taken slots for the key.
    """

    key: str
    digest: str
    round: int = 0
    group: str | None = None
    sent_at: int = 0
    given_up: str | None = None
    version: int = 0
    new: bool = False

    @property
    def slots_key(self) -> str:
        """The key under which the ledger gives out the slots of this round."""
        if not self.round:
            return self.key
        return f"put again {self.round} {_digest(self.key)}"

    def value(self) -> dict[str, Any]:
        return {
            "digest": self.digest,
            "round": self.round,
            "group": self.group,
            "sent_at": self.sent_at,
            "given_up": self.given_up,
        }


class PutKeys:
    """Keeps the notes with the parts of the buffer's first batch, so that they outlive a change of its batch.

    Args:
        ports: the parts table and the clock.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def find(self, entry: Entry, key: str, payloads: Sequence[str]) -> Note:
        """The note of a key, made if there is none.

        Raises:
            InvalidRequest: the key is not text of 1 to 128 characters.
            IdempotencyKeyReused: the key was used for other payloads.
        """
        limits.text("Idempotency-Key", key, limits.MAX_IDEMPOTENCY_KEY, least=1)
        note = Note(key, _digest(*payloads))
        record, wrote = self._write(entry, note)
        found = note if record is None else _note(key, record)
        if found.digest != note.digest:
            raise IdempotencyKeyReused(
                f"idempotency key {key!r} was used to put other payloads; use a new key for these"
            )
        return found._replace(new=wrote)

    def put_again(self, entry: Entry, note: Note, given_up: str | None) -> None:
        """Note that the key takes other slots; has no effect if another process changed the note meanwhile.

        Args:
            entry: of the buffer.
            note: as it was read.
            given_up: prefix of the items that the others replace; None keeps these.
        """
        self._write(entry, note._replace(round=note.round + 1, group=None, given_up=given_up))

    def keep(self, entry: Entry, note: Note, group: str) -> bool:
        """Note that the messages of a group were sent.

        Returns:
            Whether the work is in. If not, another process has given the group up for others meanwhile.
        """
        sent = note._replace(group=group, sent_at=self._ports.clock.now(), given_up=None)
        record, _ = self._write(entry, sent)
        return record is not None and _note(note.key, record).group == group

    def _write(self, entry: Entry, note: Note) -> tuple[Record | None, bool]:
        until = max(entry.renew_at, self._ports.clock.now()) // 1000 + RENEWAL
        return self._ports.records.put(
            str(entry.born), _PUT + note.key, note.value(), expires_at=until, if_version=note.version
        )


def _note(key: str, record: Record) -> Note:
    value = record.value
    return Note(
        key,
        value["digest"],
        value["round"],
        value["group"],
        value["sent_at"],
        value["given_up"],
        record.version,
    )


def _digest(*texts: str) -> str:
    return hashlib.blake2b(json.dumps(texts).encode(), digest_size=16).hexdigest()
