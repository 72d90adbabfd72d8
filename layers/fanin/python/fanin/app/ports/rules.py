"""The rules of the event bus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Rules(Protocol):
    """One rule on the bus for each route: an event that matches its pattern reaches the router."""

    def check(self, pattern: Mapping[str, Any]) -> None:
        """Refuse a pattern for which no rule can be made, as far as that can be told before one is.

        Raises:
            InvalidRequest: it is not an event pattern.
            NotConfigured: there is no bus.
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
