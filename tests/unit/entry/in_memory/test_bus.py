"""The bus in memory: what is told, and whom a rule calls."""

from __future__ import annotations

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.ports.events import Event
from fanin.app.services import Services
from fanin.domain.directory import Register
from fanin.domain.routing import PutRoute
from fanin.entry.in_memory.bus import Bus
from fanin.entry.in_memory.sources import Dead

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
def dead() -> list[Dead]:
    return []


@pytest.fixture
def bus(memory: Memory, services: Services, dead: list[Dead]) -> Bus:
    return Bus(memory.rules, services, dead)


def tell(bus: Bus, event: Event) -> None:
    bus.pass_on(event)
    while bus.calls:
        bus.calls.pop(0)()


def of_others(detail_type: str = "Placed", **detail: object) -> Event:
    return Event("", detail_type, detail, AT, "shop")


def test_an_event_is_told_as_subscribers_get_it(bus: Bus) -> None:
    tell(bus, Event("7.complete", "Batch Completed", {"missing": (1, 2)}, AT))
    (told,) = bus.told
    assert told.id == "7.complete"
    assert told.detail == {"missing": [1, 2], "id": "7.complete"}
    assert not bus.unrouted


def test_an_event_without_an_id_gets_one(bus: Bus) -> None:
    tell(bus, of_others(n=1))
    tell(bus, of_others(n=2))
    first, second = bus.told
    assert first.id != second.id
    assert first.detail == {"n": 1}


def test_what_is_not_json_is_refused(bus: Bus) -> None:
    with pytest.raises(TypeError):
        bus.pass_on(of_others(at={1}))


def test_an_event_goes_to_the_routes_that_match(bus: Bus, memory: Memory, services: Services) -> None:
    services.directory.register(Register("desk", "north", "q"))
    services.routing.put(PutRoute("orders", {"detail": {"kind": ["order"]}}, "desk"))
    services.routing.put(PutRoute("all", {"source": ["shop"]}, "desk"))
    tell(bus, of_others(kind="order"))
    tell(bus, of_others(kind="note"))
    assert len(memory.channels.queues["q"]) == 3
    assert not bus.unrouted


def test_one_that_nobody_gets_is_unrouted(bus: Bus, services: Services) -> None:
    services.routing.put(PutRoute("orders", {"detail": {"kind": ["order"]}}, "empty topic"[:5]))
    tell(bus, of_others(kind="order"))
    tell(bus, of_others(kind="note"))
    assert [event.detail["kind"] for event in bus.unrouted] == ["order", "note"]


def test_instances_of_others_are_registered_and_dropped(
    bus: Bus, services: Services, dead: list[Dead]
) -> None:
    where = {"topic": "cars", "name": "a"}
    tell(bus, of_others(names.INSTANCE_CREATED, **where, channel="q"))
    assert services.directory.get("cars", "a").channel == "q"
    tell(bus, of_others(names.INSTANCE_DESTROYED, **where))
    assert not list(services.directory.members("cars"))
    tell(bus, of_others(names.INSTANCE_CREATED, **where, channel="no queue"))
    assert [one.where for one in dead] == ["registrar"]
    assert not bus.unrouted
