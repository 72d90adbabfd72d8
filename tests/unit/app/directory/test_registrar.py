"""The registrar: what it drops and why, and how its runs share the work."""

from collections.abc import Callable

import pytest

from fanin.app.directory import registrar
from fanin.app.directory.registrar import Registrar, Swept
from fanin.app.directory.service import TOPIC_PREFIX
from fanin.domain.directory import Left
from fanin.errors import InvalidRequest, NotRegistered, Throttled
from tests.unit.app.conftest import Crash
from tests.unit.app.directory.conftest import Town

SECOND = 1_000
HOUR = 3_600_000
DAY = 24 * HOUR


@pytest.fixture
def page_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make pages so small."""
    return lambda size: monkeypatch.setattr(registrar, "PAGE", size)


def fill(town: Town, **topics: int) -> None:
    """Register so many instances in each topic, for an hour."""
    for topic, count in topics.items():
        for i in range(count):
            town.register(topic, f"{i}", "q1", lease=3_600)


def drops(town: Town) -> list[tuple[str, str]]:
    """The registrations that were dropped, and why."""
    return [
        (f"{namespace.removeprefix(TOPIC_PREFIX)}/{new.name}", new.value["left"])
        for namespace, _, new in town.memory.directory.changes
        if new is not None and "left" in new.value
    ]


def sweep(town: Town, **settings: int) -> Swept:
    """One run of a process that starts now."""
    return Registrar(town.ports, **settings).sweep()


def test_a_place_that_cannot_be_read_is_forgotten(town):
    town.register("a", "one", "q1")
    until = town.clock.at // 1000 + 60
    for noted in ({"cursor": None}, {"topics": None, "topic": "a", "rows": "nonsense"}):
        town.ports.directory.put("registrar", "place", noted, expires_at=until)
        assert sweep(town) == Swept(seen=1)


class TestDrop:
    def test_is_due_when_the_lease_is_over_and_no_sooner(self, town):
        registration = town.register("cars", "a", "q1", lease=60)

        town.clock.at = registration.until - 1
        assert sweep(town) == Swept(seen=1)
        town.clock.advance(1)
        assert sweep(town) == Swept(seen=1, over=1)
        assert drops(town) == [("cars/a", Left.LEASE_OVER)]

    def test_is_made_once_by_two_runs_at_the_same_time(self, town):
        # Given a run that is overtaken by another when it is about to drop the first of three
        fill(town, cars=3)
        town.clock.advance(HOUR)
        others: list[Swept] = []
        town.at("directory.put", "before", lambda: others.append(sweep(town)))

        mine = sweep(town)

        assert (mine, others) == (Swept(seen=3), [Swept(seen=3, over=3)])
        assert sweep(town) == Swept()
        assert len(drops(town)) == 3

    def test_leaves_the_registration_of_who_moved_to_another_queue_meanwhile(self, town):
        town.register("cars", "a", "q2")
        del town.memory.channels.queues["q2"]
        town.at("directory.put", "before", lambda: town.register("cars", "a", "q1"))

        assert sweep(town) == Swept(seen=1)
        assert town.directory.get("cars", "a").channel == "q1"

    def test_is_due_when_the_queue_is_gone(self, town):
        # Given two on a queue that goes, of which one has a lease that is over
        town.register("cars", "a", "q1")
        town.register("cars", "b", "q2")
        town.register("cars", "over", "q2", lease=60)
        del town.memory.channels.queues["q2"]
        town.clock.advance(60 * SECOND)

        assert sweep(town) == Swept(seen=3, over=1, gone=1)
        assert drops(town) == [("cars/b", Left.QUEUE_GONE), ("cars/over", Left.LEASE_OVER)]
        with pytest.raises(NotRegistered):
            town.directory.get("cars", "b")


class TestRuns:
    def test_begin_anew_after_the_last_topic(self, town):
        fill(town, a=1, b=1)

        assert [sweep(town, budget=1).more for _ in range(4)] == [True, False, True, False]

    @pytest.mark.parametrize(("age", "seen"), [(30 * DAY - 1, 1), (30 * DAY, 2)])
    def test_forget_the_place_of_one_that_was_a_month_ago(self, town, age, seen):
        fill(town, a=1, b=1)
        assert sweep(town, budget=1).more

        town.clock.advance(age)
        fill(town, a=1, b=1)

        assert sweep(town).seen == seen

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_that_die_are_repeated_from_the_place_they_noted_last(self, town, page_of, moment):
        # Given a run that dies when it notes its place after the second page
        page_of(1)
        fill(town, cars=3)
        town.at("directory.put", moment, lambda: None)
        town.crash_at("directory.put", moment)
        with pytest.raises(Crash):
            sweep(town)

        assert sweep(town) == Swept(seen=2 if moment == "before" else 1)


class TestFailure:
    def test_of_one_registration_leaves_it_to_the_next_run_and_holds_up_no_other(self, town):
        # Given three leases that are over, and a store that is busy at the second drop
        fill(town, cars=3)
        town.clock.advance(HOUR)

        def refuse() -> None:
            raise Throttled("busy")

        town.at("directory.put", "before", lambda: None)
        town.at("directory.put", "before", refuse)
        assert sweep(town) == Swept(seen=3, over=2, failed=1)

        assert sweep(town) == Swept(seen=1, over=1)
        assert [name for name, _ in drops(town)] == ["cars/0", "cars/2", "cars/1"]

    def test_is_reported_with_its_place(self, town):
        # Given a row that nobody can read, and a queue that cannot be looked at
        fill(town, cars=1)
        town.ports.directory.put(TOPIC_PREFIX + "cars", "a", {"left": "who knows"}, expires_at=2**40)
        town.register("dogs", "b", "q2")
        resolve = town.memory.channels.resolve

        def surprise(channel: str, **options: bool) -> str:
            if channel == "q2":
                raise InvalidRequest("SQS does not accept the channel")
            return resolve(channel, **options)

        town.memory.channels.resolve = surprise
        reports: list[tuple[str, str]] = []

        swept = Registrar(
            town.ports, report=lambda place, error: reports.append((place, type(error).__name__))
        ).sweep()

        assert swept == Swept(seen=3, failed=2)
        assert reports == [("cars/a", "ValueError"), ("dogs/b", "InvalidRequest")]
        assert town.directory.get("dogs", "b").channel == "q2"

    def test_of_a_page_skips_its_topic(self, town):
        fill(town, bikes=1, cars=1)
        town.at("directory.page", "before", lambda: None)  # the topics

        def spoil() -> None:
            raise ValueError("a row that cannot be decoded")

        town.at("directory.page", "before", spoil)

        assert sweep(town) == Swept(seen=1, failed=1)

    def test_of_a_queue_is_met_once_and_reported_once_however_many_share_it(self, town, monkeypatch):
        # Given a queue that nobody can look at, which thirty share, and one who has another
        for i in range(30):
            town.register("cars", f"{i:02}", "q2")
        town.register("cars", "last", "q1")
        asked: list[str] = []
        reports: list[str] = []

        def busy(channel: str, *, new: bool = True) -> str:
            asked.append(channel)
            if channel == "q2":
                raise Throttled("busy")
            return channel

        monkeypatch.setattr(town.memory.channels, "resolve", busy)

        swept = Registrar(town.ports, report=lambda place, _: reports.append(place)).sweep()

        assert swept == Swept(seen=31, failed=30)
        assert asked == ["q2", "q1"]
        assert reports == ["cars/00"]

    def test_that_takes_long_ends_the_run_in_time_and_the_next_goes_on_behind_it(self, town, monkeypatch):
        # Given three queues, each of which is tried for a minute in vain
        for i in range(3):
            town.memory.channels.queues[f"slow{i}"] = []
            town.register("cars", f"{i}", f"slow{i}", lease=DAY // SECOND)
        asked: list[str] = []

        def slow(channel: str, *, new: bool = True) -> str:
            asked.append(channel)
            town.clock.advance(60 * SECOND)
            raise Throttled("busy")

        monkeypatch.setattr(town.memory.channels, "resolve", slow)
        # Then each run tries one, also if it has less time than that takes
        runs = [sweep(town, turn_ms=turn) for turn in (60 * SECOND, 1, 1, 1)]

        assert runs == [Swept(seen=1, failed=1, more=True)] * 3 + [Swept()]
        assert asked == [f"slow{i}" for i in range(3)]


def test_a_queue_that_was_found_before_is_looked_at_without_patience(town, monkeypatch):
    fill(town, cars=1)
    asked: list[bool] = []
    resolve = town.memory.channels.resolve

    def look(channel: str, *, new: bool = True) -> str:
        asked.append(new)
        return resolve(channel, new=new)

    monkeypatch.setattr(town.memory.channels, "resolve", look)
    sweep(town)
    town.register("cars", "b", "q2")

    assert asked == [False, True]
