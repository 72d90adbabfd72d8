"""The directory and routes over HTTPS do what they do directly."""

from __future__ import annotations

import pytest

from fanin import Tracker
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Services
from fanin.client.https.services import HttpsServices
from fanin.domain.directory import Register
from fanin.domain.routing import PutEvent, PutRoute
from fanin.errors import NotRegistered, RouteNotFound
from tests.unit.client.https.conftest import InProcessApi


@pytest.fixture
def memory() -> Memory:
    memory = Memory()
    memory.channels.queues["q1"] = []
    return memory


@pytest.fixture(params=["direct", "https"])
def tracker(request: pytest.FixtureRequest, memory: Memory) -> Tracker:
    ledger = LedgerService(memory.ports())
    if request.param == "direct":
        return Tracker(Services(ledger.ports))
    return Tracker(HttpsServices(InProcessApi(Services(ledger.ports)).client()))


def test_registrations(tracker: Tracker) -> None:
    directory = tracker.directory
    made = directory.register(Register("cars", "a", "q1", {"colour": "red"}, 60))
    directory.register(Register("cars", "b", "q1"))
    assert directory.get("cars", "a") == made
    assert directory.page("cars", attributes={"colour": "red"}).registrations == (made,)
    assert [one.name for one in directory.members("cars")] == ["a", "b"]
    assert directory.deregister("cars", "a")
    assert not directory.deregister("cars", "a")
    with pytest.raises(NotRegistered):
        directory.get("cars", "a")


def test_routes_and_events(tracker: Tracker, memory: Memory) -> None:
    routing = tracker.routing
    made = routing.put(PutRoute("orders", {"source": ["shop"]}, "cars"))
    assert routing.get("orders") == made
    assert routing.page().routes == (made,)
    assert routing.publish(PutEvent("shop", "Placed", {"correlation_id": "mine"})).correlation_id == "mine"
    assert [event.source for event in memory.events.published] == ["shop"]
    assert routing.delete("orders")
    with pytest.raises(RouteNotFound):
        routing.get("orders")
