"""Routing: keeps routes, publishes events, and sends the events that match a route to its topic."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from fanin import names
from fanin.app.directory.service import DirectoryService
from fanin.app.fresh import Fresh
from fanin.app.ports.events import Event
from fanin.app.ports.queues import Outgoing
from fanin.app.ports.records import FOREVER, Record
from fanin.domain import directory, limits, patterns
from fanin.domain.directory import Policy, PutEvent, PutRoute, Registration, Route, Routes, Sent
from fanin.domain.paging import pages
from fanin.errors import FaninError, InvalidRequest, LimitReached, RouteNotFound
from fanin.wire.json_text import compact, json_text

MOST_WAITING: Final = 2_000
"""Names that fit into one record. If more queues are throttled at once, all get the event again."""
_KEPT: Final = 86_400
"""Seconds; EventBridge and Lambda give up an event after a day."""


NAMESPACE: Final = "routes"
_PAGE: Final = 100
_OURS: Final = ("fanin", "aws.")


class Routed(NamedTuple):
    """What the router did with an event.

    Attributes:
        sent: messages that queues accepted.
        refused: messages that their queues will never accept.
        unrouted: whether nobody got the event: it matches no route, or no queue accepted it.
    """

    sent: int = 0
    refused: int = 0
    unrouted: bool = False


class RoutingService:
    """Implements ``fanin.app.api.Routing`` over the directory.

    A route's row is the source of truth, and its rule on the bus follows. ``settle`` brings the rule in line
    with the row. It is called after each change of the row, and again from the table's stream, which repairs
    what a crash in between left.

    Args:
        registrations: they get the events; the ports of their service are used too.
    """

    def __init__(self, registrations: DirectoryService) -> None:
        self._ports = registrations.ports
        self._directory = registrations
        self._known: Fresh[str, tuple[Route, ...]] = Fresh(self._ports.clock)

    def put(self, request: PutRoute) -> Route:
        directory.check_name(request.name)
        limits.name("topic", request.topic, limits.MAX_NAME)
        limits.pairs("attributes", request.attributes)
        json_text("the pattern", request.pattern)
        if len(json.dumps(request.pattern)) > limits.MAX_PATTERN:  # as it is written into the rule
            most = limits.MAX_PATTERN
            raise InvalidRequest(f"the pattern is over {most} characters; split it into two routes")
        self._ports.rules.check(request.pattern)
        value = {
            "pattern": dict(request.pattern),
            "topic": request.topic,
            "policy": request.policy.value,
            "attributes": dict(request.attributes),
            "since": self._ports.clock.now(),
        }
        before = self._row(request.name)
        row, _ = self._ports.directory.put(NAMESPACE, request.name, value, expires_at=FOREVER)
        try:
            self.settle(request.name)
        except Exception as error:
            if row is not None and not _passes(error):
                self._take_back(row, before)
            raise
        return self.get(request.name)

    def _take_back(self, row: Record, before: Record | None) -> None:
        """Put the route back as it was before, unless it has changed meanwhile; its rule was refused."""
        place, version = (NAMESPACE, row.name), row.version
        if before is None:
            self._ports.directory.delete(*place, if_version=version)
        else:
            self._ports.directory.put(*place, before.value, expires_at=FOREVER, if_version=version)

    def delete(self, name: str) -> bool:
        limits.name("route", name, limits.MAX_ROUTE)
        was_there = self._row(name) is not None  # a repeated delete finds no row
        self._ports.directory.delete(NAMESPACE, name)
        self.settle(name)
        return was_there

    def get(self, name: str) -> Route:
        limits.name("route", name, limits.MAX_ROUTE)
        row = self._row(name)
        if row is None:
            raise RouteNotFound(f"there is no route {name!r}; list the routes, or check the name")
        return _route(row)

    def page(self, *, cursor: str | None = None, limit: int = 100) -> Routes:
        limits.whole("limit", limit, 1, limits.MAX_PAGE)
        page = self._ports.directory.page(NAMESPACE, cursor=cursor, limit=min(limit, limits.MAX_ROWS))
        routes = (_readable(row) for row in page.records)
        return Routes(tuple(route for route in routes if route is not None), page.cursor)

    def settle(self, name: str) -> None:
        """Bring the rule on the bus in line with the route's row; safe while others do the same.

        Raises:
            Throttled, ServiceUnavailable: EventBridge is overloaded; call again.
        """
        row = self._row(name)
        while True:
            if row is None:
                self._ports.rules.delete(name)
            else:
                self._ports.rules.put(name, row.value["pattern"])
            row, before = self._row(name), row
            if row == before:
                return

    def publish(self, event: PutEvent) -> Sent:
        limits.text("source", event.source, limits.MAX_SOURCE, least=1)
        limits.text("detail_type", event.detail_type, limits.MAX_DETAIL_TYPE, least=1)
        if event.source == _OURS[0] or event.source.startswith(_OURS[1]):
            raise InvalidRequest(f"source {event.source!r} is reserved; use a source of your own")
        if event.detail_type in names.INSTANCE_EVENTS:
            raise InvalidRequest(
                f"fanin acts on events of the type {event.detail_type!r}, which registers and deregisters:"
                " use the directory's calls, or put the event on the bus with EventBridge's PutEvents"
            )
        correlation_id = event.detail.get("correlation_id") or self._ports.random.bytes(16).hex()
        limits.text("detail.correlation_id", correlation_id, limits.MAX_USER_KEY, least=1)
        detail = {**event.detail, "correlation_id": correlation_id}
        if len(compact(detail, "detail").encode()) > limits.MAX_EVENT:
            raise InvalidRequest(
                f"the detail is over {limits.MAX_EVENT} bytes; store it elsewhere, and send a reference to it"
            )
        said = Event("", event.detail_type, detail, self._ports.clock.now(), event.source)
        return Sent(self._ports.events.publish(said), correlation_id)

    # Called by the router function.

    def route(self, name: str, event: Mapping[str, Any]) -> Routed:
        """Send a matching event to the registrations that its route selects.

        If some queues are throttled, a repeat sends only to those. Otherwise a repeat sends the same
        messages again, with the same correlation id; receivers must be idempotent.

        Args:
            name: of the route.
            event: as EventBridge delivers it.

        Raises:
            Throttled: a queue is overloaded; call again.
        """
        event_id = event.get("id")
        noted = isinstance(event_id, str) and 0 < len(event_id) <= limits.MAX_NAME
        where = (f"delivery/{event_id}", name) if noted else None
        found = self._ports.directory.read_all([(NAMESPACE, name), *([where] if where else [])])
        row = found.get((NAMESPACE, name))
        if row is None:
            return Routed()  # the route was deleted meanwhile, and its rule is about to be
        route, detail = _route(row), event.get("detail") or {}
        members = self._directory.members(route.topic, route.attributes)
        chosen, message = directory.choose(route.policy, members, detail), _message(event, detail)
        if route.policy is Policy.ALL:
            return self._every(chosen, message, where, found.get(where) if where else None)
        refused = 0
        for one in chosen:
            if self._ports.channels.send([message(one)]) == [None]:
                return Routed(1, refused)
            refused += 1
        return Routed(0, refused, unrouted=True)

    def stray(self, event: Mapping[str, Any]) -> Routed:
        """Check whether an event matches no route at all; if it matches one, that route's rule sends it."""
        return Routed(unrouted=not any(_may_match(route, event) for route in self._fresh()))

    def _every(
        self,
        chosen: Iterable[Registration],
        message: Callable[[Registration], Outgoing],
        where: tuple[str, str] | None,
        note: Record | None,
    ) -> Routed:
        """Send to all; a repeat, to those that were throttled before.

        Who waits is noted without a condition: if two runs route the same event at once and one note is lost,
        some queues get a copy more, which is allowed.

        Args:
            chosen: the registrations that get the event.
            message: makes that of each.
            where: namespace and name of the note; None for an event without an id.
            note: of the run before.
        """
        before: Mapping[str, Any] = note.value if note else {"sent": 0, "refused": 0}
        to = [one for one in chosen if note is None or one.name in before["to"]]
        offered = self._ports.channels.offer([message(one) for one in to])
        sent = before["sent"] + len(to) - len(offered.refused) - len(offered.waiting)
        refused = before["refused"] + len(offered.refused)
        waiting = sorted(to[place].name for place in offered.waiting)
        if where and 0 < len(waiting) < len(to) and len(waiting) <= MOST_WAITING:
            value = {"sent": sent, "refused": refused, "to": waiting}
            until = self._ports.clock.now() // 1000 + _KEPT
            self._ports.directory.put(*where, value, expires_at=until)
        offered.answers(len(to))
        return Routed(sent, refused, unrouted=not sent)

    def _fresh(self) -> tuple[Route, ...]:
        """All routes, read again after a while."""
        known = self._known.get(NAMESPACE)
        every = (route for page in pages(self.page, limit=_PAGE) for route in page.routes)
        return self._known.remember(NAMESPACE, tuple(every)) if known is None else known

    def _row(self, name: str) -> Record | None:
        return self._ports.directory.read(NAMESPACE, [name]).get(name)


