"""A batch id reserved under an idempotency key, before the batch itself is written.

The key's record holds the id, the salt and a digest of the request. So whoever repeats the key works on the
same batch, whether its row exists yet or not: an opening may stop anywhere, and the next call finishes it.
Once the row exists the record says so. A batch that was removed since is not opened again, because the words
of its items may still be stored.

The records are spread over many partitions, since every opening by the library has a key.

A key belongs to its caller: another caller's record of the same text has another name (``IdempotencyKey``).
"""

import json
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

from fanin.app.ports import Ports
from fanin.app.ports.records import Record
from fanin.domain import ids
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import RETENTION, Batch
from fanin.errors import BatchGone, IdempotencyKeyReused, Throttled

_MADE: Final = "made"


def draw_id(ports: Ports, now: int, tried: int) -> tuple[int, bytes]:
    """Draw a batch id and a salt. Another batch may have the id, if thousands are opened in a millisecond.

    Args:
        ports: randomness.
        now: milliseconds since the epoch.
        tried: how many ids turned out to be taken; the next is of a later time, up to a quarter of a second.
    """
    later = ports.random.bits(2 * tried) if tried else 0
    return ids.batch_id(now + later, ports.random.bits(12)), ports.random.bytes(ids.SALT_BYTES)


def namespace_of(key: str) -> str:
    """Where a key is kept in the directory table: one of 256 partitions."""
    return f"batch-keys/{ids.digest(key, 1)}"


replayed: Final = ContextVar("replayed", default=False)
"""Whether the last opening of this thread found a batch that an earlier call had opened under its key."""


class Reservation:
    """The batch id of one key: found, or drawn and recorded.

    Args:
        ports: the directory table, the batches, clock and randomness.
        key: an idempotency key, and whose it is.
        request: what is asked for, as JSON; the key stands for this request only.
        lifetime: of the batch, seconds; the key is kept for as long, and a day more.
    """

    def __init__(self, ports: Ports, key: IdempotencyKey, request: Mapping[str, Any], lifetime: int) -> None:
        self._ports = ports
        self._key = key
        self._place = namespace_of(key.name), key.name
        self._digest = ids.digest(json.dumps(request, sort_keys=True))
        self._lifetime = lifetime
        self._record: Record | None = None
        self._taken = 0

    def batch(self) -> Batch | None:
        """Find the batch that an earlier call with the key opened.

        Returns:
            Its row; None if there is none yet: then ``draw``, and open it.

        Raises:
            InvalidRequest: the key is not text of 1 to 256 characters.
            IdempotencyKeyReused: the key was used for another request.
            BatchGone: the batch was removed.
        """
        namespace, name = self._place
        record = self._ports.directory.read(namespace, [name]).get(name)
        if record is None:
            return None
        batch_id, salt = self._reserved(record)
        row = self._ports.batches.read([batch_id]).get(batch_id)
        if row is not None and row.salt == salt:
            return row
        if self.kept:
            raise BatchGone(
                f"batch {batch_id} of idempotency key {self._key.text!r} was removed; use a new key"
            )
        return None

    def draw(self, now: int, tried: int = 0) -> tuple[int, bytes]:
        """Reserve an id and a salt. Called again, reserve others, because another batch has the id.

        Args:
            now: milliseconds since the epoch.
            tried: how many ids turned out to be those of other batches.

        Returns:
            What the key stands for: this call's draw, or that of another process that was faster.

        Raises:
            IdempotencyKeyReused: the key was used for another request.
            Throttled: the key's record expired this very moment.
        """
        batch_id, salt = draw_id(self._ports, now, tried)
        value = {"batch_id": batch_id, "salt": salt.hex(), "request": self._digest}
        until = now // 1000 + self._lifetime + RETENTION
        # Replace only a draw whose id turned out to be another batch's: on any other somebody may be working.
        put = self._ports.directory.put
        record, _ = put(*self._place, value, expires_at=until, if_version=self._taken)
        if record is None:
            raise Throttled("the idempotency key has just expired; try again", retry_after=1)
        self._taken = record.version
        return self._reserved(record)

    def keep(self) -> None:
        """Note that the batch is open, with all that belongs to it; repeating it changes nothing."""
        if (record := self._record) is not None and not self.kept:
            value, until, seen = {**record.value, _MADE: True}, record.expires_at, record.version
            self._ports.directory.put(*self._place, value, expires_at=until, if_version=seen)

    @property
    def kept(self) -> bool:
        """Whether the key's record, as last seen, says that the batch is open."""
        return self._record is not None and bool(self._record.value.get(_MADE))

    def _reserved(self, record: Record) -> tuple[int, bytes]:
        """Read the id and the salt of the key's record, and remember the record."""
        if record.value["request"] != self._digest:
            raise IdempotencyKeyReused(
                f"idempotency key {self._key.text!r} opened a batch with other options, such as another"
                " user_key or deadline: give those of before, or use a new key for another batch"
            )
        self._record = record
        return record.value["batch_id"], bytes.fromhex(record.value["salt"])
