"""The event bus, and its rules."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol

from fanin import names
from fanin.wire.json_text import compact

_TIME: Final = 14
"""Bytes that EventBridge counts for the time of an event."""


class Event(NamedTuple):
    """An event for the bus.

    Attributes:
        id: deterministic, such as ``<account>/<region>/<bus>/<batch>.<state>``, so that a consumer can drop
            a repeat; empty for events of other sources.
        detail_type: such as ``Batch Completed``.
        detail: JSON object.
        time: when it happened, ms since the epoch.
        source: who publishes it.
    """

    id: str
    detail_type: str
    detail: Mapping[str, object]
    time: int
    source: str = names.EVENT_SOURCE

    @property
    def body(self) -> str:
        """The detail as it is sent, with the event's own id: the bus gives every entry a new one.

        It is JSON without ASCII escapes, which are longer.
        """
        return compact({**self.detail, "id": self.id} if self.id else self.detail)

    @property
    def size(self) -> int:
        """Bytes of the event as EventBridge counts them: detail, detail type, source and time."""
        return sum(len(part.encode()) for part in (self.body, self.detail_type, self.source)) + _TIME


class Events(Protocol):
    """The bus."""

    def publish(self, event: Event) -> str:
        """Put one event on the bus, and return the id that the bus gave it.

        Raises:
            Throttled, ServiceUnavailable: the bus did not take it.
        """


class Rules(Protocol):
    """One rule on the bus for each route: an event that matches its pattern reaches the router."""

    def check(self, pattern: Mapping[str, Any]) -> None:
        """Refuse a pattern for which no rule can be made, as far as that can be told before one is.

        Raises:
            InvalidRequest: it is not an event pattern.
            NotConfigured: there is no bus.
        """

    def put(self, route: str, pattern: Mapping[str, Any]) -> None:
        """Create or change the rule of a route.

        Raises:
            InvalidRequest: EventBridge does not accept the pattern.
            LimitReached: the bus has reached its limit of rules.
        """

    def delete(self, route: str) -> None:
        """Delete the rule of a route, if it has one."""
