"""The computed costs, compared with what the ledger really writes."""

import pytest

from fanin import Tracker
from fanin.adapters.memory import Memory
from fanin.app.services import Services
from fanin.domain.batch import State
from fanin.domain.costs import BLOCK, Order, Usage, carried, costs, estimate, parents, spent, words_touched
from fanin.domain.limits import MAX_MARKS
from fanin.domain.marks import Failure, ItemRange
from fanin.domain.prices import BY_REGION, DEFAULT


def way(name, items, order=Order.SCATTERED, **options):
    (cost,) = [one for one in costs(items, order, **options) if one.way.startswith(name)]
    return cost


def directly(items, together):
    return way("direct", items, Order.NEIGHBOURS, together=together).writes


def written(memory):
    return sum(memory.accesses.writes.values())


@pytest.mark.parametrize(
    ("items", "together"), [(1, 1), (64, 64), (65, 1), (65, 10), (500, 1), (5_000, 10), (20_000, 64)]
)
def test_the_plan_is_no_lower_than_what_the_ledger_writes(items, together):
    # Given
    memory = Memory()
    tracker = Tracker(Services(memory.ports()))
    # When
    with tracker.batch() as batch:
        groups = [batch.add(min(BLOCK, items - start), key=str(start)) for start in range(0, items, BLOCK)]
    ids = [item for group in groups for item in group]
    for start in range(0, items, together):
        tracker.ack(ids[start : start + together])
    # Then
    planned = directly(items, together)
    assert written(memory) <= planned <= written(memory) + 32


@pytest.mark.parametrize("items", [1, 64, 5_000, 10**9])
def test_the_plan_of_one_range_is_no_lower_than_what_the_ledger_writes(items):
    memory = Memory()
    tracker = Tracker(Services(memory.ports()))
    with tracker.batch() as batch:
        group = batch.add(items)
    tracker.ack(group)
    planned = way("one range", items).writes
    assert written(memory) <= planned <= written(memory) + 32


@pytest.mark.parametrize("items", [1, 64, 65, 10_001, 70_000])
def test_the_plan_of_ranges_of_a_batch_with_totals_is_no_lower_than_what_the_ledger_writes(items):
    # Given
    memory = Memory()
    tracker = Tracker(Services(memory.ports()))
    with tracker.batch(totals=["rows"]) as batch:
        group = batch.add(items)
    # When each call names as many items by a range as it may
    for start in range(0, items, MAX_MARKS):
        tracker.ack([ItemRange(group.prefix, start, min(start + MAX_MARKS, items))])
    # Then
    assert tracker.status(batch.id).batch.state is State.COMPLETE
    planned = way("ranges of a batch with totals", items).writes
    assert written(memory) <= planned <= written(memory) + 32


def test_ranges_of_a_batch_with_totals_take_a_write_for_64_items_and_a_spark_job_two():
    assert way("ranges of a batch with totals", 10**9).writes == pytest.approx(10**9 / 64, rel=0.04)
    assert way("Spark job", 10**9).writes == pytest.approx(2 * 10**9 / 64, rel=0.01)


@pytest.mark.parametrize("done", [0, 1, 64, 1_000])
def test_what_a_batch_has_spent_is_no_lower_than_what_the_ledger_has_written(done):
    # Given a batch of which some items are done, each by itself, and some of these failed
    memory = Memory()
    tracker = Tracker(Services(memory.ports()))
    with tracker.batch(user_key="half") as batch:
        group = batch.add(1_000)
    failed = done // 100
    for item in group[failed:done]:
        tracker.ack(item)
    Services(memory.ports()).ledger.mark([Failure(item, "no") for item in group[:failed]]).whole()
    # When
    dearest = spent(1_000, done, failed)[0]
    # Then
    assert written(memory) <= dearest.writes <= written(memory) + 32 + 2 * failed


def test_a_range_costs_the_least_and_an_item_at_a_time_the_most():
    ways = spent(10**9, 10**8, 5)
    assert [way.writes for way in ways] == sorted((way.writes for way in ways), reverse=True)
    assert spent(10**9, 0, 5)[-1].writes < ways[-1].writes < 200


def test_an_estimated_batch_has_nothing_above_its_counter():
    assert spent(5_000, 5_000, 0, exact=False)[0].writes == spent(5_000, 5_000, 0)[0].writes - parents(5_000)


def test_a_batch_without_items_has_cost_its_row():
    assert {way.writes for way in spent(0, 0, 0)} == {13}


class TestEstimate:
    def test_lies_between_the_ways_and_is_what_the_library_does(self):
        about = estimate(10**6, 500_000, 7, exact=True, prices=DEFAULT)
        assert about.at_least < about.dollars < about.at_most
        assert about.dollars == pytest.approx(spent(10**6, 500_000, 7)[1].dollars(DEFAULT), abs=1e-6)
        assert (about.region, about.estimate) == ("us-east-1", True)

    def test_follows_the_prices_of_the_region(self):
        here, there = (
            estimate(10**6, 10**6, 0, exact=True, prices=BY_REGION[region]).dollars
            for region in ("us-east-1", "eu-central-1")
        )
        assert 1.15 * here < there < 1.30 * here


@pytest.mark.parametrize("name", list(Usage.__dataclass_fields__))
def test_every_amount_is_billed(name):
    assert Usage(**{name: 10**6}).dollars(DEFAULT) > 0
    assert (Usage(**{name: 1}) + Usage(**{name: 2})).times(2).amounts() == {name: 6}


def test_every_price_is_used():
    every = Usage(**dict.fromkeys(Usage.__dataclass_fields__, 10**6))
    for name in DEFAULT.amounts():
        assert every.dollars(DEFAULT.with_own({name: 0}, "x")) < every.dollars(DEFAULT), name


def test_a_bill_lists_every_service_and_adds_up():
    usage = Usage(writes=10**6, api_requests=2 * 10**6, log_bytes=3 * 10**9)
    bill = usage.bill(DEFAULT)
    assert (bill["DynamoDB"], bill["API"], bill["logs"]) == (0.625, 2.0, 1.5)
    assert sum(bill.values()) == usage.dollars(DEFAULT)
    assert set(bill) == set(Usage().bill(DEFAULT))


def test_parents_are_one_63rd_of_the_words():
    assert parents(64**4) == 64**3 + 64**2 + 64
    assert parents(64) == 0


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("together", [1, 7, 64, 1_000])
def test_more_together_touch_fewer_words_and_never_fewer_than_there_are(order, together):
    touched = words_touched(100_000, together, order)
    assert 100_000 / 64 <= touched <= 100_000
    assert touched <= words_touched(100_000, 1, order) + 1


def test_scattered_items_touch_nearly_as_many_words_as_there_are_items():
    assert words_touched(10**6, 10, Order.SCATTERED) == pytest.approx(10**6, rel=0.001)
    assert words_touched(10**6, 10, Order.NEIGHBOURS) == pytest.approx(112_500, rel=0.001)


def test_windows_of_neighbours_write_the_words_above_once():
    assert carried(10**6, 1, Order.NEIGHBOURS) == parents(10**6)
    assert carried(10**6, 1_000, Order.NEIGHBOURS) < parents(10**6) / 10
    assert carried(0, 10, Order.NEIGHBOURS) == 0
