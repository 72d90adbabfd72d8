"""What sets functions off in memory: records that come again, alarms, rates.

The bus in memory: what is told, and whom a rule calls.
"""

import pytest

from fanin import names
from fanin.adapters.memory import Accesses, FixedClock, Memory, MemoryTimers
from fanin.app.ports.events import Event
from fanin.app.services import Services
from fanin.domain.directory import PutRoute
from fanin.entry.in_memory.sources import PAUSE_MS, TRIES, Alarms, Bus, Dead, Feed, Rate


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
    def test_records_are_handed_on_in_order_and_once(self, clock, dead):
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
    def test_a_record_survives_the_end_of_the_process(self, clock, dead, crash):
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

    def test_one_that_fails_is_tried_again_and_holds_up_nothing(self, clock, dead):
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

    def test_one_that_always_fails_is_a_dead_letter(self, clock, dead):
        function = Function(a=99)
        feed = Feed("f", ["a"], function, clock, dead)
        exhaust(feed)
        while (at := feed.due()) is not None:
            clock.at = at
            exhaust(feed)
        assert function.seen == ["a"] * TRIES
        assert dead == [Dead("f", "a")]


class TestAlarms:
    def test_they_ring_in_their_order_and_not_before(self, clock, dead):
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

    def test_one_whose_timer_failed_rings_again(self, clock, dead):
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
    def test_it_calls_at_its_rate(self, clock):
        calls: list[int] = []
        rate = Rate("r", 10, lambda: calls.append(clock.at), clock, clock.now)
        for at in range(0, 35, 5):
            clock.at = at
            assert rate.run() is (at in {10, 20, 30})
        assert calls == [10, 20, 30]

    def test_calls_that_were_slept_through_are_one(self, clock):
        calls: list[int] = []
        rate = Rate("r", 10, lambda: calls.append(clock.at), clock, clock.now)
        clock.at = 47
        assert rate.run()
        assert not rate.run()
        clock.at = 50
        assert rate.run()
        assert calls == [47, 50]

    @pytest.mark.parametrize("needed", [None, 11])
    def test_calls_that_would_find_nothing_are_left_out(self, clock, needed):
        calls: list[int] = []
        rate = Rate("r", 10, lambda: calls.append(clock.at), clock, lambda: needed)
        clock.at = 10
        assert not rate.run()
        clock.at = 20
        assert rate.run() is (needed == 11)
        assert calls == ([20] if needed else [])

    @pytest.mark.parametrize(("needed", "due"), [(None, None), (0, 10), (10, 10), (11, 20), (95, 100)])
    def test_it_is_due_at_the_first_call_that_finds_something(self, clock, needed, due):
        assert Rate("r", 10, lambda: None, clock, lambda: needed).due() == due

    def test_one_that_fails_is_called_the_next_time(self, clock):
        calls: list[int] = []

        def call() -> None:
            calls.append(clock.at)
            raise RuntimeError

        rate = Rate("r", 10, call, clock, clock.now)
        for clock.at in (10, 20):
            assert rate.run()
        assert calls == [10, 20]


AT = 1_790_000_000_000


@pytest.fixture
def memory() -> Memory:
    memory = Memory()
    memory.channels.queues["q"] = []
    return memory


@pytest.fixture
def services(memory: Memory) -> Services:
    return Services(memory.ports())


@pytest.fixture
def bus(memory: Memory, services: Services, dead: list[Dead]) -> Bus:
    return Bus(memory.rules, services, dead)


def tell(bus: Bus, event: Event) -> None:
    bus.pass_on(event)
    while bus.calls:
        bus.calls.pop(0)()


def of_others(detail_type: str = "Placed", **detail: object) -> Event:
    return Event("", detail_type, detail, AT, "shop")


def test_an_event_is_told_as_subscribers_get_it(bus):
    tell(bus, Event("7.complete", "Batch Completed", {"missing": (1, 2)}, AT))
    (told,) = bus.told
    assert told.id == "7.complete"
    assert told.detail == {"missing": [1, 2], "id": "7.complete"}
    assert not bus.unrouted


def test_an_event_without_an_id_gets_one(bus):
    tell(bus, of_others(n=1))
    tell(bus, of_others(n=2))
    first, second = bus.told
    assert first.id != second.id
    assert first.detail == {"n": 1}


def test_what_is_not_json_is_refused(bus):
    with pytest.raises(TypeError):
        bus.pass_on(of_others(at={1}))


def test_one_that_nobody_gets_is_unrouted(bus, services):
    services.routing.put(PutRoute("orders", {"detail": {"kind": ["order"]}}, "empty topic"[:5]))
    tell(bus, of_others(kind="order"))
    tell(bus, of_others(kind="note"))
    assert [event.detail["kind"] for event in bus.unrouted] == ["order", "note"]


def test_instances_of_others_are_registered_and_dropped(bus, services, dead):
    where = {"topic": "cars", "name": "a"}
    tell(bus, of_others(names.INSTANCE_CREATED, **where, channel="q"))
    assert services.directory.get("cars", "a").channel == "q"
    tell(bus, of_others(names.INSTANCE_DESTROYED, **where))
    assert not list(services.directory.members("cars"))
    tell(bus, of_others(names.INSTANCE_CREATED, **where, channel="no queue"))
    assert [one.where for one in dead] == ["registrar"]
    assert not bus.unrouted
