"""Notes of failures, written before the items are marked: first the message, then the note that names it.

So whenever an item reads as failed, its note and its message are there. A crash in between leaves what nobody
reads, and a repeat writes the same again. Of several failures of one item the first note stays, and the first
message; if its batch holds failed items, the last of each. A queue delivers the same message each time, so
both are right unless somebody fails an item with a message of another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from fanin.app.failures.messages import KeptMessages, Place
from fanin.app.ports import Ports
from fanin.app.ports.parts import FailureRow
from fanin.domain.batch import Batch
from fanin.domain.failures import Keep
from fanin.errors import FaninError


class Failing(NamedTuple):
    """Items of a batch that are about to fail.

    Attributes:
        batch: the batch, which lives.
        notes: of its items.
        messages: of some of them, by ordinal, each as ``wire.messages.pack`` gives it.
    """

    batch: Batch
    notes: Sequence[FailureRow]
    messages: Mapping[int, bytes]


class FailureNotes:
    """Writes what is known of failures.

    Args:
        ports: the stores.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._messages = KeptMessages(ports)

    def write(self, failing: Collection[Failing]) -> Mapping[Place, FaninError]:
        """Write messages and notes; may be repeated.

        Returns:
            Why failures cannot be kept: this process cannot keep their messages, and their notes were not
            written.
        """
        kept, refused = self._messages.keep(
            {
                Place(one.batch.batch_id, ordinal): content
                for one in failing
                if one.batch.keep is Keep.MESSAGE
                for ordinal, content in one.messages.items()
            },
            {one.batch.batch_id: one.batch for one in failing},
        )
        now = self._ports.clock.now()
        for batch, notes, _ in failing:
            latest = self._latest(batch, notes)
            rows = [
                note._replace(
                    failed_at=max(now, latest.get(note.ordinal, 0) + 1),
                    kept=kept.get(Place(batch.batch_id, note.ordinal), ""),
                    totals=note.totals if batch.holds else (),
                )
                for note in notes
                if Place(batch.batch_id, note.ordinal) not in refused
            ]
            parts = self._ports.parts
            # The latest failure decides whether an item is held; in other batches the first one is its end.
            write = parts.update_failures if batch.holds else parts.put_failures
            write(batch.batch_id, rows, expires_at=batch.expires_at)
        return refused

    def _latest(self, batch: Batch, notes: Sequence[FailureRow]) -> Mapping[int, int]:
        """When held items failed before, ms; a later failure has a later time, whoever's clock it is."""
        if not batch.holds:
            return {}
        found = self._ports.parts.notes(batch.batch_id, [note.ordinal for note in notes])
        return {ordinal: note.failed_at for ordinal, note in found.items()}
