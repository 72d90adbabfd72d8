"""Rules on an EventBridge bus: one for each route, which sends what matches to the router function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from fanin import names
from fanin.adapters.aws import client_factory, error_code, translated
from fanin.errors import FaninError, InvalidRequest, LimitReached, NotConfigured, Throttled

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

_TARGET: Final = "router"
_INVALID: Final = {"InvalidEventPatternException", "ValidationException"}
_GONE: Final = "ResourceNotFoundException"
_FULL: Final = "LimitExceededException"
_BUSY: Final = "ConcurrentModificationException"
# What EventBridge asks of an event that is held against a pattern.
_ENVELOPE: Final[Mapping[str, Any]] = {
    "id": "0",
    "account": "000000000000",
    "source": "fanin",
    "time": "2026-01-01T00:00:00Z",
    "region": "eu-west-1",
    "resources": [],
    "detail-type": "fanin",
    "detail": {},
}


class EventBridgeRules:
    """A ``Rules``.

    Args:
        bus: its name.
        router_arn: the function that a matching event reaches; None where no rules are made.
        client: makes the client, at the first call.
    """

    def __init__(
        self, bus: str, router_arn: str | None, client: Callable[[], EventBridgeClient] | None = None
    ) -> None:
        self._bus = bus
        self._router_arn = router_arn
        self._make_client = client or client_factory("events")

    @cached_property
    def _client(self) -> EventBridgeClient:
        with translated():
            return self._make_client()

    def matches(self, pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
        with translated():
            try:
                answer = self._client.test_event_pattern(
                    EventPattern=json.dumps(pattern), Event=json.dumps({**_ENVELOPE, **event})
                )
            except ClientError as error:
                if refusal := _refusal(error):
                    raise refusal from error
                raise
        return answer["Result"]

    def put(self, route: str, pattern: Mapping[str, Any]) -> None:
        if self._router_arn is None:
            raise NotConfigured(f"the environment variable {names.ENV_ROUTER_ARN} is not set")
        rule = names.ROUTE_RULE + route
        # The router's permission names these rules, so the target needs no role.
        template = f'{{"route": "{route}", "event": <aws.events.event.json>}}'
        with translated():
            try:
                self._client.put_rule(Name=rule, EventBusName=self._bus, EventPattern=json.dumps(pattern))
                self._client.put_targets(
                    Rule=rule,
                    EventBusName=self._bus,
                    Targets=[
                        {
                            "Id": _TARGET,
                            "Arn": self._router_arn,
                            "InputTransformer": {"InputTemplate": template},
                        }
                    ],
                )
            except ClientError as error:
                if refusal := _refusal(error):
                    raise refusal from error
                raise

    def delete(self, route: str) -> None:
        rule = names.ROUTE_RULE + route
        with translated():
            try:
                self._client.remove_targets(Rule=rule, EventBusName=self._bus, Ids=[_TARGET])
                self._client.delete_rule(Name=rule, EventBusName=self._bus)
            except ClientError as error:
                if error_code(error) != _GONE:
                    raise


def _refusal(error: ClientError) -> FaninError | None:
    if error_code(error) in _INVALID:
        said = error.response.get("Error", {}).get("Message", "")
        return InvalidRequest(f"EventBridge does not take this event pattern: {said[:300]}")
    if error_code(error) == _FULL:
        return LimitReached("the bus has as many rules as it may have; delete a route, or raise the quota")
    if error_code(error) == _BUSY:
        return Throttled("the rule is being changed by others; try again", retry_after=1)
    return None
