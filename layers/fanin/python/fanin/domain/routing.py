"""Content-based routing: which events go to which registrations of a topic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from fanin.domain import limits
from fanin.domain.directory import Registration
from fanin.errors import InvalidRequest

ROUTE_NAME: Final = "[A-Za-z0-9][A-Za-z0-9._-]*"
"""Names of routes. EventBridge accepts no other characters in the name of a rule."""


class Policy(StrEnum):
    """Which of a topic's registrations get an event.

    ``all`` of them; or the ``first`` by name; or the ``sender``: the one whose channel or name stands in the
    event's detail as ``reply_to`` or ``sender``, and if there is none, the first.
    """

    ALL = "all"
    FIRST = "first"
    SENDER = "sender"


@dataclass(frozen=True, slots=True)
class PutRoute:
    """A request to create or change a route.

    Attributes:
        name: of the route.
        pattern: event pattern of EventBridge.
        topic: its registrations get the events that match.
        policy: which of them.
        attributes: only registrations that have all of these.
    """

    name: str
    pattern: Mapping[str, Any]
    topic: str
    policy: Policy = Policy.ALL
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """A route: the fields of ``PutRoute``, and when it was last changed, ms."""

    name: str
    pattern: Mapping[str, Any]
    topic: str
    policy: Policy
    attributes: Mapping[str, str]
    since: int


@dataclass(frozen=True, slots=True)
class Routes:
    """One page of the routes, by name; only a None cursor means the end."""

    routes: tuple[Route, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class PutEvent:
    """An event for the bus.

    Attributes:
        source: who publishes it; neither ``fanin`` nor anything that begins with ``aws.``.
        detail_type: what kind of event it is; not one that fanin acts on.
        detail: JSON object; its ``correlation_id`` is kept, or added where it has none.
    """

    source: str
    detail_type: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sent:
    """A published event: its id on the bus, and the correlation id that it carries."""

    event_id: str
    correlation_id: str


def check_name(name: str) -> None:
    """Refuse a name of a route whose rule EventBridge would refuse.

    Raises:
        InvalidRequest: it is malformed, or too long.
    """
    limits.text("route", name, limits.MAX_ROUTE, least=1)
    if not re.fullmatch(ROUTE_NAME, name):
        raise InvalidRequest(
            "route must be letters, digits and . _ - and begin with a letter or digit,"
            f" not {limits.shown(name)}"
        )


def choose(
    policy: Policy, registrations: Iterable[Registration], detail: Mapping[str, Any]
) -> Iterable[Registration]:
    """The registrations that may get an event, in the order in which to try them.

    With ``all``, every one of them gets it; with the other policies, the first whose queue accepts it. Read
    no further than needed: with ``first`` the rest of the topic is not loaded.

    Args:
        policy: of the route.
        registrations: of the topic, by name.
        detail: of the event.
    """
    if policy is not Policy.SENDER:
        return registrations
    named = (detail.get("reply_to"), detail.get("sender"))
    return sorted(registrations, key=lambda one: one.channel not in named and one.name not in named)
