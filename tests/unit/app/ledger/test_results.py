"""Results of items: stored before the mark, whatever ends a process, and gone with their batch."""

import pytest

from fanin.app import failures
from fanin.domain.batch import OpenBatch
from fanin.domain.ids import Group
from fanin.domain.marks import Done, ItemRange
from fanin.errors import Throttled
from tests.unit.app.conftest import Crash, World

LARGE = "x" * 9_000


def opened(world: World, count: int = 3) -> tuple[int, Group]:
    batch = world.ledger.open(OpenBatch(results=True))
    return batch.batch_id, world.ledger.add(batch.batch_id, count)


def read(world: World, batch_id: int) -> list[object]:
    return [one.result for one in world.ledger.results(batch_id).results]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("after", range(8))
def test_an_item_that_is_done_has_the_first_result_that_was_stored(world, moment, after):
    # Given a process that dies at any access
    batch_id, group = opened(world)
    marks = [Done(group[0], result="first"), Done(group[1], result=LARGE), group[2]]
    world.crash_at("", moment, after=after)
    try:
        world.ledger.mark(marks)
        world.go_on()
        stored = True
    except Crash:
        stored = bool(world.ports.parts.results(batch_id, [0]))
    # When the same work gives another result the next time
    world.fresh().mark([Done(group[0], result="second"), *marks[1:]])
    # Then whichever was stored first is the result
    assert read(world, batch_id) == ["first" if stored else "second", LARGE]


def test_an_item_is_not_done_before_its_result_is_there(world):
    batch_id, group = opened(world)
    world.raise_at("parts.put_results", "before", Throttled("busy"))

    marked = world.ledger.mark([Done(group[0], result=1), group[1]])

    assert list(marked.left) == [0]
    assert world.ledger.missing(batch_id).ranges[0].start == 0
    assert world.ledger.mark([Done(group[0], result=1)]).whole()[0].first == 1


def test_a_range_waits_for_the_results_of_its_own_items_which_decide(world):
    batch_id, group = opened(world)
    world.raise_at("parts.put_results", "before", Throttled("busy"))

    marked = world.ledger.mark([Done(group[0], result=1), ItemRange(group.prefix, 0, 3)])

    assert list(marked.left) == [0, 1]
    assert world.ledger.missing(batch_id).ranges[0].start == 0


def test_a_result_takes_one_write_and_an_item_without_one_none(world):
    _, group = opened(world, 4)
    world.ledger.mark([group[0]])
    with world.costing(writes=1):
        world.ledger.mark([group[1]])
    with world.costing(writes=2):
        world.ledger.mark([Done(group[2], result=1)])


def test_a_page_reads_the_next_items_only(world):
    batch_id, group = opened(world, 2_000)
    world.ledger.mark([Done(item, result=n) for n, item in enumerate(group[:600])])
    world.accesses.reads.clear()
    page = world.ledger.results(batch_id, limit=1_000)
    assert world.accesses.reads.total() <= 500
    assert (len(page.results), page.cursor) == (250, "250")


def test_results_are_deleted_with_their_batch(world):
    # Given a small result and a large one
    batch_id, group = opened(world)
    world.ledger.mark([Done(group[0], result=1), Done(group[1], result=LARGE)])
    assert len(world.memory.claims.objects) == 1
    # When the time is up while they are deleted, and the removal is repeated
    batch = world.ports.batches.read([batch_id])[batch_id]
    world.raise_at("parts.delete_results", "after", Throttled("the time is up"), after=1)
    with pytest.raises(Throttled):
        failures.forget(world.ports, batch)
    failures.forget(world.ports, batch)

    assert world.ports.parts.results(batch_id, range(3)) == {}
    assert world.memory.claims.objects == {}
