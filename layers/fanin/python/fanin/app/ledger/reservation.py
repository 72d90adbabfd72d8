"""A batch id that is reserved under an idempotency key, before the batch itself is written.

The key's record names the id and the salt, and a digest of the request. Who repeats the key therefore works
on the same batch, whether it is there or not there yet; an opening may stop anywhere and be finished by the
next. Once the batch is there the record says so: a batch that was removed since is not made again, for the
words of its items may still be stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from fanin.app.ports import Ports
from fanin.domain import ids, limits
from fanin.domain.batch import RETENTION, Batch
from fanin.errors import BatchGone, IdempotencyKeyReused, Throttled

NAMESPACE: Final = "batch-keys"
"""Of the directory table: where the keys are kept."""

_MADE: Final = "made"


class Reservation:
    """The batch id of one key, found or drawn.

    Args:
        ports: the directory's table, the batches, clock and randomness.
        key: the caller's idempotency key.
        request: what is asked for, as JSON; the key stands for this request only.
        lifetime: seconds that the key is kept, and a day: that of the batch.

    Raises:
        InvalidRequest: the key is not what it may be.
    """

    def __init__(self, ports: Ports, key: str, request: Mapping[str, Any], lifetime: int) -> None:
        self._ports = ports
        self._key = limits.text("Idempotency-Key", key, limits.MAX_IDEMPOTENCY_KEY, least=1)
        text = json.dumps(request, sort_keys=True)
        self._digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        self._lifetime = lifetime
        self._taken = 0
        self._version = 0
        self._value: Mapping[str, Any] = {}
        self._expires_at = 0

    def batch(self) -> Batch | None:
        """The batch that an earlier call with the key has made; None if there is none yet.

        Raises:
            IdempotencyKeyReused: the key was used for another request.
            BatchGone: that batch was removed.
        """
        record = self._ports.directory.read(NAMESPACE, [self._key]).get(self._key)
        if record is None:
            return None
        self._take(record.value, record.version, record.expires_at)
        batch_id, salt = self._reserved()
        row = self._ports.batches.read([batch_id]).get(batch_id)
        if row is not None and row.salt == salt:
            self.keep()
            return row
        if self._value.get(_MADE):
            raise BatchGone(f"batch {batch_id} of idempotency key {self._key!r} was removed; use a new key")
        return None

    def draw(self, now: int) -> tuple[int, bytes]:
        """Reserve an id and a salt; called again, reserve others, since another batch has the id.

        Args:
            now: milliseconds since the epoch.

        Returns:
            Those that the key stands for: of this call, or of another process that was faster.

        Raises:
            IdempotencyKeyReused: the key was used for another request.
            Throttled: the key's record ran out this moment.
        """
        random = self._ports.random
        value = {
            "batch_id": ids.batch_id(now, random.bits(12)),
            "salt": random.bytes(ids.SALT_BYTES).hex(),
            "request": self._digest,
        }
        until = now // 1000 + self._lifetime + RETENTION
        # Only an id that was found to be another's may be replaced: at any other somebody may be at work.
        record, _ = self._ports.directory.put(
            NAMESPACE, self._key, value, expires_at=until, if_version=self._taken
        )
        if record is None:
            raise Throttled("the idempotency key has just run out; try again", retry_after=1)
        self._take(record.value, record.version, record.expires_at)
        self._taken = record.version
        return self._reserved()

    def keep(self) -> None:
        """Note that the batch is there; repeating it changes nothing."""
        if not self._value.get(_MADE):
            value = {**self._value, _MADE: True}
            self._ports.directory.put(
                NAMESPACE, self._key, value, expires_at=self._expires_at, if_version=self._version
            )

    def _take(self, value: Mapping[str, Any], version: int, expires_at: int) -> None:
        if value["request"] != self._digest:
            raise IdempotencyKeyReused(
                f"idempotency key {self._key!r} was used to open another batch; use a new key for this one"
            )
        self._value, self._version, self._expires_at = value, version, expires_at

    def _reserved(self) -> tuple[int, bytes]:
        return self._value["batch_id"], bytes.fromhex(self._value["salt"])
