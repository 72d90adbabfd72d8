"""Batch rows in memory, beyond what every store of batches promises."""

from __future__ import annotations

from dataclasses import replace

from fanin.adapters.memory import Memory
from fanin.app.ports.batches import Activity
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


def test_the_next_that_is_due_is_a_live_one() -> None:
    memory = Memory()
    assert memory.batches.next_due() is None
    for batch_id, touched_at in ((1, 5_000), (2, 3_000), (3, 1_000)):
        memory.batches.create(replace(BATCH, batch_id=batch_id, touched_at=touched_at))
    assert memory.batches.next_due() == 1_000 + 7_200_000

    memory.batches.end(3, State.CANCELLED, now=1, sources=LIVE)
    assert memory.batches.next_due() == 3_000 + 7_200_000

    memory.batches.touch(2, Activity(4_000, 9_000_000))
    assert memory.batches.next_due() == 5_000 + 7_200_000
