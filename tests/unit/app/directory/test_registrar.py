"""The registrar: what it drops and why, and how its runs share the work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fanin.app.directory import registrar
from fanin.app.directory.registrar import Registrar, Swept
from fanin.app.directory.service import TOPIC_PREFIX, TOPICS, DirectoryService
from fanin.domain.directory import Left, Register
from fanin.errors import InvalidRequest, NotRegistered, Throttled
from tests.unit.app.conftest import Crash, World

SECOND = 1_000
HOUR = 3_600_000
DAY = 24 * HOUR


@pytest.fixture
def directory(world: World) -> DirectoryService:
    for url in ("q1", "q2"):
        world.memory.channels.queues[url] = []
    return DirectoryService(world.ports)


@pytest.fixture
def page_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make pages so small."""
    return lambda size: monkeypatch.setattr(registrar, "PAGE", size)


def fill(directory: DirectoryService, **topics: int) -> None:
    """Register so many instances in each topic, for an hour."""
    for topic, count in topics.items():
        for i in range(count):
            directory.register(Register(topic, f"{i}", "q1", lease=3_600))


def drops(world: World) -> list[tuple[str, str]]:
    """The registrations that were dropped, and why."""
    return [
        (f"{namespace.removeprefix(TOPIC_PREFIX)}/{new.name}", new.value["left"])
        for namespace, _, new in world.memory.directory.changes
        if new is not None and "left" in new.value
    ]


def sweep(world: World, **settings: int) -> Swept:
    """One run of a process that starts now."""
    return Registrar(world.ports, **settings).sweep()


def test_its_place_is_stored_where_every_version_looks_for_it(
    world: World, directory: DirectoryService, page_of: Callable[[int], None]
) -> None:
    page_of(2)
    fill(directory, cars=3)

    assert sweep(world, budget=1).more

    row = world.ports.directory.read("registrar", ["place"])["place"]
    assert row.value.keys() >= {"topics", "topic", "rows"}
    assert row.value["topic"] == "cars"

    # And a place without the name of the registration that was tried last is where a run goes on
    before = {name: row.value[name] for name in ("topics", "topic", "rows")}
    world.ports.directory.put("registrar", "place", before, expires_at=row.expires_at)
    assert sweep(world) == Swept(seen=1)


def test_a_place_that_another_version_noted_is_forgotten(world: World, directory: DirectoryService) -> None:
    directory.register(Register("a", "one", "q1"))
    until = world.clock.at // 1000 + 60
    for noted in ({"cursor": None}, {"topics": None, "topic": "a", "rows": "nonsense"}):
        world.ports.directory.put("registrar", "place", noted, expires_at=until)
        assert sweep(world) == Swept(seen=1)


class TestDrop:
    def test_is_due_when_the_lease_is_over_and_no_sooner(
        self, world: World, directory: DirectoryService
    ) -> None:
        registration = directory.register(Register("cars", "a", "q1", lease=60))

        world.clock.at = registration.until - 1
        assert sweep(world) == Swept(seen=1)
        world.clock.advance(1)
        assert sweep(world) == Swept(seen=1, over=1)
        assert drops(world) == [("cars/a", Left.LEASE_OVER)]

    def test_is_due_when_the_queue_is_gone(self, world: World, directory: DirectoryService) -> None:
        # Given two on a queue that goes, of which one has a lease that is over
        directory.register(Register("cars", "a", "q1"))
        directory.register(Register("cars", "b", "q2"))
        directory.register(Register("cars", "over", "q2", lease=60))
        del world.memory.channels.queues["q2"]
        world.clock.advance(60 * SECOND)

        assert sweep(world) == Swept(seen=3, over=1, gone=1)
        assert drops(world) == [("cars/b", Left.QUEUE_GONE), ("cars/over", Left.LEASE_OVER)]
        with pytest.raises(NotRegistered):
            directory.get("cars", "b")

    def test_is_made_once_by_two_runs_at_the_same_time(
        self, world: World, directory: DirectoryService
    ) -> None:
        # Given a run that is overtaken by another when it is about to drop the first of three
        fill(directory, cars=3)
        world.clock.advance(HOUR)
        others: list[Swept] = []
        world.at("directory.put", "before", lambda: others.append(sweep(world)))

        mine = sweep(world)

        assert (mine, others) == (Swept(seen=3), [Swept(seen=3, over=3)])
        assert sweep(world) == Swept()
        assert len(drops(world)) == 3

    def test_leaves_the_registration_of_who_moved_to_another_queue_meanwhile(
        self, world: World, directory: DirectoryService
    ) -> None:
        directory.register(Register("cars", "a", "q2"))
        del world.memory.channels.queues["q2"]
        world.at("directory.put", "before", lambda: directory.register(Register("cars", "a", "q1")))

        assert sweep(world) == Swept(seen=1)
        assert directory.get("cars", "a").channel == "q1"


