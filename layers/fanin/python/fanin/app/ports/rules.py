"""What the use cases need of the bus's rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Rules(Protocol):
    """The bus's rules, one for each route: an event that matches the pattern reaches the router."""

    def matches(self, pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
        """Whether an event, as EventBridge delivers it, matches a pattern.

        Raises:
            InvalidRequest: the pattern is none that EventBridge takes.
        """
        ...

    def put(self, route: str, pattern: Mapping[str, Any]) -> None:
        """Make or change the rule of a route.

        Raises:
            InvalidRequest: the pattern is none that EventBridge takes.
            LimitReached: the bus has as many rules as it may have.
        """
        ...

    def delete(self, route: str) -> None:
        """Delete the rule of a route; none being there is no error."""
        ...
