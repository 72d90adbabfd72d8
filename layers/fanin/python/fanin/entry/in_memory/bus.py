"""The event bus in memory: the events that were published, and the rules that match them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fanin import names
from fanin.adapters.memory import MemoryRules
from fanin.adapters.memory.sqs.store import ACCOUNT, REGION
from fanin.app.ports.events import Event
from fanin.app.services import Services
from fanin.entry.in_memory.sources import Dead
from fanin.errors import ChannelRefused, InvalidRequest
from fanin.wire.json_types import encode_time

Call: TypeAlias = Callable[[], None]


class Bus:
    """Delivers events as the bus of a deployed service does, by its own rules and those of routes.

    Args:
        rules: the rules of routes.
        services: the use cases behind the router and the registrar.
        dead: collects events that the registrar cannot handle.

    Attributes:
        told: the events, in order, as subscribers get them.
        unrouted: events of others that no route sent on, or that nobody took.
        calls: the calls of functions that they trigger, in order.
    """

    def __init__(self, rules: MemoryRules, services: Services, dead: list[Dead]) -> None:
        self.told: list[Event] = []
        self.unrouted: list[Event] = []
        self.calls: list[Call] = []
        self._rules = rules
        self._services = services
        self._dead = dead

    def pass_on(self, event: Event) -> None:
        """Publish an event, and queue the calls that it triggers."""
        bus_id = f"event-{len(self.told) + 1}"
        detail = json.loads(json.dumps({**event.detail, "id": event.id} if event.id else event.detail))
        told = event._replace(id=event.id or bus_id, detail=detail)
        self.told.append(told)
        envelope = _envelope(told, bus_id)
        for route in self._rules.matching(envelope):
            self.calls.append(lambda route=route: self._route(route, told, envelope))  # type: ignore[misc]
        if told.detail_type in names.INSTANCE_EVENTS:
            self.calls.append(lambda: self._follow(told))
        elif told.source != names.EVENT_SOURCE:
            self.calls.append(lambda: self._stray(told, envelope))

    def _route(self, route: str, told: Event, envelope: Mapping[str, Any]) -> None:
        if self._services.routing.route(route, envelope).unrouted:
            self.unrouted.append(told)

    def _stray(self, told: Event, envelope: Mapping[str, Any]) -> None:
        if self._services.routing.stray(envelope).unrouted:
            self.unrouted.append(told)

    def _follow(self, told: Event) -> None:
        try:
            self._services.directory.follow(told.detail_type, told.detail)
        except (InvalidRequest, ChannelRefused):
            self._dead.append(Dead("registrar", told))


def _envelope(event: Event, bus_id: str) -> dict[str, Any]:
    """An event as EventBridge delivers it."""
    return {
        "version": "0",
        "id": bus_id,
        "detail-type": event.detail_type,
        "source": event.source,
        "account": ACCOUNT,
        "time": encode_time(event.time),
        "region": REGION,
        "resources": [],
        "detail": event.detail,
    }
