"""The rules of the event bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Rules(Protocol):
    """One rule on the bus for each route: an event that matches its pattern reaches the router."""

    def matches(self, pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
        """Whether an event, as EventBridge delivers it, matches a pattern.

        Raises:
            InvalidRequest: EventBridge does not accept the pattern.
        """
        ...

    def put(self, route: str, pattern: Mapping[str, Any]) -> None:
        """Create or change the rule of a route.

        Raises:
            InvalidRequest: EventBridge does not accept the pattern.
            LimitReached: the bus has reached its limit of rules.
        """
        ...

    def delete(self, route: str) -> None:
        """Delete the rule of a route, if it has one."""
        ...
