"""Opening batches: what a request may say, and the two steps of an opening."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.reservation import Reservation, namespace_of
from fanin.app.ports.batches import ItemPlace
from fanin.domain import ids, limits
from fanin.domain.access import IdempotencyKey, Principal
from fanin.domain.batch import RETENTION, Batch, Mode, OnDeadline, OpenBatch, State
from fanin.domain.ids import parse_item
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    IdempotencyKeyReused,
    InvalidItemId,
    InvalidRequest,
    ItemHasChild,
    NotConfigured,
    Throttled,
)
from fanin.wire.batches import OPEN_BATCH
from tests.unit.app.conftest import Crash, World


class TestOpen:
    def test_gives_a_batch_with_the_service_s_defaults(self, world):
        batch = world.ledger.open(OpenBatch(user_key="mine", metadata={"a": "b"}))

        assert (batch.state, batch.mode, batch.items) == (State.OPEN, Mode.EXACT, 0)
        assert (batch.user_key, batch.metadata) == ("mine", {"a": "b"})
        assert (batch.open_idle_ttl, batch.closed_idle_ttl, batch.stall_after) == (7_200, 604_800, 1_800)
        assert batch.expires_at == world.clock.at // 1000 + 30 * 86_400 + RETENTION
        assert world.row(batch) == batch

    def test_a_batch_is_touched_in_steps_that_follow_from_how_soon_it_is_idle_or_stalled(self, world):
        opened = world.ledger.open(OpenBatch(stall_after=0))
        closed = world.ledger.open(OpenBatch(size=3, stall_after=0))
        short = world.ledger.open(OpenBatch(idle_ttl=60, stall_after=0))
        told = world.ledger.open(OpenBatch(size=3, stall_after=40))

        # A step is a tenth of the idle time: of 7,200 seconds open, of 604,800 closed, of what was asked for
        now = world.clock.at
        assert opened.touched_at == now - now % 720_000
        assert closed.touched_at == now - now % 60_480_000
        assert opened.touched_at != closed.touched_at
        assert (short.touched_at, short.open_idle_ttl, short.closed_idle_ttl) == (now - now % 6_000, 60, 60)
        # Or a quarter of the time after which it is stalled
        assert told.touched_at == now - now % 10_000

    def test_gives_up_when_all_ids_are_taken(self, world, monkeypatch):
        monkeypatch.setattr(world.memory.random, "bits", lambda bits: 7 if bits == 12 else 0)
        world.batch()

        with pytest.raises(Throttled, match="no free batch id") as caught:
            world.batch()

        assert caught.value.retry_after == 1

    def test_writes_nothing_where_alarms_cannot_be_set(self, world, monkeypatch):
        def missing() -> None:
            raise NotConfigured("FANIN_SCHEDULE_GROUP is missing")

        monkeypatch.setattr(world.memory.timers, "check", missing)

        with world.refusing(NotConfigured, "FANIN_SCHEDULE_GROUP"):
            world.batch(deadline=world.clock.at + 60_000)
        assert world.batch()

    def test_a_repeat_of_the_key_sets_no_alarm_for_a_batch_that_has_ended(self, world):
        request = OpenBatch(deadline=world.clock.at + 60_000)
        with world.dying("batches.create", "after"):
            world.ledger.open(request, key="k")
        (row,) = world.ports.batches.page(State.OPEN).batches
        world.ledger.cancel(row.batch_id)

        assert world.fresh().open(request, key="k").state is State.CANCELLED
        assert world.memory.timers.alarms == {}

    @pytest.mark.parametrize(
        ("request_", "message"),
        [
            ({"lifetime": limits.MIN_LIFETIME - 1}, "lifetime must be"),
            ({"lifetime": limits.MAX_LIFETIME + 1}, "lifetime must be"),
            ({"idle_ttl": limits.MIN_IDLE_TTL - 1}, "idle_ttl must be"),
            ({"idle_ttl": limits.MAX_LIFETIME + 1}, "idle_ttl must be"),
            ({"user_key": "k" * (limits.MAX_USER_KEY + 1)}, "user_key must be"),
            ({"metadata": {"k": "v" * (limits.MAX_METADATA_VALUE + 1)}}, r"metadata\['k'\] must be"),
            ({"metadata": {str(i): "" for i in range(17)}}, "metadata may have at most 16 pairs"),
            ({"limit": 0}, "limit must be"),
            ({"limit": limits.MAX_LIMIT + 1}, "limit must be"),
            ({"limit": 5, "mode": Mode.ESTIMATED}, "an estimated batch cannot be bounded"),
            ({"stall_after": 9}, "stall_after must be a whole number from 10 to 31536000"),
            ({"stall_after": 365 * 86_400 + 1}, "stall_after must be"),
            ({"size": -1}, "size must be"),
            ({"retry_of": -1}, "retry_of must be"),
        ],
        ids=str,
    )
    def test_refuses_one_more_and_writes_nothing(self, world, request_, message):
        with world.refusing(InvalidRequest, f"^{message}"):
            world.ledger.open(OpenBatch(**request_))

    @pytest.mark.parametrize("offset", [0, -1, 60_001])
    def test_refuses_a_deadline_in_the_past_or_after_the_lifetime(self, world, offset):
        with world.refusing(InvalidRequest, "the deadline must lie in the future"):
            world.batch(deadline=world.clock.at + offset, lifetime=60)
        with world.refusing(InvalidRequest, "the deadline must lie in the future"):
            world.batch(deadline=10**5_000)  # too long to be written

    @pytest.mark.parametrize("offset", [1, 60_000])
    def test_takes_a_deadline_within_the_lifetime(self, world, offset):
        batch, _ = world.batch(deadline=world.clock.at + offset, lifetime=60, on_deadline=OnDeadline.COMPLETE)

        assert world.memory.timers.alarms == {batch.batch_id: world.clock.at + offset}

    def test_a_repeat_of_the_key_leaves_the_alarm_of_a_batch_that_is_open(self, world):
        request = OpenBatch(deadline=world.clock.at + 60_000)
        batch = world.ledger.open(request, key="k")
        world.memory.timers.alarms[batch.batch_id] += 1  # its pattern has postponed it

        world.fresh().open(request, key="k")

        assert world.memory.timers.alarms == {batch.batch_id: world.clock.at + 60_001}


def test_a_parent_must_be_an_item_of_a_live_batch_that_knows_its_items(world):
    (one, (group,)), (other, _) = world.batch(3), world.batch(3)
    ended, (late,) = world.batch(3)
    world.ledger.cancel(ended.batch_id)
    _, (counted,) = world.batch(3, mode=Mode.ESTIMATED)
    unknown = ids.issue(5, 0, 3, bytes(16))
    refusals: list[tuple[Any, type[Exception], str]] = [
        ("", InvalidItemId, ""),
        ("nonsense", InvalidItemId, "nonsense"),
        (5, InvalidItemId, "is not <batch id>"),
        (f"{other.batch_id}:{group.id}:0", InvalidItemId, "not issued"),
        (f"{one.batch_id}:{group.id}:3", InvalidItemId, "whole number from 0"),
        (f"{unknown.prefix}:0", BatchNotFound, "no batch 5"),
        (late[0], InvalidRequest, "has ended: it is cancelled"),
        (counted[0], InvalidRequest, "may count it twice; open the parent batch in exact"),
    ]

    for item, error, why in refusals:
        with world.refusing(error, why or None):
            world.batch(parent_item=item)


class TestChildren:
    """An item of a batch has one child at a time."""

    @pytest.fixture
    def item(self, world: World) -> str:
        _, (group,) = world.batch(3)
        return group[1]

    def test_a_commit_that_is_repeated_after_others_came_finds_its_child(self, world, item):
        # Given a child that was created, whose answer was lost, and others that were refused since
        draft = world.ledger.draft(OpenBatch(parent_item=item), None, None, 0)
        world.fresh().commit(draft)
        world.ledger.add(draft.batch_id, 2)
        with pytest.raises(ItemHasChild):
            world.fresh().open(OpenBatch(parent_item=item))
        # When the write comes again, then it is the child as it is by now
        again = world.fresh().commit(draft)
        assert again is not None
        assert (again.batch_id, again.items) == (draft.batch_id, 2)

    @pytest.mark.parametrize("state", [State.CANCELLED, State.TIMED_OUT, State.ORPHANED])
    def test_a_child_that_ended_without_completing_gives_way(self, world, item, state):
        first, _ = world.batch(parent_item=item)
        world.ports.batches.end(first.batch_id, state, now=world.clock.at, sources=(State.OPEN,))

        second, _ = world.batch(parent_item=item)

        with pytest.raises(ItemHasChild, match=str(second.batch_id)):
            world.batch(parent_item=item)

    def test_a_child_that_is_gone_gives_way(self, world, item):
        first, _ = world.batch(parent_item=item, lifetime=60)
        world.clock.at = first.expires_at * 1000
        assert world.batch(parent_item=item)

        del world.memory.batches._rows[world.ports.batches.child_of(place_of(item))]
        assert world.batch(parent_item=item)

    def test_a_child_that_completed_has_done_the_item(self, world, item):
        first, _ = world.batch(parent_item=item, closed=True)
        world.ledger.remove(first.batch_id)

        with pytest.raises(ItemHasChild, match=f"already has a complete child, batch {first.batch_id}"):
            world.batch(parent_item=item)

    def test_of_two_that_would_replace_a_child_one_does(self, world, item):
        first, _ = world.batch(parent_item=item)
        world.ledger.cancel(first.batch_id)
        winners: list[int] = []
        world.at("batches.create_child", "after", lambda: None)  # of the write that finds the old child
        world.at(
            "batches.create_child",
            "before",
            lambda: winners.append(world.fresh().open(OpenBatch(parent_item=item)).batch_id),
        )

        with pytest.raises(ItemHasChild) as refused:
            world.ledger.open(OpenBatch(parent_item=item))

        assert f"child batch {winners[0]}, which is open" in str(refused.value)

    def test_a_taken_id_is_drawn_again(self, world, item, monkeypatch):
        draws = {12: iter([7, 7, 7, 8]), 2: iter([0]), 4: iter([2])}
        monkeypatch.setattr(world.memory.random, "bits", lambda bits: next(draws[bits]))
        other, _ = world.batch()

        child, _ = world.batch(parent_item=item)

        assert child.batch_id == other.batch_id + 1 + (2 << 12)  # of a later millisecond


def place_of(item: str) -> ItemPlace:
    block, ordinal = parse_item(item)
    return ItemPlace(block.batch_id, ordinal)


def test_retry_of_names_a_batch_that_is_there(world):
    for unknown in (0, 7):
        with world.refusing(BatchNotFound, f"no batch {unknown};"):
            world.ledger.open(OpenBatch(retry_of=unknown))

    first, _ = world.batch()
    again = world.ledger.open(OpenBatch(retry_of=first.batch_id))
    assert world.row(again).retry_of == first.batch_id


def test_steps_a_batch_is_there_with_its_commit_as_the_draft_was_changed(world):
    # Given a draft, changed by a pattern that knows more by now
    opening = world.ledger
    draft = replace(opening.draft(OpenBatch(size=0), None, None, 0), items=3, deadline=world.clock.at + 9)
    assert world.ports.batches.read([draft.batch_id]) == {}

    batch = opening.commit(draft)
    # Then it is there as changed, with its alarm
    assert batch == draft == world.row(draft)
    assert world.memory.timers.alarms == {draft.batch_id: world.clock.at + 9}


# Opening a batch under an idempotency key: one batch, whatever happens on the way.


KEY = "run-7"
REQUEST = OpenBatch(user_key="nightly", metadata={"a": "b"})


def opened(memory: Memory) -> list[Batch]:
    """Batches that were ever written."""
    return [new for old, new in memory.batches.changes if old is None and new is not None]


def reservation(world: World, *, caller: Principal | None = None) -> Reservation:
    return Reservation(world.ports, IdempotencyKey.of(KEY, caller), {"a": 1}, 60)


def test_only_one_of_two_who_found_an_id_taken_replaces_it(world):
    slow, fast = reservation(world), reservation(world)
    assert slow.draw(world.clock.at) == fast.draw(world.clock.at)

    assert fast.draw(world.clock.at) == slow.draw(world.clock.at)


def test_a_key_that_expires_meanwhile_is_tried_again(world):
    # Given a process that reserved, and slept past the key's time
    mine = reservation(world)
    mine.draw(world.clock.at)
    world.clock.advance((60 + 86_400 + 1) * 1000)
    # When it draws again, over a record that is no longer there, then the caller shall repeat it all
    with pytest.raises(Throttled, match="expired") as caught:
        mine.draw(world.clock.at)
    assert caught.value.retry_after == 1


def test_whoever_is_slow_does_not_use_the_id_of_a_batch_that_was_removed(world):
    # Given two processes that found no batch; the faster one's was opened, and removed, and deleted since
    slow = Reservation(world.ports, IdempotencyKey.of(KEY), OPEN_BATCH.encode(REQUEST), limits.MAX_LIFETIME)
    assert slow.batch() is None
    opened = world.ledger.open(REQUEST, key=KEY)
    del world.memory.batches._rows[opened.batch_id]

    with pytest.raises(BatchGone, match="was removed"):
        world.ledger.draft(REQUEST, slow, None, 0)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("deadline", [None, 60_000])
def test_whoever_dies_anywhere_leaves_one_batch_to_the_repeat(deadline, *, nested):
    for steps in count():
        # Given a process that dies at some access to the stores while it opens
        world = World()
        due = None if deadline is None else world.clock.at + deadline
        request = replace(REQUEST, deadline=due, parent_item=parent_item(world) if nested else None)
        world.crash_at("", "", after=steps)
        with suppress(Crash):
            world.fresh().open(request, key=KEY)
        survived = world.go_on()

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
def test_a_write_that_comes_again_after_others_meets_its_own_batch(world, monkeypatch, write, *, nested):
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

    mine = world.fresh().open(request, key=KEY)
    # Then all have the same batch, as it is by now, and its alarm is set
    (made,) = (row for row in opened(world.memory) if row.user_key == REQUEST.user_key)
    assert made.batch_id == mine.batch_id
    assert theirs in ([], [mine])
    assert list(world.memory.timers.alarms) == [mine.batch_id]


def test_the_slower_of_two_finishes_what_the_faster_reserved(world):
    # Given a process that is overtaken just before it reserves an id
    faster: list[Batch] = []
    world.at("directory.put", "before", lambda: faster.append(world.fresh().open(REQUEST, key=KEY)))

    slower = world.ledger.open(REQUEST, key=KEY)

    assert world.happened
    assert slower.batch_id == faster[0].batch_id
    assert len(opened(world.memory)) == 1


def test_a_key_is_free_when_its_batch_is_past_its_lifetime(world):
    request = replace(REQUEST, lifetime=60)
    first = world.ledger.open(request, key=KEY)
    world.clock.advance((60 + 86_400 + 1) * 1000)

    assert world.fresh().open(request, key=KEY).batch_id != first.batch_id


def test_a_key_costs_two_writes_and_one_read(world):
    world.ledger.open(REQUEST, key=KEY)

    assert world.accesses.writes == {"directory.put": 2, "batches.create": 1}
    assert world.accesses.reads == {"directory.read": 1}


ADA, BOB = Principal("ada", "iam ada"), Principal("bob", "iam bob")


class TestCallers:
    """A key belongs to its caller."""

    def test_of_two_callers_who_draw_at_once_each_has_an_id(self, world):
        # Given two processes that found no record under the text
        reservations = [reservation(world, caller=caller) for caller in (ADA, BOB)]
        assert [one.batch() for one in reservations] == [None, None]
        (ada, _), (bob, _) = [one.draw(world.clock.at) for one in reservations]
        # Then each has an id, and whoever comes again with the key has the same
        again = [reservation(world, caller=caller) for caller in (ADA, BOB)]
        for one in again:
            one.batch()
        assert ada != bob
        assert [one.draw(world.clock.at + 5)[0] for one in again] == [ada, bob]

    def test_a_key_is_stored_where_every_process_looks_for_it(self, world):
        row = world.ledger.open(REQUEST, key=KEY, caller=ADA)

        name = IdempotencyKey.of(KEY, ADA).name
        record = world.ports.directory.read(namespace_of(name), [name])[name]
        assert (record.value["batch_id"], record.value["salt"]) == (row.batch_id, row.salt.hex())
        assert set(record.value) == {"batch_id", "salt", "request", "made"}


def test_that_the_batch_is_there_is_noted_once(world):
    world.ledger.open(REQUEST, key=KEY)

    with world.costing(writes=0):
        world.fresh().open(REQUEST, key=KEY)


def test_keys_are_spread_evenly_over_many_partitions():
    places = Counter(namespace_of(f"run-{n}") for n in range(5_120))

    assert len(places) == 256
    assert max(places.values()) < 60


def test_nothing_is_kept_of_a_key_that_stands_for_nothing(world):
    reservation(world).keep()

    assert world.accesses.writes.total() == 0


@pytest.mark.parametrize("change", [{"user_key": "other"}, {"limit": 5}, {"metadata": {}}, {"lifetime": 60}])
def test_a_key_stands_for_one_request(world, change):
    world.ledger.open(REQUEST, key=KEY)

    with world.refusing(IdempotencyKeyReused, "use a new key"):
        world.fresh().open(replace(REQUEST, **change), key=KEY)
