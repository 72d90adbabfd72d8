"""The records of targets: one each, ``target/<number>``, beside the batch and not in its row.

The row of a batch is written often, and each write costs by its size; so the row only says how many there
are. They are written before the row, and outlive it, because a target is tried for a day after the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fanin.app.ports.parts import TARGETS
from fanin.app.ports.records import Record, Records
from fanin.domain.batch import Batch
from fanin.domain.targets import FIRST_PAUSE, LONGEST_PAUSE, Target, TargetReport, TargetState
from fanin.wire.batches import TARGET

OUTLIVES: Final = 2 * 86_400
"""Seconds that the records outlive the row of their batch."""

_KEPT: Final = ("attempts", "last_error", "delivered_at", "since", "tried_at", "told")


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """A target as it is stored.

    Attributes:
        number: place among the batch's targets.
        target: as it was declared, with the queue's URL in place of an ARN.
        state: how far it is.
        attempts: how often somebody tried it and noted the outcome.
        last_error: why the last attempt failed.
        delivered_at: when it was told, ms.
        since: when the attempts that failed began, ms.
        tried_at: when the last of them was, ms.
        told: ids of the events before the end that it was told of; of milestones there are several.
        version: of the record.
        expires_at: of the record, seconds.
    """

    number: int
    target: Target
    state: TargetState = TargetState.PENDING
    attempts: int = 0
    last_error: str | None = None
    delivered_at: int | None = None
    since: int | None = None
    tried_at: int | None = None
    told: Sequence[str] = ()
    version: int = 0
    expires_at: int = 0

    @classmethod
    def of(cls, record: Record) -> TargetRecord:
        value = record.value
        return cls(
            int(record.name.removeprefix(TARGETS)),
            TARGET.decode(value["target"]),
            TargetState(value["state"]),
            **{name: value[name] for name in _KEPT},
            version=record.version,
            expires_at=record.expires_at,
        )

    @property
    def value(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in _KEPT}
        return {"target": TARGET.encode(self.target), "state": self.state.value, **kept}

    @property
    def report(self) -> TargetReport:
        return TargetReport(
            self.number,
            self.target.type,
            self.target.when,
            self.target.to,
            self.state,
            self.attempts,
            self.last_error,
            self.delivered_at,
            self.since,
            self.next_at,
        )

    @property
    def next_at(self) -> int | None:
        """When it is tried again at the latest; see ``fanin.entry.partial_batch.TARGETS``."""
        if self.state is not TargetState.FAILED or self.tried_at is None:
            return None
        return self.tried_at + min(LONGEST_PAUSE, FIRST_PAUSE << min(max(self.attempts - 1, 0), 32)) * 1000


def put_targets(records: Records, batch: Batch, targets: Sequence[Target]) -> bool:
    """Write the targets of a batch that is about to be opened; repeating it changes nothing.

    Returns:
        False if another batch that drew the same id has written targets of its own.
    """
    for number, target in enumerate(targets):
        kept = TargetRecord(number, target)
        record, written = records.put(
            str(batch.batch_id),
            f"{TARGETS}{number}",
            kept.value,
            expires_at=batch.expires_at + OUTLIVES,
            if_version=0,
        )
        if not written and (record is None or TargetRecord.of(record).target != target):
            return False
    return True


def read_targets(records: Records, batch_id: int, numbers: Sequence[int]) -> list[TargetRecord]:
    """Read targets, by number; those that are not there are left out."""
    found = records.read(str(batch_id), [f"{TARGETS}{number}" for number in numbers])
    return sorted((TargetRecord.of(record) for record in found.values()), key=lambda kept: kept.number)


def change(records: Records, batch_id: int, kept: TargetRecord, **changes: Any) -> TargetRecord | None:
    """Write a change, unless the record has changed since it was read.

    Returns:
        None if it was written. Otherwise the record as it is now: that of another process, or of this very
        write, if its answer was lost and the SDK has repeated it. A record that is gone counts as written.
    """
    record, written = records.put(
        str(batch_id),
        f"{TARGETS}{kept.number}",
        replace(kept, **changes).value,
        expires_at=kept.expires_at,
        if_version=kept.version,
    )
    return None if written or record is None else TargetRecord.of(record)
