"""The directory: who listens where. Registrations by topic and name, and what is told of their changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from fanin import names

GRACE: Final = 86_400
"""Seconds that a row outlives its lease, for the registrar to find it and tell that it is over."""


class Left(StrEnum):
    """Why a registration is no more."""

    DEREGISTERED = "deregistered"
    LEASE_OVER = "lease over"
    QUEUE_GONE = "queue gone"


@dataclass(frozen=True, slots=True)
class Register:
    """A request to register, to keep a registration alive, or to move it; they are one and the same.

    Attributes:
        topic: what the instance listens to.
        name: its own, within the topic.
        channel: URL or ARN of its SQS queue.
        attributes: small map of strings to choose instances by.
        lease: seconds until the registration is over unless it is repeated.
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
        name: its own.
        channel: URL of its queue.
        attributes: small map of strings.
        lease: seconds, as it was asked for.
        since: when it registered, ms.
        until: when its lease is over, ms.
        left: why it is no more; None while it is.
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
        """Whether it counts as registered."""
        return self.left is None and now < self.until

    def has(self, wanted: Mapping[str, str]) -> bool:
        """Whether it has all these attributes."""
        return all(self.attributes.get(name) == value for name, value in wanted.items())

    def moved(self, channel: str, attributes: Mapping[str, str]) -> bool:
        """Whether channel or attributes are others than these."""
        return self.channel != channel or dict(self.attributes) != dict(attributes)

    def leave(self, reason: Left, now: int) -> Registration:
        """The same, as it is no more: gone for readers at once."""
        return replace(self, left=reason, until=now)

    @property
    def expires_at(self) -> int:
        """Time to live of its row, seconds."""
        return self.until // 1000 + (GRACE if self.left is None else 0)

    @property
    def value(self) -> dict[str, Any]:
        """What its row holds. When the lease is over is told by the row's time to live alone."""
        value: dict[str, Any] = {
            "channel": self.channel,
            "attributes": dict(self.attributes),
            "lease": self.lease,
            "since": self.since,
        }
        return value if self.left is None else value | {"left": self.left.value}

    @classmethod
    def of(cls, topic: str, name: str, value: Mapping[str, Any], expires_at: int) -> Registration:
        """Read a row."""
        left = Left(value["left"]) if "left" in value else None
        return cls(
            topic=topic,
            name=name,
            channel=value["channel"],
            attributes=value["attributes"],
            lease=value["lease"],
            since=value["since"],
            until=(expires_at - (GRACE if left is None else 0)) * 1000,
            left=left,
        )


@dataclass(frozen=True, slots=True)
class Registrations:
    """One page of a topic, by name; it may be short, and only a None cursor is the end."""

    registrations: tuple[Registration, ...]
    cursor: str | None = None


def change(old: Registration | None, new: Registration | None) -> tuple[str, Registration] | None:
    """What the bus is told of a change of a row, and of whom; None for a heartbeat.

    A row that is removed by its time to live was never told to be over: the registrar did not come by.

    Args:
        old: the row before; None if there was none.
        new: the row now; None if it was removed.
    """
    was = old if old is not None and old.left is None else None
    if new is None or new.left is not None:
        return (
            None if was is None else (names.INSTANCE_DEREGISTERED, new or replace(was, left=Left.LEASE_OVER))
        )
    if was is None:
        return names.INSTANCE_REGISTERED, new
    return (names.INSTANCE_MOVED, new) if was.moved(new.channel, new.attributes) else None
