"""What is due for the reaper, in every store."""

from itertools import islice

from fanin.app.ports.batches import Activity
from fanin.domain.batch import LIVE, State
from tests.integration.conftest import Stores
from tests.integration.given import HOUR, NOW, put


def test_the_longest_due_comes_first_whatever_its_state_and_shard(stores: Stores) -> None:
    due: list[tuple[int, int]] = []
    for batch_id in range(40):
        batch = put(
            stores,
            batch_id,
            touched_at=NOW - batch_id * 7 % 40 * HOUR,
            state=LIVE[batch_id % 3 == 0],
            closed_idle_ttl=7_200,
            open_idle_ttl=7_200,
        )
        due.append((batch.look_at(batch.created_at), batch_id))

    assert list(stores.batches.due(NOW + 10 * HOUR)) == [batch_id for _, batch_id in sorted(due)]
    assert list(islice(stores.batches.due(NOW + 10 * HOUR), 3)) == [
        batch_id for _, batch_id in sorted(due)[:3]
    ]
    assert list(stores.batches.due(max(due)[0])) == [batch_id for _, batch_id in sorted(due)[:-1]]


def test_ended_batches_and_those_that_are_due_later_are_left_out(stores: Stores) -> None:
    batch = put(stores, 8)
    put(stores, 9, state=State.COMPLETE)
    at = batch.due_at

    assert list(stores.batches.due(at)) == []
    assert list(stores.batches.due(at + 1)) == [8]
    stores.batches.touch(8, Activity(batch.touched_at, at + 5))
    assert list(stores.batches.due(at + 1)) == []
    assert list(stores.batches.due(at + 6)) == [8]
    stores.batches.end(8, State.ORPHANED, now=at, sources=LIVE)
    assert list(stores.batches.due(at + 6)) == []


def test_more_than_a_page_of_one_shard(stores: Stores) -> None:
    for number in range(230):
        put(stores, 8 * number, touched_at=NOW + number)

    assert list(stores.batches.due(NOW + 1_000 * HOUR)) == [8 * number for number in range(230)]
