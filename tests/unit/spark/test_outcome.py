"""What tasks say became of items, in memory."""

import random

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import OnFailure, OpenBatch
from fanin.domain.marks import Failure, ItemRange
from fanin.spark.outcome import states


@pytest.fixture
def ledger() -> LedgerService:
    return LedgerService(Memory().ports())


def asked(ledger: LedgerService, items: list[tuple[int, int]]) -> list[tuple[str, str | None]]:
    told = states(items, ledger)
    assert list(told) == items
    return [(outcome, why) for outcome, why, *_ in told.values()]


def test_each_item_has_its_own_outcome(ledger):
    batch_id = ledger.open(OpenBatch()).batch_id
    group = ledger.add(batch_id, 5_000)
    ledger.mark([group[1], group[4_999]]).whole()
    ledger.mark([Failure(group[2], "no such customer")]).whole()
    ledger.mark([ItemRange(group.prefix, 64, 4_201)]).whole()

    items = [(batch_id, n) for n in (0, 1, 2, 64, 1_000, 4_095, 4_200, 4_201, 4_999)]
    assert asked(ledger, items) == [
        ("pending", None),
        ("done", None),
        ("failed", "no such customer"),
        *[("done", None)] * 4,
        ("pending", None),
        ("done", None),
    ]


@pytest.mark.parametrize("moment", range(1, 9))
def test_an_item_that_fails_meanwhile_is_never_told_to_be_done(moment):
    # Given a word whose last item fails between two accesses of the reader
    seen, due = 0, True

    def fail(_call: str, when: str) -> None:
        nonlocal seen, due
        seen += when == "before"
        if due and seen == moment and begun:
            due = False
            ledger.mark([Failure(group[63], "torn")]).whole()

    begun = False
    ledger = LedgerService(Memory(on_call=fail).ports())
    batch_id = ledger.open(OpenBatch()).batch_id
    group = ledger.add(batch_id, 128)
    ledger.mark(group[:63]).whole()
    seen, begun = 0, True

    ((outcome, why),) = asked(ledger, [(batch_id, 63)])

    assert (outcome, why) in {("pending", None), ("failed", "torn")}


def test_a_held_item_has_failed_and_waits(ledger):
    batch_id = ledger.open(OpenBatch(on_failure=OnFailure.HOLD)).batch_id
    group = ledger.add(batch_id, 3)
    ledger.mark([Failure(group[1], "out of stock")]).whole()

    assert asked(ledger, [(batch_id, 0), (batch_id, 1)]) == [("pending", None), ("held", "out of stock")]


def test_a_batch_that_is_not_there_hides_no_other(ledger):
    batch_id = ledger.open(OpenBatch()).batch_id
    group = ledger.add(batch_id, 1)
    ledger.mark([group[0]]).whole()

    told = asked(ledger, [(batch_id, 0), (batch_id + 1, 0)])
    assert told == [("done", None), ("unknown", f"there is no batch {batch_id + 1}")]


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_what_is_missing(ledger, seed):
    # Given a batch of which single items and ranges are done, at random
    chance = random.Random(seed)
    count = chance.choice([1, 64, 65, 4_097, 10_000])
    batch_id = ledger.open(OpenBatch()).batch_id
    group = ledger.add(batch_id, count)
    done = set[int]()
    for _ in range(10):
        first = chance.randrange(count)
        last = min(count - 1, first + chance.choice([0, 3, 500, 9_000]))
        ledger.mark([ItemRange(group.prefix, first, last + 1)]).whole()
        done |= set(range(first, last + 1))

    told = asked(ledger, [(batch_id, n) for n in range(count)])
    assert {n for n, (outcome, _) in enumerate(told) if outcome == "done"} == done
