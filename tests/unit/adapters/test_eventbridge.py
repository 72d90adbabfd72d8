import json
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from fanin.adapters.eventbridge import EventBridgeEvents
from fanin.app.ledger import end_events
from fanin.app.ports.events import Event
from fanin.domain.marks import Failure
from fanin.errors import FaninError, ServiceUnavailable, Throttled
from tests.unit.app.conftest import World

EVENT = Event("7.complete", "Batch Completed", {"batch_id": 7, "user_key": "☂"}, 1_790_000_000_123)


@pytest.fixture
def client() -> Any:
    return boto3.client("events")


def test_an_event_carries_its_own_id(client: Any, aws: Stubber) -> None:
    detail = json.dumps(
        {"batch_id": 7, "user_key": "☂", "id": "7.complete"}, ensure_ascii=False, separators=(",", ":")
    )
    entry = {
        "EventBusName": "bus",
        "Source": "fanin",
        "DetailType": "Batch Completed",
        "Detail": detail,
        "Time": datetime(2026, 9, 21, 14, 13, 20, 123_000, UTC),
    }
    aws.add_response(
        "put_events", {"FailedEntryCount": 0, "Entries": [{"EventId": "e"}]}, {"Entries": [entry]}
    )

    EventBridgeEvents(lambda: "bus", lambda: client).publish(EVENT)

    aws.assert_no_pending_responses()


class Bus:
    """Keeps the details of the events it is given."""

    def __init__(self) -> None:
        self.details: list[str] = []

    def put_events(self, *, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.details += [entry["Detail"] for entry in Entries]
        return {"FailedEntryCount": 0, "Entries": [{"EventId": "e"}]}


def test_the_largest_event_of_a_batch_fits_into_an_entry() -> None:
    # Given as many failures as an event lists, with reasons of four-byte characters, as long as it quotes
    world, bus = World(), Bus()
    batch, (group,) = world.batch(end_events.LISTED)
    world.ledger.mark(
        [Failure(item, "\N{ONCOMING AUTOMOBILE}" * end_events.QUOTED) for item in group]
    ).whole()
    world.ledger.close(batch.batch_id)
    world.ledger.announce(world.row(batch))
    (event,) = world.memory.events.published

    EventBridgeEvents(lambda: "bus", lambda: bus).publish(event)  # type: ignore[arg-type,return-value]

    (detail,) = bus.details
    assert len(json.loads(detail)["failures"]) == 100
    assert 100 * 256 * 4 < len(detail.encode()) < 256 * 1024


@pytest.mark.parametrize(
    ("code", "expected"), [("ThrottlingException", Throttled), ("InternalFailure", ServiceUnavailable)]
)
def test_an_event_the_bus_did_not_take_is_an_error(
    client: Any, aws: Stubber, code: str, expected: type[FaninError]
) -> None:
    aws.add_response("put_events", {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code}]})

    with pytest.raises(expected):
        EventBridgeEvents(lambda: "bus", lambda: client).publish(EVENT)


def test_the_answer_is_the_id_that_the_bus_gave(client: Any, aws: Stubber) -> None:
    aws.add_response("put_events", {"FailedEntryCount": 0, "Entries": [{"EventId": "e-7"}]})

    assert EventBridgeEvents(lambda: "bus", lambda: client).publish(EVENT) == "e-7"


def test_an_event_of_somebody_else_keeps_its_source_and_gets_no_id(client: Any, aws: Stubber) -> None:
    event = Event("", "sold", {"n": 7}, 1_790_000_000_000, source="shop")
    sent = {
        "EventBusName": "bus",
        "Source": "shop",
        "DetailType": "sold",
        "Detail": '{"n":7}',
        "Time": datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC),
    }
    aws.add_response(
        "put_events", {"FailedEntryCount": 0, "Entries": [{"EventId": "e"}]}, {"Entries": [sent]}
    )

    EventBridgeEvents(lambda: "bus", lambda: client).publish(event)
