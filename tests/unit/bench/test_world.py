"""A ledger in memory that counts its accesses to rows."""

from __future__ import annotations

import pytest

from bench.world import World, span
from fanin.domain.batch import State


@pytest.fixture
def world() -> World:
    return World()


def test_accesses_are_counted_inside_the_block_only(world):
    batch = world.batch(100)
    with world.spending() as spent:
        world.ledger.mark([span(batch, 0, 100)[7]]).whole()
    first = (spent.reads, spent.writes, spent.refused)
    world.ledger.mark([span(batch, 0, 100)[8]]).whole()
    assert first == (spent.reads, spent.writes, spent.refused) == (0, 1, 0)


def test_refused_writes_count_as_writes(world):
    batch = world.batch(100)
    item = span(batch, 0, 100)[7]
    world.ledger.mark([item]).whole()
    with world.spending() as spent:
        world.ledger.mark([item]).whole()
    assert (spent.refused, spent.writes) == (1, 1)


def test_a_process_knows_nothing_of_what_another_one_has_read(world):
    batch = world.batch(100)
    cold, warm = World.process(world), world.ledger
    reads = []
    for process in (warm, cold):
        with world.spending() as spent:
            process.mark([span(batch, 0, 100)[len(reads)]]).whole()
        reads.append(spent.reads)
    assert reads == [0, 1]


@pytest.mark.parametrize("closed", [True, False])
def test_a_batch_has_its_items_in_as_many_groups_as_that_takes(world, closed):
    batch = world.batch(2**33, closed=closed)
    row = world.process().status(batch.batch_id).batch
    assert (row.items, row.state) == (2**33, State.CLOSED if closed else State.OPEN)


def test_a_range_is_acknowledged_whatever_groups_it_spans(world):
    batch = world.batch(2**33, closed=True)
    world.ack_range(batch, 0, 2**32 + 5)
    with pytest.raises(AssertionError, match="the batch is closed"):
        world.check_complete()
    assert world.process().missing(batch.batch_id).ranges[0].start == 2**32 + 5
    world.ack_range(batch, 2**32 + 5, 2**33)
    world.check_complete()
