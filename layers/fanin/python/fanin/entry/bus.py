"""Events of the bus: instances that come and go, and what the router is to send on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fanin import names
from fanin.app.directory.routing import RoutingService
from fanin.app.directory.service import DirectoryService
from fanin.entry.observe import count, logger
from fanin.errors import ChannelRefused, InvalidRequest

Event: TypeAlias = Mapping[str, Any]
Keep: TypeAlias = Callable[[Event], None]

INSTANCES = (names.INSTANCE_CREATED, names.INSTANCE_DESTROYED)


def follow(event: Event, directory: DirectoryService, park: Keep) -> None:
    """Register or drop the instance that an event tells of; one that cannot be is parked.

    Args:
        event: as EventBridge delivers it.
        directory: the registrations.
        park: keeps an event for people to look at.
    """
    try:
        directory.follow(event["detail-type"], event["detail"])
    except (InvalidRequest, ChannelRefused) as error:
        logger.warning("event refused", extra={"event_id": event.get("id"), "code": error.code})
        park(event)
        count(names.METRIC_PARKED)


def route(event: Event, routing: RoutingService, keep: Keep) -> None:
    """Send an event on as its route says; one that nobody gets is counted and kept.

    Args:
        event: a route's name with the event, as the route's rule makes it; or an event as it is, from the
            rule that sees all events, to be kept if it matches no route.
        routing: the routes.
        keep: sends an event to the queue of the unrouted, if there is one.
    """
    found, routed = (
        (event["event"], routing.route(event["route"], event["event"]))
        if "route" in event
        else (event, routing.stray(event))
    )
    count(names.METRIC_ROUTED, routed.sent)
    count(names.METRIC_REFUSED, routed.refused)
    if routed.unrouted:
        count(names.METRIC_UNROUTED)
        keep(found)