def _passes(error: Exception) -> bool:
    """Whether the stream may still succeed in making a rule. Without room on the bus for it, it will not."""
    return isinstance(error, FaninError) and error.retryable and not isinstance(error, LimitReached)


def _may_match(route: Route, event: Mapping[str, Any]) -> bool:
    """Whether the rule of a route may send an event.

    It may if the pattern has an operator that is not known here. A pattern that EventBridge no longer accepts
    matches nothing.
    """
    with suppress(InvalidRequest):
        patterns.check(route.pattern)
        return patterns.matches(route.pattern, event) is not False
    return False


def _route(row: Record) -> Route:
    kept = {name: row.value[name] for name in ("pattern", "topic", "attributes", "since")}
    return Route(row.name, policy=Policy(row.value["policy"]), **kept)


def _readable(row: Record) -> Route | None:
    """The route of a row; None for a row that cannot be read, which must not hide the other routes."""
    with suppress(KeyError, TypeError, ValueError):
        return _route(row)
    return None


def _message(event: Mapping[str, Any], detail: Mapping[str, Any]) -> Callable[[Registration], Outgoing]:
    body = compact(event)
    attributes = {
        names.ATTRIBUTE_CORRELATION: str(detail.get("correlation_id") or event.get("id", "")),
        names.ATTRIBUTE_TYPE: str(event.get("detail-type", "")),
    }
    return lambda one: Outgoing(one.channel, body, attributes)
