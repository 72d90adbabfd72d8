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
