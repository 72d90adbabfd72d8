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
    row = world.ledger.status(batch.batch_id).batch
    assert (row.totals, row.totals_exact) == ({"rows": 1, "cents": -4}, False)


def test_a_count_with_an_unknown_total_is_refused(world: World) -> None:
    batch = world.ledger.open(OpenBatch(mode=Mode.ESTIMATED))
    (share,) = parse_ack((), (), [Count(batch.batch_id, 2, {"rows": 1})]).values()

    assert counted_sums(parse_ack((), (), [Count(batch.batch_id, 2)])[batch.batch_id], batch) == ()
    with pytest.raises(InvalidRequest, match="it was opened without totals"):
        check_totals([share], {batch.batch_id: batch})


def test_ranges_of_all_batches_with_totals_are_bounded_together() -> None:
    # Given three batches with totals, one without, and one that is estimated and marks nothing
    world = World(width=64)
    one, two, more, plain, estimated = (
        ItemRange(world.batch(items, mode=mode, totals=totals)[1][0].prefix)
        for items, mode, totals in [
            *((n, Mode.EXACT, ("rows",)) for n in (9_000, 1_000, 1)),
            (10_001, Mode.EXACT, ()),
            (10_001, Mode.ESTIMATED, ("rows",)),
        ]
    )

    # When one call names more items than it may mark one by one, Then nothing is written
    with world.refusing(RequestTooLarge, "marked item by item.* 10000 items by them in one call, not 10001"):
        world.ledger.ack(ranges=[one, two, more, plain, estimated])

    # And those that fit are marked
    receipts = world.ledger.ack(ranges=[one, two, plain, estimated])
    assert [receipt.ranged for receipt in receipts] == [9_000, 1_000, 10_001, 10_001]