def test_a_queue_that_was_found_before_is_looked_at_without_patience(
    world: World, directory: DirectoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(directory, cars=1)
    asked: list[bool] = []
    resolve = world.memory.channels.resolve

    def look(channel: str, *, new: bool = True) -> str:
        asked.append(new)
        return resolve(channel, new=new)

    monkeypatch.setattr(world.memory.channels, "resolve", look)
    sweep(world)
    directory.register(Register("cars", "b", "q2"))

    assert asked == [False, True]


def test_a_run_asks_once_for_a_queue_that_many_share(
    world: World, directory: DirectoryService, page_of: Callable[[int], None]
) -> None:
    # Given a queue that goes after the first of two pages of those who share it
    page_of(1)
    fill(directory, cars=2)
    world.at("directory.page", "before", lambda: None)  # the topics
    world.at("directory.page", "before", lambda: None)  # the first page
    world.at("directory.page", "before", world.memory.channels.queues.clear)

    # Then this run has its answer already, and the next one asks again
    assert sweep(world) == Swept(seen=2)
    assert world.happened
    assert sweep(world) == Swept(seen=2, gone=2)


class TestRuns:
    def test_end_with_the_page_that_uses_up_their_budget(
        self, world: World, directory: DirectoryService, page_of: Callable[[int], None]
    ) -> None:
        # Given a topic that is larger than a page, between two others, whose leases are all over
        page_of(3)
        fill(directory, a=1, b=7, c=1)
        world.clock.advance(HOUR)

        runs = [sweep(world, budget=4) for _ in range(3)]

        # Then all are looked at once; and a run that reaches the end with its budget leaves nothing
        assert runs == [Swept(4, 4, more=True), Swept(4, 4, more=True), Swept(1, 1)]
        fill(directory, d=4)
        assert sweep(world, budget=4) == Swept(seen=4)
        assert len(drops(world)) == 9

    def test_begin_no_page_when_their_time_is_up(self, world: World, directory: DirectoryService) -> None:
        # Given a run that takes two minutes for each topic
        fill(directory, a=1, b=1, c=1)
        for _ in range(3):
            world.at("directory.put", "after", lambda: world.clock.advance(120 * SECOND))

        assert sweep(world) == Swept(seen=2, more=True)
        assert sweep(world) == Swept(seen=1)

    def test_begin_anew_after_the_last_topic(self, world: World, directory: DirectoryService) -> None:
        fill(directory, a=1, b=1)

        assert [sweep(world, budget=1).more for _ in range(4)] == [True, False, True, False]

    def test_see_what_was_registered_behind_the_place_of_the_one_before(
        self, world: World, directory: DirectoryService, page_of: Callable[[int], None]
    ) -> None:
        page_of(2)
        fill(directory, cars=2, dogs=1)
        assert sweep(world, budget=1) == Swept(seen=2, more=True)

        fill(directory, cats=1, eels=1)

        assert sweep(world) == Swept(seen=3)

    def test_go_on_with_the_next_topic_when_the_one_they_were_in_is_no_longer_listed(
        self, world: World, directory: DirectoryService, page_of: Callable[[int], None]
    ) -> None:
        # Given a run that ended within a topic
        page_of(2)
        fill(directory, cars=3, dogs=2)
        assert sweep(world, budget=1) == Swept(seen=2, more=True)
        world.ports.directory.delete(TOPICS, "cars")

        assert sweep(world) == Swept(seen=2)

    @pytest.mark.parametrize(("age", "seen"), [(30 * DAY - 1, 1), (30 * DAY, 2)])
    def test_forget_the_place_of_one_that_was_a_month_ago(
        self, world: World, directory: DirectoryService, age: int, seen: int
    ) -> None:
        fill(directory, a=1, b=1)
        assert sweep(world, budget=1).more

        world.clock.advance(age)
        fill(directory, a=1, b=1)

        assert sweep(world).seen == seen

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_that_die_are_repeated_from_the_place_they_noted_last(
        self, world: World, directory: DirectoryService, page_of: Callable[[int], None], moment: str
    ) -> None:
        # Given a run that dies when it notes its place after the second page
        page_of(1)
        fill(directory, cars=3)
        world.at("directory.put", moment, lambda: None)
        world.crash_at("directory.put", moment)
        with pytest.raises(Crash):
            sweep(world)

        assert sweep(world) == Swept(seen=2 if moment == "before" else 1)


class TestFailure:
    def test_of_one_registration_leaves_it_to_the_next_run_and_holds_up_no_other(
        self, world: World, directory: DirectoryService
    ) -> None:
        # Given three leases that are over, and a store that is busy at the second drop
        fill(directory, cars=3)
        world.clock.advance(HOUR)

        def refuse() -> None:
            raise Throttled("busy")

        world.at("directory.put", "before", lambda: None)
        world.at("directory.put", "before", refuse)
        assert sweep(world) == Swept(seen=3, over=2, failed=1)

        assert sweep(world) == Swept(seen=1, over=1)
        assert [name for name, _ in drops(world)] == ["cars/0", "cars/2", "cars/1"]

    def test_is_reported_with_its_place(self, world: World, directory: DirectoryService) -> None:
        # Given a row that nobody can read, and a queue that cannot be looked at
        fill(directory, cars=1)
        world.ports.directory.put(TOPIC_PREFIX + "cars", "a", {"left": "who knows"}, expires_at=2**40)
        directory.register(Register("dogs", "b", "q2"))
        resolve = world.memory.channels.resolve

        def surprise(channel: str, **options: bool) -> str:
            if channel == "q2":
                raise InvalidRequest("SQS does not accept the channel")
            return resolve(channel, **options)

        world.memory.channels.resolve = surprise  # type: ignore[method-assign]
        reports: list[tuple[str, str]] = []

        swept = Registrar(
            world.ports, report=lambda place, error: reports.append((place, type(error).__name__))
        ).sweep()

        assert swept == Swept(seen=3, failed=2)
        assert reports == [("cars/a", "ValueError"), ("dogs/b", "InvalidRequest")]
        assert directory.get("dogs", "b").channel == "q2"

    def test_of_a_page_skips_its_topic(self, world: World, directory: DirectoryService) -> None:
        fill(directory, bikes=1, cars=1)
        world.at("directory.page", "before", lambda: None)  # the topics

        def spoil() -> None:
            raise ValueError("a row that cannot be decoded")

        world.at("directory.page", "before", spoil)

        assert sweep(world) == Swept(seen=1, failed=1)

    def test_of_many_in_a_row_hides_none_of_those_behind_them(
        self, world: World, directory: DirectoryService
    ) -> None:
        # Given rows that nobody can read, and behind them leases that are over
        ill = 1_000
        for i in range(ill):
            world.ports.directory.put(TOPIC_PREFIX + "cars", f"-{i}", {}, expires_at=2**40)
        fill(directory, cars=12, dogs=2)
        world.clock.advance(HOUR)

        # Then the first run finds all of them
        assert sweep(world) == Swept(seen=ill + 14, over=14, failed=ill)

    def test_of_a_queue_is_met_once_and_reported_once_however_many_share_it(
        self, world: World, directory: DirectoryService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Given a queue that nobody can look at, which thirty share, and one who has another
        for i in range(30):
            directory.register(Register("cars", f"{i:02}", "q2"))
        directory.register(Register("cars", "last", "q1"))
        asked: list[str] = []
        reports: list[str] = []

        def busy(channel: str, *, new: bool = True) -> str:
            asked.append(channel)
            if channel == "q2":
                raise Throttled("busy")
            return channel

        monkeypatch.setattr(world.memory.channels, "resolve", busy)

        swept = Registrar(world.ports, report=lambda place, _: reports.append(place)).sweep()

        assert swept == Swept(seen=31, failed=30)
        assert asked == ["q2", "q1"]
        assert reports == ["cars/00"]

    def test_that_takes_long_ends_the_run_in_time_and_the_next_goes_on_behind_it(
        self, world: World, directory: DirectoryService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Given five queues, each of which is tried for a minute in vain
        for i in range(5):
            world.memory.channels.queues[f"slow{i}"] = []
            directory.register(Register("cars", f"{i}", f"slow{i}", lease=DAY // SECOND))
        asked: list[str] = []

        def slow(channel: str, *, new: bool = True) -> str:
            asked.append(channel)
            world.clock.advance(60 * SECOND)
            raise Throttled("busy")

        monkeypatch.setattr(world.memory.channels, "resolve", slow)

        runs = [sweep(world, turn_ms=120 * SECOND) for _ in range(3)]

        assert runs[:2] == [Swept(seen=2, failed=2, more=True)] * 2
        assert runs[2] == Swept(seen=1, failed=1)
        assert asked == [f"slow{i}" for i in range(5)]

    def test_that_takes_longer_than_a_run_may_still_lets_each_run_try_one(
        self, world: World, directory: DirectoryService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        directory.register(Register("cars", "a", "q1"))
        directory.register(Register("cars", "b", "q2"))
        asked: list[str] = []

        def slow(channel: str, *, new: bool = True) -> str:
            asked.append(channel)
            world.clock.advance(60 * SECOND)
            return channel

        monkeypatch.setattr(world.memory.channels, "resolve", slow)
        for _ in range(2):
            sweep(world, turn_ms=1)

        assert asked == ["q1", "q2"]
