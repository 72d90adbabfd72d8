"""The whole bill: what is counted in a run, and what the plan computes."""

import pytest

from bench import bill
from bench.world import World
from fanin.domain.batch import CloseWhen, OpenBatch
from fanin.domain.costs import TOGETHER, Order, costs, extras
from fanin.domain.ids import ItemKey
from fanin.domain.prices import DEFAULT

TOLERANCE = 0.03
"""By which the plan may differ from the counts."""


def planned(way: str, items: int, order: Order, together: int = TOGETHER):
    (cost,) = [one for one in costs(items, order, together=together) if one.way.startswith(way)]
    return cost.usage


def agree(counted, plan) -> None:
    assert plan.dollars(DEFAULT) == pytest.approx(counted.dollars(DEFAULT), rel=TOLERANCE)
    ours, theirs = plan.bill(DEFAULT), counted.bill(DEFAULT)
    for service, amount in theirs.items():
        assert ours[service] == pytest.approx(amount, rel=2 * TOLERANCE, abs=1e-5), service


@pytest.mark.parametrize(
    ("together", "order", "items"),
    [(1, Order.SCATTERED, 640), (10, Order.SCATTERED, 2_048), (10, Order.NEIGHBOURS, 2_048)],
)
def test_the_plan_of_https_is_what_a_run_counts(together, order, items):
    counted = bill.bill_of_https(items, together, order)
    agree(counted, planned("HTTPS, one" if together == 1 else "HTTPS, 10", items, order, 10))


@pytest.mark.parametrize(("order", "items"), [(Order.SCATTERED, 32_768), (Order.NEIGHBOURS, 8_192)])
def test_the_plan_of_the_ack_queue_is_what_a_run_counts(order, items):
    agree(bill.bill_of_queue(items, order), planned("ack queue", items, order))


@pytest.mark.parametrize("order", Order)
def test_the_plan_of_direct_calls_is_what_a_run_counts(order):
    agree(bill.bill_of_direct(4_096, order), planned("direct", 4_096, order))


def test_the_faster_the_items_the_fewer_writes_of_the_ack_queue():
    slow, fast = (bill.bill_of_queue(4_096, Order.SCATTERED, rate) for rate in (100, 10_000))
    assert fast.writes < slow.writes / 2


@pytest.mark.parametrize(
    ("keyed", "at_a_time", "more"), [(True, 98, 2), (True, 7, 0), (False, 50, 0), (False, 500, 0)]
)
def test_what_keys_and_growth_add_to_the_plan_is_what_additions_take(keyed, at_a_time, more):
    # Given a batch that grows from inside
    world = World()
    batch = world.ledger.open(OpenBatch())
    (first,) = world.ledger.add(batch.batch_id, 1)
    world.ledger.close(batch.batch_id, when=CloseWhen.DRAINED)
    count = 3 * at_a_time
    # When its item adds others, in additions of its own
    with world.spending() as spent:
        for start in range(0, count, at_a_time):
            if keyed:
                keys = [ItemKey(str(n)) for n in range(start, start + at_a_time)]
                world.ledger.add_keys(batch.batch_id, keys, item=first)
            else:
                world.ledger.add(batch.batch_id, at_a_time, item=first, key=str(start))
    # Then each row of a transaction takes two units, and that of many keys two more for a KB
    planned = extras(count, keys=keyed, growing=at_a_time)
    assert planned.writes == 2 * spent.writes + 3 * more
    assert planned.reads == pytest.approx(spent.reads, abs=3)


def test_a_result_takes_a_write_for_each_kb_beside_its_row():
    assert [extras(10, result_bytes=size).writes for size in (0, 1, 896, 897, 8_192)] == [0, 10, 10, 20, 90]
    assert extras(10**9, keys=True, result_bytes=172).stored_gb_months == 300 + 172 + 128
