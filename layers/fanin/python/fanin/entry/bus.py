"""Events on the bus: instances that come and go, and events to be routed."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fanin import names
from fanin.app.directory.registrar import Swept
from fanin.app.directory.routing import RoutingService
from fanin.app.directory.service import DirectoryService
from fanin.entry.observe import count, logger
from fanin.errors import ChannelRefused, InvalidRequest

BusEvent: TypeAlias = Mapping[str, Any]
"""An event as EventBridge delivers it."""

Keep: TypeAlias = Callable[[BusEvent], None]
"""Sends an event to a queue for people to look at."""


class Unchecked(Exception):
    """The registrar could not check some registrations."""


def follow_instance(event: BusEvent, directory: DirectoryService, park: Keep) -> None:
    """Register an instance that was created, or deregister one that was destroyed.

    An event that the directory refuses is logged, counted and parked.

    Args:
        event: of a type among ``names.INSTANCE_EVENTS``.
        directory: the registrations.
        park: keeps the events that are refused.
    """
    try:
        directory.follow(event["detail-type"], event["detail"])
    except (InvalidRequest, ChannelRefused) as error:
        logger.warning("event refused", extra={"event_id": event.get("id"), "code": error.code})
        park(event)
        count(names.METRIC_PARKED)


def report_unchecked(place: str, error: Exception) -> None:
    """Log a registration, or a topic, that the registrar could not check."""
    logger.warning("registration not checked", extra={"place": place}, exc_info=error)


def require_checked(swept: Swept) -> None:
    """End a run of the registrar that could not check everything as a failed one, which raises an alarm.

    Raises:
        Unchecked: something could not be checked.
    """
    if swept.failed:
        raise Unchecked(f"{swept.failed} registrations or topics could not be checked; the log names them")


def route(event: BusEvent, routing: RoutingService, keep: Keep) -> None:
    """Send an event to the registrations that its route names; count and keep one that reaches nobody.

    Args:
        event: either ``{"route": …, "event": …}``, a route's name with an event that matches it, as the
            route's rule sends it; or any event, from the rule that matches all events.
        routing: the routes.
        keep: keeps the events that reach nobody.
    """
    original = event["event"] if "route" in event else event
    routed = routing.route(event["route"], original) if "route" in event else routing.stray(event)
    count(names.METRIC_ROUTED, routed.sent)
    count(names.METRIC_REFUSED, routed.refused)
    if routed.unrouted:
        count(names.METRIC_UNROUTED)
        keep(original)
