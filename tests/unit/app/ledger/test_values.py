from __future__ import annotations

import pytest

from fanin.app.ledger.ack_request import parse_ack
from fanin.app.ledger.values import check_totals, counted_sums
from fanin.domain.acks import Count, ItemRange, Result
from fanin.domain.batch import Mode, OpenBatch
from fanin.errors import InvalidRequest, RequestTooLarge
from tests.unit.app.conftest import World


def test_counted_items_and_results_add_up_in_the_order_of_the_totals(world: World) -> None:
    batch = world.ledger.open(OpenBatch(mode=Mode.ESTIMATED, totals=("rows", "cents")))
    group = world.ledger.add(batch.batch_id, 10)
    counts = [Count(batch.batch_id, 2, {"cents": -4}), Count(batch.batch_id, 1, {"rows": 1})]
    (share,) = parse_ack(
        (), (), counts, [Result(group[0], {"rows": 7}), Result(group[0], {"rows": 7})]
    ).values()

    assert counted_sums(share, batch) == (15, -4)
    world.ledger.ack(counts=counts)
    assert world.ledger.status(batch.batch_id).batch.totals == {"rows": 1, "cents": -4}


def test_a_count_with_an_unknown_total_is_refused(world: World) -> None:
    batch = world.ledger.open(OpenBatch(mode=Mode.ESTIMATED))
    (share,) = parse_ack((), (), [Count(batch.batch_id, 2, {"rows": 1})]).values()

    assert counted_sums(parse_ack((), (), [Count(batch.batch_id, 2)])[batch.batch_id], batch) == ()
    with pytest.raises(InvalidRequest, match="it was opened without totals"):
        check_totals([share], {batch.batch_id: batch})


def test_ranges_are_bounded_only_where_there_are_totals(world: World) -> None:
    for names in ((), ("rows",)):
        batch = world.ledger.open(OpenBatch(totals=names))
        group = world.ledger.add(batch.batch_id, 10_001)
        (fits,) = parse_ack((), [ItemRange(group.prefix, 0, 10_000)], ()).values()
        check_totals([fits], {batch.batch_id: batch})
        (share,) = parse_ack((), [ItemRange(group.prefix)], ()).values()
        if not names:
            check_totals([share], {batch.batch_id: batch})
            continue
        with pytest.raises(RequestTooLarge, match="marked item by item"):
            check_totals([share], {batch.batch_id: batch})


def test_ranges_of_all_batches_of_a_call_are_bounded_together(world: World) -> None:
    # Given three batches with totals, and one that is estimated and marks nothing
    groups = [
        world.ledger.add(world.ledger.open(OpenBatch(mode=mode, totals=("rows",))).batch_id, 5_000)
        for mode in (Mode.EXACT, Mode.EXACT, Mode.EXACT, Mode.ESTIMATED)
    ]
    world.accesses.writes.clear()

    # When one call names more items than it may mark one by one, Then nothing is written
    with pytest.raises(RequestTooLarge, match="at most 10000 items by them in one call, not 15000"):
        world.ledger.ack(ranges=[ItemRange(group.prefix) for group in groups])
    assert not world.accesses.writes

    # And those that fit are marked
    receipts = world.ledger.ack(ranges=[ItemRange(group.prefix) for group in groups[1:]])
    assert [receipt.ranged for receipt in receipts] == [5_000] * 3
