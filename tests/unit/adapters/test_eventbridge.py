import json
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from fanin.adapters.eventbridge import EventBridgeEvents
from fanin.app.ports.events import Event
from fanin.errors import FaninError, ServiceUnavailable, Throttled

EVENT = Event("7.complete", "Batch Completed", {"batch_id": 7, "user_key": "☂"}, 1_790_000_000_123)


@pytest.fixture
def client() -> Any:
    return boto3.client("events")


def test_an_event_carries_its_own_id(client: Any, aws: Stubber) -> None:
    detail = json.dumps({"batch_id": 7, "user_key": "☂", "id": "7.complete"}, separators=(",", ":"))
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
