"""The calls of content-based routing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fanin.domain.routing import PutEvent, PutRoute, Route, Routes, Sent


class Routing(Protocol):
    """Content-based routing: which events go to the registrations of which topic."""

    def put(self, request: PutRoute) -> Route:
        """Make or change a route.

        Raises:
            InvalidRequest: a name is malformed, or EventBridge does not take the pattern.
            LimitReached: the bus has reached its limit of rules.
        """
        ...

    def delete(self, name: str) -> bool:
        """Delete a route; False if it did not exist, which is not an error."""
        ...

    def get(self, name: str) -> Route:
        """Read a route.

        Raises:
            RouteNotFound: no route has that name.
        """
        ...

    def page(self, *, cursor: str | None = None, limit: int = 100) -> Routes:
        """List the routes by name.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """
        ...

    def publish(self, event: PutEvent) -> Sent:
        """Put an event on the bus, with a correlation id in its detail.

        Raises:
            InvalidRequest: the source is reserved for fanin or AWS, the detail type is one that registers or
                deregisters instances, or a value is out of bounds.
            Throttled, ServiceUnavailable: the bus did not take it; try again.
        """
        ...
