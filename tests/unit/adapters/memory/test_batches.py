"""Batch rows in memory, beyond the contract of all stores: the stream."""

from __future__ import annotations

from fanin.adapters.memory import Memory
from fanin.domain.batch import LIVE, Batch, State

BATCH = Batch(
    batch_id=8,
    salt=bytes(16),
    created_at=0,
    touched_at=0,
    expires_at=1_800_000_000,
    open_idle_ttl=7200,
    closed_idle_ttl=7200,
)


def test_changes_of_batches_are_kept_in_order() -> None:
    memory = Memory()
    memory.batches.create(BATCH)
    closed, _ = memory.batches.close(8, now=1)
    memory.batches.close(8, now=2)
    ended, _ = memory.batches.end(8, State.COMPLETE, now=3, sources=LIVE)

    assert memory.batches.changes == [(None, BATCH), (BATCH, closed), (closed, ended)]
