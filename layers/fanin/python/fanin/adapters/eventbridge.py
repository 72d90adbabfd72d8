"""Events on an EventBridge bus, and its rules: one for each route, which sends events to the router."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from fanin import names
from fanin.adapters.aws import error_code, ignoring, once, translated
from fanin.app.ports.events import Event
from fanin.domain import patterns
from fanin.errors import FaninError, InvalidRequest, LimitReached, ServiceUnavailable, Throttled

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient


class EventBridgeEvents:
    """An ``Events`` on a bus.

    Args:
        bus: gives its name or ARN, at each call; what it raises is raised there.
        client: makes the client, when first used.
    """

    def __init__(self, bus: Callable[[], str], client: Callable[[], EventBridgeClient] | None = None) -> None:
        self._bus = bus
        self._client = once(client, "events")

    def publish(self, event: Event) -> str:
        entry: Any = {
            "EventBusName": self._bus(),
            "Source": event.source,
            "DetailType": event.detail_type,
            "Detail": event.body,
            "Time": datetime.fromtimestamp(event.time / 1000, UTC),
        }
        with translated():
            answer = self._client().put_events(Entries=[entry])
        if answer["FailedEntryCount"]:
            code = answer["Entries"][0].get("ErrorCode", "")
            if "Throttl" in code:
                raise Throttled(f"the bus throttles ({code}); try again later", retry_after=1)
            raise ServiceUnavailable(f"the bus did not accept event {event.id} ({code}); try again")
        return answer["Entries"][0]["EventId"]


_TARGET: Final = "router"
_INVALID: Final = {"InvalidEventPatternException", "ValidationException"}
_GONE: Final = "ResourceNotFoundException"
_FULL: Final = "LimitExceededException"
_BUSY: Final = "ConcurrentModificationException"


class EventBridgeRules:
    """A ``Rules``.

    Args:
        bus: gives its name, at each call; what it raises is raised there.
        router_arn: gives the function that a matching event reaches, when a rule is made; like ``bus``.
        client: makes the client, when first used.
    """

    def __init__(
        self,
        bus: Callable[[], str],
        router_arn: Callable[[], str],
        client: Callable[[], EventBridgeClient] | None = None,
    ) -> None:
        self._bus = bus
        self._router_arn = router_arn
        self._client = once(client, "events")

    def check(self, pattern: Mapping[str, Any]) -> None:
        _ = self._bus()  # routes need a bus: raise before the row of a route is stored
        patterns.check(pattern)

    def put(self, route: str, pattern: Mapping[str, Any]) -> None:
        rule, bus, router_arn = names.ROUTE_RULE + route, self._bus(), self._router_arn()
        # The router's resource policy allows these rules to call it, so the target needs no role.
        template = f'{{"route": "{route}", "event": <aws.events.event.json>}}'
        target: Any = {"Id": _TARGET, "Arn": router_arn, "InputTransformer": {"InputTemplate": template}}
        with translated(_refusal):
            self._client().put_rule(Name=rule, EventBusName=bus, EventPattern=json.dumps(pattern))
            _check_entries(self._client().put_targets(Rule=rule, EventBusName=bus, Targets=[target]))

    def delete(self, route: str) -> None:
        rule, bus = names.ROUTE_RULE + route, self._bus()
        # No rule can have a name that EventBridge does not accept.
        with translated(_refusal), ignoring(_INVALID | {_GONE}):
            _check_entries(self._client().remove_targets(Rule=rule, EventBusName=bus, Ids=[_TARGET]))
            self._client().delete_rule(Name=rule, EventBusName=bus)


def _refusal(error: ClientError) -> FaninError | None:
    if error_code(error) in _INVALID:
        said = error.response.get("Error", {}).get("Message", "")
        return InvalidRequest(f"EventBridge does not accept this event pattern: {said[:300]}")
    if error_code(error) == _FULL:
        return LimitReached("the bus has reached its limit of rules; delete a route, or raise the quota")
    if error_code(error) == _BUSY:
        return _busy()
    return None


def _check_entries(answer: Mapping[str, Any]) -> None:
    """Raise if EventBridge answered without an error but reports that it did not change the target.

    Raises:
        Throttled: other calls are changing the rule.
        InvalidRequest: EventBridge does not accept the target.
    """
    for failed in answer.get("FailedEntries", []):
        if failed.get("ErrorCode") == _BUSY:
            raise _busy()
        if failed.get("ErrorCode") != _GONE:
            raise InvalidRequest(
                f"EventBridge does not accept the target of the rule ({failed.get('ErrorCode')}):"
                f" {failed.get('ErrorMessage', '')[:300]}"
            )


def _busy() -> Throttled:
    return Throttled("other calls are changing the rule; try again", retry_after=1)
