"""What people write, as the ledger takes it: times and choices."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias, TypeVar

from fanin.errors import InvalidRequest

E = TypeVar("E", bound=StrEnum)

Span: TypeAlias = timedelta | int
"""A duration: a timedelta, or whole seconds."""

Moment: TypeAlias = datetime | timedelta | int
"""A point in time: an aware datetime, a timedelta from now, or milliseconds since the epoch."""


def seconds(span: Span | None) -> int | None:
    """A duration in whole seconds."""
    return int(span.total_seconds()) if isinstance(span, timedelta) else span


def milliseconds(moment: Moment, now: int) -> int:
    """A point in time in milliseconds since the epoch.

    Args:
        moment: as people write it.
        now: from when a timedelta counts, ms.

    Raises:
        InvalidRequest: a datetime without a time zone, which could mean any of 38 points in time.
    """
    if isinstance(moment, timedelta):
        return now + int(moment.total_seconds() * 1000)
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise InvalidRequest(f"{moment} has no time zone; use datetime.now(UTC) + …, or a timedelta")
        return int(moment.timestamp() * 1000)
    return moment


def choice(kind: type[E], value: E | str) -> E:
    """A member of an enumeration, from its value.

    Raises:
        InvalidRequest: there is no such member.
    """
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise InvalidRequest(f"{value!r} is not one of {known}") from None
