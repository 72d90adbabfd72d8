"""Sixteen threads on a store that is not ours: what memory's greenlets cannot show, real requests can."""

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import OpenBatch, State
from tests.oracle.twin import on_second_store, ports_on

pytestmark = pytest.mark.oracle
ITEMS = 600
PROCESSES = 4
"""Instances of the service, each with a cache of its own, for four threads each."""


def test_sixteen_threads_end_a_batch_once():
    # Given a batch whose items come in parts of thirty, a twentieth of them twice
    ports = ports_on(Memory(), on_second_store())
    ended: list[bool] = []
    end = ports.batches.end

    def counted(*args: object, **kwargs: object) -> object:
        row, moved = end(*args, **kwargs)
        ended.append(moved)
        return row, moved

    ports.batches.end = counted
    processes = [LedgerService(ports) for _ in range(PROCESSES)]
    batch_id = processes[0].open(OpenBatch()).batch_id
    rng = Random(0)
    with ThreadPoolExecutor(4 * PROCESSES) as pool:
        groups = list(pool.map(lambda n: processes[n].add(batch_id, ITEMS // PROCESSES), range(PROCESSES)))
        items = [item for group in groups for item in group]
        items += rng.sample(items, ITEMS // 20)
        rng.shuffle(items)
        parts = [items[at : at + 30] for at in range(0, len(items), 30)]
        # When sixteen threads acknowledge them, and one closes the batch meanwhile
        closing = pool.submit(processes[0].close, batch_id)
        answers = pool.map(lambda n: processes[n % PROCESSES].mark(parts[n]).whole(), range(len(parts)))
        receipts = [receipt for answer in answers for receipt in answer]
        closing.result()
    # Then each item was first once, and the batch has completed by one write
    assert sum(receipt.first for receipt in receipts) == ITEMS
    assert sum(len(receipt.duplicates) for receipt in receipts) == ITEMS // 20
    assert ended.count(True) == 1
    verdict = LedgerService(ports).verify(batch_id, repair=False)
    assert verdict.batch.state is State.COMPLETE
    assert (verdict.pending, verdict.disagreements) == (0, ())
