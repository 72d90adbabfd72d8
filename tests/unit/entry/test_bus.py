"""Events of the bus: instances that come and go, and events to be routed."""

from __future__ import annotations

from typing import Any

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.directory.registrar import Swept
from fanin.app.services import Services
from fanin.domain.directory import PutRoute, Register
from fanin.entry import bus

PLACED = {"id": "e1", "source": "shop", "detail-type": "Placed", "detail": {}}


@pytest.fixture
def services(memory: Memory) -> Services:
    memory.channels.queues["q1"] = []
    return Services(memory.ports())


def created(**detail: str) -> dict[str, Any]:
    return {"id": "e7", "detail-type": names.INSTANCE_CREATED, "detail": detail}


def refused(_event: Any) -> None:
    pytest.fail("kept")


class TestFollowInstance:
    def test_an_instance_is_registered_when_created_and_leaves_when_destroyed(
        self, services: Services
    ) -> None:
        event = created(topic="cars", name="a", channel="q1")
        bus.follow_instance(event, services.directory, refused)
        assert [one.name for one in services.directory.members("cars")] == ["a"]
        gone = {**event, "detail-type": names.INSTANCE_DESTROYED}
        bus.follow_instance(gone, services.directory, refused)
        assert list(services.directory.members("cars")) == []

    @pytest.mark.parametrize(
        ("event", "code"),
        [
            (created(topic="cars"), "invalid-request"),
            (created(topic="cars", name="b", channel="elsewhere"), "channel-refused"),
        ],
    )
    def test_one_that_is_refused_is_logged_counted_and_parked(
        self, services: Services, measured, caplog, event: dict[str, Any], code: str
    ) -> None:
        parked: list[Any] = []
        bus.follow_instance(event, services.directory, parked.append)
        assert parked == [event]
        assert measured() == {names.METRIC_PARKED: [1.0]}
        (record,) = caplog.records
        assert (record.event_id, record.code) == ("e7", code)

    def test_other_errors_are_raised_so_that_the_event_is_delivered_again(self, services: Services) -> None:
        with pytest.raises(KeyError):
            bus.follow_instance({"id": "e1"}, services.directory, refused)


class TestRegistrarRun:
    def test_what_it_could_not_check_is_logged_with_its_place(self, caplog) -> None:
        bus.report_unchecked("cars/a", KeyError("channel"))
        (record,) = caplog.records
        assert record.place == "cars/a"
        assert record.exc_info is not None

    def test_a_run_that_checked_everything_succeeds_and_another_fails(self) -> None:
        bus.require_checked(Swept(seen=3, over=1, more=True))
        with pytest.raises(bus.Unchecked, match="2 registrations or topics could not be checked"):
            bus.require_checked(Swept(seen=3, failed=2))


class TestRoute:
    @pytest.fixture(autouse=True)
    def _a_route_to_one_instance(self, services: Services) -> None:
        services.directory.register(Register("cars", "a", "q1"))
        services.routing.put(PutRoute("orders", {"source": ["shop"]}, "cars"))

    def test_an_event_of_a_route_is_sent_on(self, services: Services, memory: Memory, measured) -> None:
        bus.route({"route": "orders", "event": PLACED}, services.routing, refused)
        assert len(memory.channels.queues["q1"]) == 1
        assert measured() == {names.METRIC_ROUTED: [1.0]}

    def test_an_event_that_a_route_matches_is_left_to_its_rule(
        self, services: Services, memory: Memory, measured
    ) -> None:
        bus.route(PLACED, services.routing, refused)
        assert memory.channels.queues["q1"] == []
        assert measured() == {}

    def test_an_event_that_no_route_matches_is_counted_and_kept_as_it_came(
        self, services: Services, measured
    ) -> None:
        kept: list[Any] = []
        stray = {**PLACED, "source": "other"}
        bus.route(stray, services.routing, kept.append)
        assert kept == [stray]
        assert measured() == {names.METRIC_UNROUTED: [1.0]}

    def test_an_event_that_nobody_accepts_is_kept_without_its_envelope(
        self, services: Services, memory: Memory, measured
    ) -> None:
        memory.channels.queues.clear()
        kept: list[Any] = []
        bus.route({"route": "orders", "event": PLACED}, services.routing, kept.append)
        assert kept == [PLACED]
        assert measured() == {names.METRIC_REFUSED: [1.0], names.METRIC_UNROUTED: [1.0]}
