"""What people write on the command line, as the library takes it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

import typer

from fanin.domain.acks import Count, ItemRange
from fanin.domain.ids import parse_batch_id
from fanin.errors import InvalidRequest
from fanin.wire.times import decode_time

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN: Final = re.compile(r"(\d{1,9})([smhd]?)")
_RANGE: Final = re.compile(r"(?P<group>[^:]+:[^:]+)(?::(?P<start>\d*)\.\.(?P<stop>\d*))?")


def batch_id(text: str) -> int:
    """A batch id."""
    try:
        return parse_batch_id(text)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from None


def span(text: str) -> timedelta:
    """A duration: ``90`` or ``90s``, ``15m``, ``2h``, ``7d``."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is no duration such as 90s, 15m, 2h or 7d")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2] or "s"])


def moment(text: str) -> timedelta | int:
    """A point in time: a duration from now, or RFC 3339."""
    if _SPAN.fullmatch(text):
        return span(text)
    try:
        return decode_time(text)
    except InvalidRequest as error:
        raise typer.BadParameter(f"{error}, and no duration from now such as 15m") from None


def item_range(text: str) -> ItemRange:
    """A range of a group: ``BATCH:GROUP`` is all of it, ``BATCH:GROUP:FROM..TO`` its items FROM ≤ i < TO."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is not BATCH:GROUP or BATCH:GROUP:FROM..TO")
    start, stop = match["start"], match["stop"]
    return ItemRange(match["group"], int(start or 0), int(stop) if stop else None)


def count(text: str) -> Count:
    """An acknowledgement without ids: ``BATCH=N``."""
    batch, equals, number = text.partition("=")
    if not equals or not number.isdecimal():
        raise typer.BadParameter(f"{text!r} is not BATCH=N")
    return Count(batch_id(batch), int(number))


def quorum(text: str) -> int | float:
    """A number of replies, ``5``, or a share of the recipients, ``0.8``."""
    if text.isdecimal():
        return int(text)
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no number of replies and no share such as 0.8") from None


def pair(text: str) -> tuple[str, str]:
    """A pair of metadata: ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE")
    return key, value
