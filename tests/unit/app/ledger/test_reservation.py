"""Opening a batch under an idempotency key: one batch, whatever happens on the way."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import count

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.reservation import Reservation, namespace_of
from fanin.domain import limits
from fanin.domain.access import IdempotencyKey, Principal
from fanin.domain.batch import Batch, OpenBatch
from fanin.errors import BatchGone, IdempotencyKeyReused, Throttled
from fanin.wire.batches import OPEN_BATCH
from tests.unit.app.conftest import Crash, World

KEY = "run-7"
REQUEST = OpenBatch(user_key="nightly", metadata={"a": "b"})


def opened(memory: Memory) -> list[Batch]:
    """Batches that were ever written."""
    return [new for old, new in memory.batches.changes if old is None and new is not None]


def reservation(world: World, *, caller: Principal | None = None) -> Reservation:
    return Reservation(world.ports, IdempotencyKey.of(KEY, caller), {"a": 1}, 60)


def test_only_one_of_two_who_found_an_id_taken_replaces_it(world: World) -> None:
    slow, fast = reservation(world), reservation(world)
    assert slow.draw(world.clock.at) == fast.draw(world.clock.at)

    assert fast.draw(world.clock.at) == slow.draw(world.clock.at)


def test_a_key_that_expires_meanwhile_is_tried_again(world: World) -> None:
    # Given a process that reserved, and slept past the key's time
    mine = reservation(world)
    mine.draw(world.clock.at)
    world.clock.advance((60 + 86_400 + 1) * 1000)

    # When it draws again, over a record that is no longer there, then the caller shall repeat it all
    with pytest.raises(Throttled, match="expired") as caught:
        mine.draw(world.clock.at)
    assert caught.value.retry_after == 1


def test_whoever_is_slow_does_not_use_the_id_of_a_batch_that_was_removed(world: World) -> None:
    # Given two processes that found no batch; the faster one's was opened, and removed, and deleted since
    slow = Reservation(world.ports, IdempotencyKey.of(KEY), OPEN_BATCH.encode(REQUEST), limits.MAX_LIFETIME)
    assert slow.batch() is None
    opened = world.ledger.open(REQUEST, key=KEY)
    del world.memory.batches._rows[opened.batch_id]

    with pytest.raises(BatchGone, match="was removed"):
        world.ledger.draft(REQUEST, slow)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("deadline", [None, 60_000])
def test_whoever_dies_anywhere_leaves_one_batch_to_the_repeat(deadline: int | None, *, nested: bool) -> None:
    for steps in count():
        # Given a process that dies at some access to the stores while it opens
        world = World()
        due = None if deadline is None else world.clock.at + deadline
        request = replace(REQUEST, deadline=due, parent_item=parent_item(world) if nested else None)
        world.crash_at("", "", after=steps)
        with suppress(Crash):
            world.fresh().open(request, key=KEY)
        survived = world.go_on()

        # When others repeat it
        rows = [world.fresh().open(request, key=KEY) for _ in range(2)]

        # Then there is one batch, with its alarm, and all were given it
        (made,) = (row for row in opened(world.memory) if row.user_key == REQUEST.user_key)
        assert rows == [made, made]
        assert list(world.memory.timers.alarms) == ([] if due is None else [made.batch_id])
        if survived:
            assert steps >= 8  # two moments for each of: record read, record, row, record
            return


def parent_item(world: World) -> str:
    _, (group,) = world.batch(1)
    return group[0]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("write", ["directory.put", "batches.create", "batches.create_child"])
def test_a_write_that_comes_again_after_others_meets_its_own_batch(
    world: World, monkeypatch: pytest.MonkeyPatch, write: str, *, nested: bool
) -> None:
    """AWS's SDK repeats a write whose answer was lost, and others may have worked in between."""
    # Given a write that is applied, then others open under the key, fill the batch and are done, and then
    # the write comes again
    parent = parent_item(world) if nested else None
    request = replace(REQUEST, deadline=world.clock.at + 60_000, parent_item=parent)
    theirs: list[Batch] = []
    store, call = write.split(".")
    apply = getattr(getattr(world.memory, store), call)

    def again(*arguments: object, **named: object) -> object:
        monkeypatch.undo()
        apply(*arguments, **named)
        other = world.fresh()
        batch = other.open(request, key=KEY)
        other.add(batch.batch_id, 2)
        theirs.append(other.close(batch.batch_id))
        return apply(*arguments, **named)

    monkeypatch.setattr(getattr(world.memory, store), call, again)

    # When one process opens
    mine = world.fresh().open(request, key=KEY)

    # Then all have the same batch, as it is by now, and its alarm is set
    (made,) = (row for row in opened(world.memory) if row.user_key == REQUEST.user_key)
    assert made.batch_id == mine.batch_id
    assert theirs in ([], [mine])
    assert list(world.memory.timers.alarms) == [mine.batch_id]


