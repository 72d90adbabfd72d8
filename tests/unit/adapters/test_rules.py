"""Rules of routes, as EventBridge is asked for them."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber

from fanin.adapters.rules import EventBridgeRules
from fanin.errors import AccessDenied, FaninError, InvalidRequest, LimitReached, NotConfigured, Throttled

PATTERN = {"source": ["shop"]}
ROUTER = "arn:aws:lambda:eu-west-1:000000000000:function:router"


@pytest.fixture
def client() -> Any:
    return boto3.client("events")


def missing() -> str:
    raise NotConfigured("the environment variable FANIN_ROUTER_ARN is not set")


@pytest.fixture
def rules(client: Any) -> EventBridgeRules:
    return EventBridgeRules(lambda: "bus", lambda: ROUTER, lambda: client)


def test_a_rule_hands_the_event_to_the_router_with_the_name_of_its_route(
    aws: Stubber, rules: EventBridgeRules
) -> None:
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
def test_a_rule_that_is_refused_says_why(
    aws: Stubber, rules: EventBridgeRules, code: str, expected: type[FaninError]
) -> None:
    aws.add_client_error("put_rule", code, "the reason", 400)
    with pytest.raises(expected):
        rules.put("orders", PATTERN)


def test_who_knows_no_router_makes_no_rules(client: Any, aws: Stubber) -> None:
    rules = EventBridgeRules(lambda: "bus", missing, lambda: client)
    with pytest.raises(NotConfigured, match="FANIN_ROUTER_ARN"):
        rules.put("orders", PATTERN)


def test_who_knows_no_bus_learns_it_before_a_pattern_is_taken(client: Any, aws: Stubber) -> None:
    rules = EventBridgeRules(missing, lambda: ROUTER, lambda: client)
    for call in (
        lambda: rules.check(PATTERN),
        lambda: rules.put("a", PATTERN),
        lambda: rules.delete("a"),
    ):
        with pytest.raises(NotConfigured):
            call()


def test_a_rule_goes_after_its_target_and_may_be_gone(aws: Stubber, rules: EventBridgeRules) -> None:
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


def test_a_pattern_is_checked_without_a_call(aws: Stubber, rules: EventBridgeRules) -> None:
    rules.check(PATTERN)
    rules.check({"source": [{"an operator of next year": "x"}]})
    with pytest.raises(InvalidRequest, match="event pattern"):
        rules.check({})


@pytest.mark.parametrize(
    ("code", "expected"),
    [("ConcurrentModificationException", Throttled), ("LimitExceededException", InvalidRequest)],
)
def test_a_target_that_was_not_set_is_an_error_although_the_answer_is_none(
    aws: Stubber, rules: EventBridgeRules, code: str, expected: type[FaninError]
) -> None:
    failed = {"TargetId": "router", "ErrorCode": code, "ErrorMessage": "why"}
    aws.add_response("put_rule", {})
    aws.add_response("put_targets", {"FailedEntryCount": 1, "FailedEntries": [failed]})
    with pytest.raises(expected):
        rules.put("orders", PATTERN)


def test_a_target_that_was_not_removed_keeps_its_rule_and_one_that_is_gone_does_not(
    aws: Stubber, rules: EventBridgeRules
) -> None:
    def failed(code: str) -> dict[str, Any]:
        return {"FailedEntryCount": 1, "FailedEntries": [{"TargetId": "router", "ErrorCode": code}]}

    aws.add_response("remove_targets", failed("ConcurrentModificationException"))
    with pytest.raises(Throttled):
        rules.delete("orders")
    aws.add_response("remove_targets", failed("ResourceNotFoundException"))
    aws.add_response("delete_rule", {})
    rules.delete("orders")
