"""The directory: which instances listen where, and which events report a change."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from fanin import names
from fanin.domain import limits
from fanin.errors import ChannelRefused, InvalidRequest

GRACE: Final = 86_400
"""Seconds that a row outlives its lease, so that the registrar finds it and reports the end."""


_KEPT: Final = ("channel", "attributes", "lease", "since")
"""Fields of a registration that its row has as they are."""


class Left(StrEnum):
    """Why a registration ended."""

    DEREGISTERED = "deregistered"
    LEASE_OVER = "lease over"
    QUEUE_GONE = "queue gone"


@dataclass(frozen=True, slots=True)
class Register:
    """A request to register, to renew a registration, or to move it: one request does all three.

    Attributes:
        topic: what the instance listens to.
        name: of the instance, unique within the topic.
        channel: URL or ARN of its SQS queue.
        attributes: small map of strings, by which instances are chosen.
        lease: seconds until the registration ends, unless it is renewed.
    """

    topic: str
    name: str
    channel: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    lease: int = 3600


@dataclass(frozen=True, slots=True)
class Registration:
    """One instance that listens to a topic.

    Attributes:
        topic: what it listens to.
        name: of the instance.
        channel: URL of its queue.
        attributes: small map of strings.
        lease: seconds, as requested.
        since: when it registered, ms.
        until: when its lease ends, ms.
        left: why the registration ended; None while it is active.
    """

    topic: str
    name: str
    channel: str
    attributes: Mapping[str, str]
    lease: int
    since: int
    until: int
    left: Left | None = None

    def lives(self, now: int) -> bool:
        """Whether it is registered at this time, ms."""
        return self.left is None and now < self.until

    def has(self, wanted: Mapping[str, str]) -> bool:
        """Whether it has all these attributes."""
        return all(self.attributes.get(name) == value for name, value in wanted.items())

    def moved(self, channel: str, attributes: Mapping[str, str]) -> bool:
        """Whether its channel or attributes differ from these."""
        return self.channel != channel or dict(self.attributes) != dict(attributes)

    def leave(self, reason: Left, now: int) -> "Registration":
        """The registration as it ends at this time: readers no longer see it."""
        return replace(self, left=reason, until=now)

    @property
    def expires_at(self) -> int:
        """Time to live of its row, seconds since the epoch."""
        return self.until // 1000 + (GRACE if self.left is None else 0)

    @property
    def value(self) -> dict[str, Any]:
        """The JSON object of its row. The end of the lease follows from the row's time to live."""
        value = {name: getattr(self, name) for name in _KEPT} | {"attributes": dict(self.attributes)}
        return value if self.left is None else value | {"left": self.left.value}

    @classmethod
    def of(cls, topic: str, name: str, value: Mapping[str, Any], expires_at: int) -> "Registration":
        """Read a row."""
        left = Left(value["left"]) if "left" in value else None
        until = (expires_at - (GRACE if left is None else 0)) * 1000
        return cls(topic, name, **{name: value[name] for name in _KEPT}, until=until, left=left)


@dataclass(frozen=True, slots=True)
class Registrations:
    """One page of a topic, by name; it may be short, and only a None cursor means the end."""

    registrations: tuple[Registration, ...]
    cursor: str | None = None


def change(old: Registration | None, new: Registration | None) -> tuple[str, Registration] | None:
    """Which event a change of a row causes, and about which registration; None for a heartbeat.

    If its time to live removed a row, the registrar never reported the end of the lease, so it is reported
    now.

    Args:
        old: the registration before; None if the row is new.
        new: the registration now; None if the row was removed.
    """
    was = old if old is not None and old.left is None else None
    if new is None or new.left is not None:
        gone = new if was is None else new or replace(was, left=Left.LEASE_OVER)
        return None if was is None or gone is None else (names.INSTANCE_DEREGISTERED, gone)
    if was is None:
        return names.INSTANCE_REGISTERED, new
    return (names.INSTANCE_MOVED, new) if was.moved(new.channel, new.attributes) else None


def is_fifo(queue: str) -> bool:
    """Whether a queue is a FIFO queue, by its URL or ARN, which SQS requires to end in ``.fifo``."""
    return queue.endswith(".fifo")


def check_channel(channel: str) -> None:
    """Refuse a FIFO queue: it takes no message without a group, and fanin's messages have none.

    Raises:
        ChannelRefused: the queue is a FIFO queue.
    """
    if is_fifo(channel):
        raise ChannelRefused(
            f"{channel[:200]!r} is a FIFO queue, which cannot be a channel; use a standard queue"
        )


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
class Route(PutRoute):
    """A route: the fields of ``PutRoute``, and when it was last changed, ms."""

    since: int = field(kw_only=True)


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
