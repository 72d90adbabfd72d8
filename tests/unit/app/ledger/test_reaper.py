"""The reaper ends what nobody ends, and nothing else."""

from collections.abc import Callable, Collection
from typing import Any

import pytest

from fanin.app.ledger.reading import Reading
from fanin.app.ledger.reaper import Reaped
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.batch import RETENTION, Batch, OnDeadline, State
from fanin.names import SHARDS
from tests.unit.app.conftest import World

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def test_looks_at_a_closed_batch_ever_more_seldom(world):
    world.batch(5, closed=True, stall_after=0)
    looks = []

    for minutes in range(0, 8 * 60, 5):
        if world.ledger.reap().seen:
            looks.append(minutes)
        world.clock.advance(5 * MINUTE)

    # A key that is due at the very moment of a run is seen by the next one
    assert looks == [20, 45, 95, 195, 395]


def test_a_batch_lives_no_longer_than_its_lifetime(world):
    batch, (group,) = world.batch(1_000, lifetime=3_600)
    for item in group[:11]:
        world.clock.advance(HOUR // 10)
        world.ledger.mark([item]).whole()

    assert world.clock.at > (batch.expires_at - RETENTION) * 1000
    assert world.ledger.reap().orphaned == 1


def test_looks_once_at_a_batch_that_is_not_idle_yet_and_again_when_it_is_due(world):
    # Given a row whose index key says sooner than the row: it was set before the batch was closed
    batch, _ = world.batch(5)
    world.fresh().close(batch.batch_id)
    world.clock.advance(3 * HOUR)

    assert world.fresh().reap() == Reaped(seen=1)
    assert world.fresh().reap() == Reaped()
    assert world.row(batch).state is State.CLOSED
    world.clock.advance(7 * DAY)
    assert world.fresh().reap() == Reaped(seen=1, orphaned=1, stuck=1)
    assert world.row(batch).state is State.ORPHANED


class TestRace:
    """Somebody comes between the reaper's look and its write."""

    @pytest.mark.parametrize(
        ("deed", "deadline", "state"),
        [
            ("ack", None, State.OPEN),
            ("add", None, State.OPEN),
            ("cancel", None, State.CANCELLED),
            ("cancel", HOUR, State.CANCELLED),
        ],
    )
    def test_with_an_acknowledgement_an_addition_or_another_end(self, world, deed, deadline, state):
        batch, (group,) = world.batch(5, deadline=deadline and world.clock.at + deadline)
        deeds: dict[str, Callable[[], object]] = {
            "ack": lambda: world.fresh().mark([group[0]]).whole(),
            "add": lambda: world.fresh().add(batch.batch_id, 1),
            "cancel": lambda: world.fresh().cancel(batch.batch_id),
        }
        world.clock.advance(2 * HOUR)
        world.at("batches.end", "before", deeds[deed])

        assert world.ledger.reap() == Reaped(seen=1)
        assert world.row(batch).state is state

    @pytest.mark.parametrize("row", ["ended", "deleted"])
    def test_with_what_has_happened_since_the_index_was_read(self, world, row):
        batch, _ = world.batch(5)
        world.clock.advance(2 * HOUR)

        def happen() -> None:
            world.fresh().cancel(batch.batch_id)
            if row == "deleted":
                world.memory.batches._rows.clear()

        world.at("batches.due", "after", happen)

        assert world.ledger.reap() == Reaped()


class TestDeadline:
    @pytest.mark.parametrize(
        ("on_deadline", "state"),
        [(OnDeadline.TIME_OUT, State.TIMED_OUT), (OnDeadline.COMPLETE, State.COMPLETE)],
    )
    def test_is_met_when_the_alarm_did_not_come(self, world, on_deadline, state):
        # Given a batch whose deadline is left to its alarm for a minute
        batch, _ = world.batch(5, deadline=world.clock.at + 1_000, on_deadline=on_deadline)
        world.clock.advance(60_999)
        assert world.ledger.reap() == Reaped()
        assert world.row(batch).state is State.OPEN

        world.clock.advance(2)

        assert world.ledger.reap() == Reaped(seen=1, timed_out=1)
        assert world.row(batch).state is state

    def test_is_left_to_its_alarm_by_a_run_that_looks_for_another_reason(self, world):
        # Given a closed batch that is looked at a quarter of an hour after its close, just past its deadline
        batch, _ = world.batch(5, closed=True, deadline=world.clock.at + 15 * MINUTE - 30_000)
        world.clock.advance(15 * MINUTE + 1)

        assert world.ledger.reap() == Reaped(seen=1)
        assert world.row(batch).state is State.CLOSED
        world.clock.advance(MINUTE)
        assert world.ledger.reap() == Reaped(seen=1, timed_out=1)

    def test_of_a_batch_that_stays_active_is_not_forgotten(self, world):
        """Activity moves the index key, but never past the deadline."""
        batch, (group,) = world.batch(50, deadline=world.clock.at + 5 * HOUR)
        for item in group[:40]:
            world.clock.advance(HOUR // 4)
            world.fresh().mark([item]).whole()

        assert world.fresh().reap() == Reaped(seen=1, timed_out=1)
        assert world.row(batch).state is State.TIMED_OUT


class TestLostBits:
    """A process died between a word and its parent, far from the edge, and nobody came after it."""

    def lose(self, world: World, **request: object) -> Batch:
        batch, (group,) = world.batch(100, **request)
        with world.dying("words.clear", "after"):
            world.fresh().mark(list(group[:4])).whole()
        world.fresh().mark(list(group[4:])).whole()
        assert world.ledger.close(batch.batch_id).state is State.CLOSED
        return batch

    @pytest.mark.parametrize("deadline", [None, HOUR])
    def test_that_are_too_many_for_one_run_end_nothing(self, world, deadline, monkeypatch):
        # Given a batch of which only the leaves are done, and another one that is idle
        monkeypatch.setitem(Reading.inspect.__kwdefaults__, "budget", 300)
        batch, _ = world.batch(4**6, closed=True, deadline=deadline and world.clock.at + deadline)
        leaves = world.ports.tree.masks(range(4**6)).items()
        world.ports.words.clear(
            [Clear(WordKey(batch.batch_id, 0, number), mask, batch.expires_at) for number, mask in leaves]
        )
        world.clock.advance(8 * DAY)
        runs = [world.fresh().reap() for _ in range(2)]
        world.batch(1)
        world.clock.advance(3 * HOUR)
        # When the reaper comes again and again
        while not world.row(batch).state.terminal:
            world.clock.advance(5 * MINUTE)
            runs.append(world.fresh().reap())
        # Then it ends the idle one at once, and the other when it knows that it is complete
        assert runs[:3] == [Reaped(seen=1, unfinished=1), Reaped(), Reaped(seen=2, unfinished=1, orphaned=1)]
        assert runs[-1] == Reaped(seen=1, settled=1)
        assert (world.row(batch).state, world.row(batch).partial) == (State.COMPLETE, False)


def test_time_is_shared_by_all_states_and_shards_the_longest_due_first(world):
    """A run that has time for one batch takes the one that is due the longest, wherever it is listed."""
    batches: list[int] = []
    for number in range(3 * SHARDS):
        batches.append(world.batch(1, idle_ttl=60, closed=bool(number % 2))[0].batch_id)
        world.clock.advance(10_000)
    world.clock.advance(HOUR)
    ended: list[int] = []

    for _ in batches:
        world.at("batches.end", "after", lambda: world.clock.advance(1_000))
        assert world.fresh().reap(stop_at=world.clock.at + 1_000).more is (len(ended) + 1 < len(batches))
        ended.append(world.memory.batches.changes[-1][1].batch_id)

    assert ended == batches


class Poison(Exception):
    """Nobody has foreseen this."""


class TestFailure:
    """One batch cannot be handled."""

    @pytest.fixture
    def poison(self, world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
        """Makes the tree or the row of some batches unreadable."""

        def poison(*batches: Batch, call: str = "words.read_tallied") -> None:
            poisoned = {batch.batch_id for batch in batches}
            store, _, name = call.partition(".")
            read = getattr(getattr(world.ports, store), name)

            def reading(keys: Collection[Any]) -> object:
                if poisoned & {getattr(key, "batch_id", key) for key in keys}:
                    raise Poison
                return read(keys)

            monkeypatch.setattr(getattr(world.ports, store), name, reading)

        return poison

    @pytest.mark.parametrize("call", ["words.read_tallied", "batches.read"])
    def test_is_reported_and_harms_no_other(self, world, poison, monkeypatch, call):
        poisoned, *others = [world.batch(1, closed=True)[0] for _ in range(20)]
        world.clock.advance(8 * DAY)
        reports: list[tuple[int, Exception]] = []

        poison(poisoned, call=call)
        reaped = world.fresh().reap(report=lambda *told: reports.append(told))
        monkeypatch.undo()

        assert reaped == Reaped(seen=20, orphaned=19, stuck=19, failed=1)
        assert [(batch_id, type(error)) for batch_id, error in reports] == [(poisoned.batch_id, Poison)]
        assert {world.row(batch).state for batch in others} == {State.ORPHANED}
        assert world.row(poisoned).state is State.CLOSED

    def test_is_raised_at_the_end_of_the_run_where_nobody_takes_reports(self, world, poison):
        first, second, last = [world.batch(1, closed=True)[0] for _ in range(3)]
        world.clock.advance(8 * DAY)
        poison(first, second)

        with pytest.raises(ExceptionGroup, match="2 of the batches that are due") as raised:
            world.fresh().reap()

        assert [type(error) for error in raised.value.exceptions] == [Poison, Poison]
        assert world.row(last).state is State.ORPHANED

    def test_comes_again_in_the_next_run_behind_all_others(self, world, poison, monkeypatch):
        """Batches that always fail do not use up the time of those that do not."""
        poisoned = [world.batch(1, closed=True)[0] for _ in range(10)]
        world.clock.advance(DAY)
        others = [world.batch(1, closed=True)[0] for _ in range(10)]
        world.clock.advance(8 * DAY)
        failed: list[int] = []

        def report(batch_id: int, _: Exception) -> None:
            failed.append(batch_id)
            world.clock.advance(1_000)

        poison(*poisoned)
        first = world.fresh().reap(stop_at=world.clock.at + 10_000, report=report)
        second = world.fresh().reap(stop_at=world.clock.at + 10_000, report=report)
        monkeypatch.undo()
        third = world.fresh().reap()

        assert first == Reaped(seen=10, failed=10, more=True)
        assert second == Reaped(seen=20, failed=10, orphaned=10, stuck=10)
        assert {world.row(batch).state for batch in others} == {State.ORPHANED}
        assert sorted(failed) == sorted([batch.batch_id for batch in poisoned] * 2)
        assert third.orphaned == 10
