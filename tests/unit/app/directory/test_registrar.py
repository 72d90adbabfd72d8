"""The registrar: whom it drops, and where it goes on."""

from __future__ import annotations

import pytest

from fanin import names
from fanin.app.directory import registrar
from fanin.app.directory.registrar import Registrar, Swept
from fanin.app.directory.service import DirectoryService
from fanin.domain.directory import Register
from tests.unit.app.conftest import Crash, World
from tests.unit.app.directory.conftest import announced

HOUR = 3_600_000


def test_the_registrar_drops_who_is_over_and_whose_queue_is_gone(
    world: World, directory: DirectoryService
) -> None:
    # Given one that is well, one whose lease runs out, and two on a queue that goes
    directory.register(Register("cars", "well", "q1", lease=7200))
    directory.register(Register("cars", "over", "q1", lease=60))
    directory.register(Register("bikes", "gone", "q2", lease=7200))
    directory.register(Register("cars", "gone", "q2", lease=7200))
    del world.memory.channels.queues["q2"]
    world.clock.advance(HOUR)
    announced(world, directory)
    # When the registrar comes by twice
    first, second = (Registrar(world.ports).sweep() for _ in range(2))
    # Then it drops them once, and the bus is told three times
    assert first == Swept(seen=4, over=1, gone=2)
    assert second == Swept(seen=1)
    assert [one.name for one in directory.members("cars")] == ["well"]
    assert announced(world, directory) == [names.INSTANCE_DEREGISTERED] * 3


def test_the_registrar_leaves_alone_who_came_back_while_it_looked(
    world: World, directory: DirectoryService
) -> None:
    directory.register(Register("cars", "a", "q1", lease=60))
    world.clock.advance(HOUR)
    world.at("directory.put", "before", lambda: directory.register(Register("cars", "a", "q1")))
    assert Registrar(world.ports).sweep() == Swept(seen=1)
    assert directory.get("cars", "a")


def test_a_run_ends_with_its_budget_and_the_next_goes_on(world: World, directory: DirectoryService) -> None:
    for topic in "abc":
        directory.register(Register(topic, "one", "q1", lease=60))
    world.clock.advance(HOUR)
    runs = [Registrar(world.ports, budget=2).sweep() for _ in range(2)]
    assert runs == [Swept(seen=2, over=2, more=True), Swept(seen=1, over=1)]
    assert Registrar(world.ports).sweep() == Swept()


@pytest.mark.parametrize("crash", [False, True])
def test_a_large_topic_is_looked_at_in_as_many_runs_as_it_needs(
    world: World, directory: DirectoryService, monkeypatch: pytest.MonkeyPatch, crash: bool
) -> None:
    # Given a topic of seven registrations that are over, between two others, and pages of three
    monkeypatch.setattr(registrar, "PAGE", 3)
    for topic, n in (("a", 1), ("b", 7), ("c", 1)):
        for i in range(n):
            directory.register(Register(topic, f"{i}", "q1", lease=60))
    world.clock.advance(HOUR)
    # When every run has time for two pages, and one dies before it notes its place
    runs: list[Swept] = []
    if crash:
        world.at("directory.put", "before", lambda: None)
        world.crash_at("directory.put", "before")
        with pytest.raises(Crash):
            Registrar(world.ports).sweep()
    while not runs or runs[-1].more:
        runs.append(Registrar(world.ports, budget=4).sweep())
    # Then all are looked at, and each is dropped once
    assert [run.seen for run in runs] == ([6, 2] if crash else [4, 4, 1])
    assert sum(run.over for run in runs) + crash == 9
    assert not list(directory.members("b"))


def test_a_run_begins_no_page_when_its_time_is_up(
    world: World, directory: DirectoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registrar, "PAGE", 1)
    for i in range(3):
        directory.register(Register("a", f"{i}", "q1", lease=86_400))
    world.at("directory.page", "before", lambda: None)
    world.at("directory.page", "before", lambda: world.clock.advance(240_000))
    assert Registrar(world.ports).sweep() == Swept(seen=1, more=True)
    assert Registrar(world.ports).sweep() == Swept(seen=2)


def test_a_place_that_another_version_noted_is_forgotten(world: World, directory: DirectoryService) -> None:
    directory.register(Register("a", "one", "q1"))
    until = world.clock.at // 1000 + 60
    for noted in ({"cursor": None}, {"topics": None, "topic": "a", "rows": "nonsense"}):
        world.ports.directory.put("registrar", "place", noted, expires_at=until)
        assert Registrar(world.ports).sweep() == Swept(seen=1)


def test_a_topic_is_listed_for_as_long_as_it_has_rows(world: World, directory: DirectoryService) -> None:
    # Given a registration that is kept alive for two months
    for _ in range(60):
        directory.register(Register("cars", "a", "q1", lease=2 * 86_400))
        world.clock.advance(86_400_000)
    # Then the registrar still finds it, also when its lease is over
    assert Registrar(world.ports).sweep().seen == 1
    world.clock.advance(86_400_000 + HOUR)
    assert Registrar(world.ports).sweep() == Swept(seen=1, over=1)
