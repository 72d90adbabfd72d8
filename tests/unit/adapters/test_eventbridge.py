"""Rules of routes, as EventBridge is asked for them."""

import json
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY

from fanin.adapters.eventbridge import EventBridgeEvents, EventBridgeRules
from fanin.app.ledger import announcing
from fanin.app.ports.events import Event
from fanin.domain.marks import Failure
from fanin.errors import (
    AccessDenied,
    InvalidRequest,
    LimitReached,
    NotConfigured,
    ServiceUnavailable,
    Throttled,
)
from tests.unit.app.conftest import World

EVENT = Event("7.complete", "Batch Completed", {"batch_id": 7, "user_key": "☂"}, 1_790_000_000_123)


@pytest.fixture
def client() -> Any:
    return boto3.client("events")


def test_an_event_carries_its_own_id(client, aws):
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


def test_the_largest_event_of_a_batch_fits_into_an_entry():
    # Given as many failures as an event lists, with reasons of four-byte characters, as long as it quotes
    world, bus = World(), Bus()
    batch, (group,) = world.batch(announcing.LISTED)
    world.ledger.mark(
        [Failure(item, "\N{ONCOMING AUTOMOBILE}" * announcing.QUOTED) for item in group]
    ).whole()
    world.ledger.close(batch.batch_id)
    world.ledger.announce(world.row(batch))
    (event,) = world.memory.events.published

    EventBridgeEvents(lambda: "bus", lambda: bus).publish(event)

    (detail,) = bus.details
    assert len(json.loads(detail)["failures"]) == 100
    assert 100 * 256 * 4 < len(detail.encode()) < 256 * 1024


@pytest.mark.parametrize(
    ("code", "expected"), [("ThrottlingException", Throttled), ("InternalFailure", ServiceUnavailable)]
)
def test_an_event_the_bus_did_not_take_is_an_error(client, aws, code, expected):
    aws.add_response("put_events", {"FailedEntryCount": 1, "Entries": [{"ErrorCode": code}]})

    with pytest.raises(expected):
        EventBridgeEvents(lambda: "bus", lambda: client).publish(EVENT)


def test_the_answer_is_the_id_that_the_bus_gave(client, aws):
    aws.add_response("put_events", {"FailedEntryCount": 0, "Entries": [{"EventId": "e-7"}]})

    assert EventBridgeEvents(lambda: "bus", lambda: client).publish(EVENT) == "e-7"


def test_an_event_of_somebody_else_keeps_its_source_and_gets_no_id(client, aws):
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


PATTERN = {"source": ["shop"]}
ROUTER = "arn:aws:lambda:eu-west-1:000000000000:function:router"


def missing() -> str:
    raise NotConfigured("the environment variable FANIN_ROUTER_ARN is not set")


@pytest.fixture
def rules(client: Any) -> EventBridgeRules:
    return EventBridgeRules(lambda: "bus", lambda: ROUTER, lambda: client)


def test_a_rule_hands_the_event_to_the_router_with_the_name_of_its_route(aws, rules):
    name = {"Name": "fanin-route-orders", "EventBusName": "bus"}
    template = '{"route": "orders", "event": <aws.events.event.json>}'
    target = {"Id": "router", "Arn": ROUTER, "InputTransformer": {"InputTemplate": template}}
    aws.add_response("put_rule", {}, {**name, "EventPattern": json.dumps(PATTERN)})
    aws.add_response(
        "put_targets",
        {"FailedEntryCount": 0},
        {"Rule": "fanin-route-orders", "EventBusName": "bus", "Targets": [target]},
    )
    rules.put("orders", PATTERN)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("InvalidEventPatternException", InvalidRequest),
        ("LimitExceededException", LimitReached),
        ("ThrottlingException", Throttled),
        ("AccessDeniedException", AccessDenied),
        ("ConcurrentModificationException", Throttled),
        ("ManagedRuleException", ClientError),
    ],
)
def test_a_rule_that_is_refused_says_why(aws, rules, code, expected):
    aws.add_client_error("put_rule", code, "the reason", 400)
    with pytest.raises(expected):
        rules.put("orders", PATTERN)


def test_who_knows_no_router_makes_no_rules(client, aws):
    rules = EventBridgeRules(lambda: "bus", missing, lambda: client)
    with pytest.raises(NotConfigured, match="FANIN_ROUTER_ARN"):
        rules.put("orders", PATTERN)


def test_who_knows_no_bus_learns_it_before_a_pattern_is_taken(client, aws):
    rules = EventBridgeRules(missing, lambda: ROUTER, lambda: client)
    for call in (lambda: rules.check(PATTERN), lambda: rules.put("a", PATTERN), lambda: rules.delete("a")):
        with pytest.raises(NotConfigured):
            call()


def test_a_rule_goes_after_its_target_and_may_be_gone(aws, rules):
    aws.add_response("remove_targets", {}, {"Rule": ANY, "EventBusName": "bus", "Ids": ["router"]})
    aws.add_response("delete_rule", {}, {"Name": "fanin-route-orders", "EventBusName": "bus"})
    rules.delete("orders")
    aws.add_client_error("remove_targets", "ResourceNotFoundException")
    rules.delete("orders")
    aws.add_client_error("remove_targets", "ValidationException", "name fails to satisfy the pattern", 400)
    rules.delete("a:b")
    aws.add_client_error("remove_targets", "ConcurrentModificationException")
    with pytest.raises(Throttled):
        rules.delete("orders")
    aws.add_client_error("remove_targets", "AccessDeniedException")
    with pytest.raises(AccessDenied):
        rules.delete("orders")


def test_a_pattern_is_checked_without_a_call(aws, rules):
    rules.check(PATTERN)
    rules.check({"source": [{"an operator of next year": "x"}]})
    with pytest.raises(InvalidRequest, match="event pattern"):
        rules.check({})


@pytest.mark.parametrize(
    ("code", "expected"),
    [("ConcurrentModificationException", Throttled), ("LimitExceededException", InvalidRequest)],
)
def test_a_target_that_was_not_set_is_an_error_although_the_answer_is_none(aws, rules, code, expected):
    failed = {"TargetId": "router", "ErrorCode": code, "ErrorMessage": "why"}
    aws.add_response("put_rule", {})
    aws.add_response("put_targets", {"FailedEntryCount": 1, "FailedEntries": [failed]})
    with pytest.raises(expected):
        rules.put("orders", PATTERN)


def test_a_target_that_was_not_removed_keeps_its_rule_and_one_that_is_gone_does_not(aws, rules):
    def failed(code: str) -> dict[str, Any]:
        return {"FailedEntryCount": 1, "FailedEntries": [{"TargetId": "router", "ErrorCode": code}]}

    aws.add_response("remove_targets", failed("ConcurrentModificationException"))
    with pytest.raises(Throttled):
        rules.delete("orders")
    aws.add_response("remove_targets", failed("ResourceNotFoundException"))
    aws.add_response("delete_rule", {})
    rules.delete("orders")
