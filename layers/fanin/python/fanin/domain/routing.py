"""Content-based routing: which events go to whom of a topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fanin.domain.directory import Registration


class Policy(StrEnum):
    """Who of a topic's registrations gets an event.

    ``all`` of them; the ``first`` by name; or the ``sender``, whose channel or name the event's detail names
    in ``reply_to`` or ``sender``, else the first.
    """

    ALL = "all"
    FIRST = "first"
    SENDER = "sender"


@dataclass(frozen=True, slots=True)
class PutRoute:
    """A request to make or change a route.

    Attributes:
        name: of the route.
        pattern: event pattern of EventBridge.
        topic: whose registrations get what matches.
        policy: which of them.
        attributes: only those that have all of these.
    """

    name: str
    pattern: Mapping[str, Any]
    topic: str
    policy: Policy = Policy.ALL
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """A route: the fields of ``PutRoute``, and since when it is as it is, ms."""

    name: str
    pattern: Mapping[str, Any]
    topic: str
    policy: Policy
    attributes: Mapping[str, str]
    since: int


@dataclass(frozen=True, slots=True)
class Routes:
    """One page of the routes, by name; only a None cursor is the end."""

    routes: tuple[Route, ...]
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class PutEvent:
    """An event for the bus.

    Attributes:
        source: who says it; not ``fanin``, and nothing of ``aws.``.
        detail_type: what kind of event it is.
        detail: JSON object; its ``correlation_id`` is kept, or made.
    """

    source: str
    detail_type: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of an event: its id on the bus, and the correlation id that it carries."""

    event_id: str
    correlation_id: str


def choose(
    policy: Policy, registrations: Iterable[Registration], detail: Mapping[str, Any]
) -> Iterable[Registration]:
    """Those who get an event, in the order in which they are tried; read no further than they are needed.

    ``all`` means each of them; with the other policies the first whose queue takes it is the one.

    Args:
        policy: of the route.
        registrations: of the topic, by name.
        detail: of the event.
    """
    if policy is not Policy.SENDER:
        return registrations
    named = (detail.get("reply_to"), detail.get("sender"))
    return sorted(registrations, key=lambda one: one.channel not in named and one.name not in named)
