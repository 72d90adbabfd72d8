"""Events of the bus that are refused; ``tests/unit/functions`` has those that are followed and routed."""

from typing import Any

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.directory.registrar import Swept
from fanin.app.services import Services
from fanin.entry import bus


@pytest.fixture
def services(memory: Memory) -> Services:
    memory.channels.queues["q1"] = []
    return Services(memory.ports())


def created(**detail: str) -> dict[str, Any]:
    return {"id": "e7", "detail-type": names.INSTANCE_CREATED, "detail": detail}


def refused(_event: Any) -> None:
    pytest.fail("kept")


class TestFollowInstance:
    @pytest.mark.parametrize(
        ("event", "code"),
        [
            (created(topic="cars"), "invalid-request"),
            (created(topic="cars", name="b", channel="elsewhere"), "channel-refused"),
        ],
    )
    def test_one_that_is_refused_is_logged_counted_and_parked(self, services, measured, caplog, event, code):
        parked: list[Any] = []
        bus.follow_instance(event, services.directory, parked.append)
        assert parked == [event]
        assert measured() == {names.METRIC_PARKED: [1.0]}
        (record,) = caplog.records
        assert (record.event_id, record.code) == ("e7", code)

    def test_other_errors_are_raised_so_that_the_event_is_delivered_again(self, services):
        with pytest.raises(KeyError):
            bus.follow_instance({"id": "e1"}, services.directory, refused)


class TestRegistrarRun:
    def test_what_it_could_not_check_is_logged_with_its_place(self, caplog):
        bus.report_unchecked("cars/a", KeyError("channel"))
        (record,) = caplog.records
        assert record.place == "cars/a"
        assert record.exc_info is not None

    def test_a_run_that_checked_everything_succeeds_and_another_fails(self):
        bus.require_checked(Swept(seen=3, over=1, more=True))
        with pytest.raises(bus.Unchecked, match="2 registrations or topics could not be checked"):
            bus.require_checked(Swept(seen=3, failed=2))