def test_the_slower_of_two_finishes_what_the_faster_reserved(world: World) -> None:
    # Given a process that is overtaken just before it reserves an id
    faster: list[Batch] = []
    world.at("directory.put", "before", lambda: faster.append(world.fresh().open(REQUEST, key=KEY)))

    # When it goes on
    slower = world.ledger.open(REQUEST, key=KEY)

    # Then both have the same batch
    assert world.happened
    assert slower.batch_id == faster[0].batch_id
    assert len(opened(world.memory)) == 1


def test_a_key_is_free_when_its_batch_is_past_its_lifetime(world: World) -> None:
    request = replace(REQUEST, lifetime=60)
    first = world.ledger.open(request, key=KEY)
    world.clock.advance((60 + 86_400 + 1) * 1000)

    assert world.fresh().open(request, key=KEY).batch_id != first.batch_id


def test_a_key_costs_two_writes_and_one_read(world: World) -> None:
    world.ledger.open(REQUEST, key=KEY)

    assert world.accesses.writes == {"directory.put": 2, "batches.create": 1}
    assert world.accesses.reads == {"directory.read": 1}


ADA, BOB = Principal("ada", "iam ada"), Principal("bob", "iam bob")


class TestCallers:
    """A key belongs to its caller."""

    def test_of_two_callers_who_draw_at_once_each_has_an_id(self, world: World) -> None:
        # Given two processes that found no record under the text
        reservations = [reservation(world, caller=caller) for caller in (ADA, BOB)]
        assert [one.batch() for one in reservations] == [None, None]
        # When both draw
        (ada, _), (bob, _) = [one.draw(world.clock.at) for one in reservations]
        # Then each has an id, and whoever comes again with the key has the same
        again = [reservation(world, caller=caller) for caller in (ADA, BOB)]
        for one in again:
            one.batch()
        assert ada != bob
        assert [one.draw(world.clock.at + 5)[0] for one in again] == [ada, bob]

    def test_a_key_is_stored_where_every_process_looks_for_it(self, world: World) -> None:
        row = world.ledger.open(REQUEST, key=KEY, caller=ADA)

        name = IdempotencyKey.of(KEY, ADA).name
        record = world.ports.directory.read(namespace_of(name), [name])[name]
        assert (record.value["batch_id"], record.value["salt"]) == (row.batch_id, row.salt.hex())
        assert set(record.value) == {"batch_id", "salt", "request", "made"}


def test_that_the_batch_is_there_is_noted_once(world: World) -> None:
    world.ledger.open(REQUEST, key=KEY)

    with world.costing(writes=0):
        world.fresh().open(REQUEST, key=KEY)


def test_keys_are_spread_evenly_over_many_partitions() -> None:
    places = Counter(namespace_of(f"run-{n}") for n in range(5_120))

    assert len(places) == 256
    assert max(places.values()) < 60


def test_nothing_is_kept_of_a_key_that_stands_for_nothing(world: World) -> None:
    reservation(world).keep()

    assert world.accesses.writes.total() == 0


@pytest.mark.parametrize("change", [{"user_key": "other"}, {"limit": 5}, {"metadata": {}}, {"lifetime": 60}])
def test_a_key_stands_for_one_request(world: World, change: dict[str, object]) -> None:
    world.ledger.open(REQUEST, key=KEY)

    with world.refusing(IdempotencyKeyReused, "use a new key"):
        world.fresh().open(replace(REQUEST, **change), key=KEY)
