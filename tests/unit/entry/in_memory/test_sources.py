"""What sets functions off in memory: records that come again, alarms, rates."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import Accesses, FixedClock, MemoryTimers
from fanin.entry.in_memory.sources import PAUSE_MS, TRIES, Alarms, Dead, Feed, Rate


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(0)


@pytest.fixture
def dead() -> list[Dead]:
    return []


class Function:
    """Fails on some records so many times."""

    def __init__(self, **failures: int) -> None:
        self.seen: list[str] = []
        self._failures = failures

    def __call__(self, record: str) -> None:
        self.seen.append(record)
        if self._failures.get(record, 0):
            self._failures[record] -= 1
            raise RuntimeError(record)


def exhaust(source: Feed[str]) -> None:
    while source.run():
        pass


class TestFeed:
    def test_records_are_handed_on_in_order_and_once(self, clock: FixedClock, dead: list[Dead]) -> None:
        arrivals, function = ["a", "b"], Function()
        feed = Feed("f", arrivals, function, clock, dead)
        exhaust(feed)
        arrivals.append("c")
        assert feed.due() == 0
        exhaust(feed)
        assert function.seen == ["a", "b", "c"]
        assert feed.due() is None
        assert not feed.run()

    @pytest.mark.parametrize("crash", [SystemExit, KeyboardInterrupt])
    def test_a_record_survives_the_end_of_the_process(
        self, clock: FixedClock, dead: list[Dead], crash: type[BaseException]
    ) -> None:
        # Given a function that dies twice
        seen: list[str] = []

        def die_twice(record: str) -> None:
            seen.append(record)
            if len(seen) < 3:
                raise crash

        feed = Feed("f", ["a"], die_twice, clock, dead)
        # When it is run, Then the crash goes on to the caller, and the record is not lost
        for _ in range(2):
            with pytest.raises(crash):
                feed.run()
            assert feed.due() == 0
        exhaust(feed)
        assert (seen, dead) == (["a", "a", "a"], [])

    def test_one_that_fails_is_tried_again_and_holds_up_nothing(
        self, clock: FixedClock, dead: list[Dead]
    ) -> None:
        # Given a record that fails twice
        function = Function(a=2)
        feed = Feed("f", ["a", "b"], function, clock, dead)
        # When there is nothing more to do, Then it was tried twice and the other once
        exhaust(feed)
        assert sorted(function.seen) == ["a", "a", "b"]
        # When the pause is over, Then it is tried a third time
        assert feed.due() == PAUSE_MS
        clock.advance(PAUSE_MS)
        exhaust(feed)
        assert function.seen.count("a") == 3
        assert (feed.due(), dead) == (None, [])

    def test_one_that_always_fails_is_a_dead_letter(self, clock: FixedClock, dead: list[Dead]) -> None:
        function = Function(a=99)
        feed = Feed("f", ["a"], function, clock, dead)
        exhaust(feed)
        while (at := feed.due()) is not None:
            clock.at = at
            exhaust(feed)
        assert function.seen == ["a"] * TRIES
        assert dead == [Dead("f", "a")]


class TestAlarms:
    def test_they_ring_in_their_order_and_not_before(self, clock: FixedClock, dead: list[Dead]) -> None:
        timers, rung = MemoryTimers(Accesses()), list[int]()
        alarms = Alarms(timers, rung.append, clock, dead)
        assert alarms.due() is None
        timers.set(1, 3_000)
        timers.set(2, 2_000)
        timers.set(3, 9_000)
        assert alarms.due() == 2_000
        assert not alarms.run()
        clock.at = 3_000
        while alarms.run():
            pass
        assert rung == [2, 1]
        assert alarms.due() == 9_000

    def test_one_whose_timer_failed_rings_again(self, clock: FixedClock, dead: list[Dead]) -> None:
        timers, rung = MemoryTimers(Accesses()), list[int]()

        def timer(batch_id: int) -> None:
            rung.append(batch_id)
            if len(rung) == 1:
                raise RuntimeError

        alarms = Alarms(timers, timer, clock, dead)
        timers.set(1, 0)
        while alarms.run():
            pass
        assert rung == [1, 1]


class TestRate:
    def test_it_calls_at_its_rate(self, clock: FixedClock) -> None:
        calls: list[int] = []
        rate = Rate("r", 10, lambda: calls.append(clock.at), clock, clock.now)
        for at in range(0, 35, 5):
            clock.at = at
            assert rate.run() is (at in {10, 20, 30})
        assert calls == [10, 20, 30]

    def test_calls_that_were_slept_through_are_one(self, clock: FixedClock) -> None:
        calls: list[int] = []
        rate = Rate("r", 10, lambda: calls.append(clock.at), clock, clock.now)
        clock.at = 47
        assert rate.run()
        assert not rate.run()
        clock.at = 50
        assert rate.run()
        assert calls == [47, 50]

    @pytest.mark.parametrize("needed", [None, 11])
    def test_calls_that_would_find_nothing_are_left_out(self, clock: FixedClock, needed: int | None) -> None:
        calls: list[int] = []
        rate = Rate("r", 10, lambda: calls.append(clock.at), clock, lambda: needed)
        clock.at = 10
        assert not rate.run()
        clock.at = 20
        assert rate.run() is (needed == 11)
        assert calls == ([20] if needed else [])

    @pytest.mark.parametrize(("needed", "due"), [(None, None), (0, 10), (10, 10), (11, 20), (95, 100)])
    def test_it_is_due_at_the_first_call_that_finds_something(
        self, clock: FixedClock, needed: int | None, due: int | None
    ) -> None:
        assert Rate("r", 10, lambda: None, clock, lambda: needed).due() == due

    def test_one_that_fails_is_called_the_next_time(self, clock: FixedClock) -> None:
        calls: list[int] = []

        def call() -> None:
            calls.append(clock.at)
            raise RuntimeError

        rate = Rate("r", 10, call, clock, clock.now)
        for clock.at in (10, 20):
            assert rate.run()
        assert calls == [10, 20]
