"""Messages of failed items: small ones in rows, large ones in the bucket."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from fanin.app.ports import Ports
from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.domain import limits
from fanin.domain.batch import Batch
from fanin.domain.claim_keys import claim_key
from fanin.domain.failures import KeptMessage
from fanin.errors import AccessDenied, FaninError, InvalidRequest, NotConfigured, RequestTooLarge
from fanin.wire.messages import unpack

_NAME: Final = "message-{}"
"""Name of an object in the bucket; it follows from the content, so no failure overwrites another's."""


class Place(NamedTuple):
    """An item of a batch."""

    batch_id: int
    ordinal: int


class KeptMessages:
    """Keeps messages of failed items, and reads them.

    Args:
        ports: the rows and the bucket.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def keep(
        self, messages: Mapping[Place, bytes], batches: Mapping[int, Batch]
    ) -> tuple[Mapping[Place, str], Mapping[Place, FaninError]]:
        """Store messages; a repeat stores the same again.

        Args:
            messages: each as ``wire.messages.pack`` gives it.
            batches: their batches.

        Returns:
            Where each is: what ``FailureRow.kept`` says; and why others cannot be kept: they are too large,
            or too large for a row, and this process has no bucket.
        """
        refused: dict[Place, FaninError] = {
            place: RequestTooLarge(
                f"the message of a failed item has {len(content)} bytes as JSON; a message that is kept may"
                f" have {limits.MAX_FAILED_MESSAGES}: pass a shorter one, or none"
            )
            for place, content in messages.items()
            if len(content) > limits.MAX_FAILED_MESSAGES
        }
        messages = {place: content for place, content in messages.items() if place not in refused}
        now = self._ports.clock.now()
        keys = {
            place: claim_key(batches[place.batch_id], place.ordinal, _NAME.format(_digest(content)), now)
            for place, content in messages.items()
            if len(content) > limits.MAX_KEPT_INLINE
        }
        no_bucket = self._put({key: messages[place] for place, key in keys.items()})
        kept: dict[Place, str] = {}
        rows: dict[int, dict[int, bytes]] = {}
        for place, content in messages.items():
            if place in keys and no_bucket is None:
                kept[place] = keys[place]
            elif len(content) <= limits.MAX_KEPT_IN_ROW:
                kept[place] = IN_ROW
                rows.setdefault(place.batch_id, {})[place.ordinal] = content
            else:
                refused[place] = RequestTooLarge(
                    f"the message of a failed item has {len(content)} bytes as JSON, and this process can"
                    f" keep {limits.MAX_KEPT_IN_ROW}, because it has no bucket ({no_bucket}); name the bucket"
                    " in the environment and allow writing to it, fail the item over the API, or pass no"
                    " message"
                )
        for batch_id, contents in rows.items():
            batch = batches[batch_id]
            self._ports.parts.put_messages(batch_id, contents, again=batch.holds, expires_at=batch.expires_at)
        return kept, refused

    def _put(self, contents: Mapping[str, bytes]) -> FaninError | None:
        """Store messages in the bucket; an error if this process has none, or may not write to it."""
        if not contents:
            return None
        first, *others = contents
        try:
            self._ports.claims.put(first, contents[first])
        except (NotConfigured, AccessDenied) as error:
            return error
        self._ports.claims.put_all({key: contents[key] for key in others})
        return None

    def load(self, batch_id: int, notes: Iterable[FailureRow]) -> dict[int, KeptMessage]:
        """Read the messages of failures, by ordinal.

        Those that were not kept, are gone, or cannot be read are left out: one of them must not stop a
        redrive of the others.
        """
        kept = [note for note in notes if note.kept]
        rows = [note.ordinal for note in kept if note.kept == IN_ROW]
        keys = {note.ordinal: note.kept for note in kept if note.kept != IN_ROW}
        found = dict(self._ports.parts.messages(batch_id, rows)) if rows else {}
        objects = self._ports.claims.load(list(keys.values())) if keys else {}
        found |= {ordinal: objects[key] for ordinal, key in keys.items() if key in objects}
        messages = {ordinal: _unpacked(content) for ordinal, content in found.items()}
        return {ordinal: message for ordinal, message in messages.items() if message is not None}


def _unpacked(content: bytes) -> KeptMessage | None:
    with suppress(ValueError, LookupError, TypeError, AttributeError, InvalidRequest):
        return unpack(content)
    return None


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
