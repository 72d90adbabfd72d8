"""One process with real threads: what greenlets cannot interleave, the interpreter may."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import OpenBatch, State
from fanin.domain.tree import Tree


@pytest.fixture
def _restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_restless")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("width", [2, 64])
def test_threads_that_share_a_process_complete_a_batch_once(width, seed):
    # Given a thousand items with a fifth of duplicates, in parts of seven
    memory = Memory(tree=Tree(width))
    ledger = LedgerService(memory.ports())
    batch = ledger.open(OpenBatch())
    rng = Random(seed)
    with ThreadPoolExecutor(16) as pool:
        groups = list(pool.map(lambda n: ledger.add(batch.batch_id, n), [100] * 10))
        items = [item for group in groups for item in group]
        items += rng.sample(items, 200)
        rng.shuffle(items)
        parts = [items[i : i + 7] for i in range(0, len(items), 7)]
        # When sixteen threads acknowledge them while one closes the batch
        closing = pool.submit(ledger.close, batch.batch_id)
        receipts = [receipt for marked in pool.map(ledger.mark, parts) for receipt in marked.whole()]
        closing.result()
    # Then every item was first once, and the batch has completed once
    assert sum(receipt.first for receipt in receipts) == 1_000
    assert sum(len(receipt.duplicates) for receipt in receipts) == 200
    ends = [new for old, new in memory.batches.changes if old and old.state is not new.state]
    assert [row.state for row in ends] == [State.CLOSED, State.COMPLETE]
