"""Rows that tests of the stores begin with."""

from dataclasses import replace

from fanin.app.ports.words import Clear, Cleared, WordKey
from fanin.domain.batch import Batch, State

from .conftest import Stores

FULL = 2**64 - 1


LATER = 1_800_000_000  # seconds


KEY = WordKey(7, 0, 3)


NOW = 1_790_000_000_000


HOUR = 3_600_000


TERMINAL = [State.COMPLETE, State.TIMED_OUT, State.CANCELLED, State.ORPHANED]


def clear(stores: Stores, mask: int, key: WordKey = KEY, *, failed: int = 0) -> Cleared:
    (cleared,) = stores.words.clear([Clear(key, mask, LATER, failed)])
    return cleared


def new_batch(batch_id: int = 8, **values: object) -> Batch:
    row = Batch(
        batch_id=batch_id,
        salt=batch_id.to_bytes(16, "big"),
        created_at=NOW,
        touched_at=NOW,
        expires_at=LATER,
        open_idle_ttl=7200,
        closed_idle_ttl=604_800,
    )
    return replace(row, **values)


def put(stores: Stores, batch_id: int = 8, **values: object) -> Batch:
    batch = new_batch(batch_id, **values)
    assert stores.batches.create(batch)
    return batch


def row_of(stores: Stores, batch_id: int = 8) -> Batch:
    return stores.batches.read([batch_id])[batch_id]
