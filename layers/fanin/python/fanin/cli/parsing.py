"""Parses the values of arguments and options; each error says what was expected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Final

import typer

from fanin.domain.batch import WHOLE
from fanin.domain.failures import Tolerance
from fanin.domain.ids import parse_batch_id, parse_item, parse_prefix
from fanin.domain.marks import Count, ItemRange
from fanin.domain.redrives import OrdinalRange
from fanin.domain.targets import FIELD, Target, TargetType, When
from fanin.domain.totals import NAME, check_values
from fanin.errors import InvalidRequest
from fanin.wire.json_types import decode_time

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN: Final = re.compile(r"(\d{1,9})([smhd]?)")
_NUMBER: Final = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE]\+?[0-9]{1,2})?")
_DIGITS: Final = re.compile(r"[0-9]{1,30}")
_THOUSANDS: Final = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?)([kKmMgG])")
_POWERS: Final = {"k": 3, "m": 6, "g": 9}
_RANGE: Final = re.compile(r"(?P<group>[^:]+:[^:]+)(?::(?P<start>[0-9]{0,30})\.\.(?P<stop>[0-9]{0,30}))?")


def batch_id(text: str) -> int:
    """Parse a batch id."""
    try:
        return parse_batch_id(text)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from None


def ordinal(text: str, batch: int) -> int:
    """Parse an item of a batch: its id, or its ordinal."""
    if _DIGITS.fullmatch(text):
        return int(text)
    try:
        block, found = parse_item(text)
    except InvalidRequest:
        raise typer.BadParameter(
            f"{text!r} is not an item; write its ordinal, or its id BATCH:GROUP:INDEX"
        ) from None
    if block.batch_id != batch:
        raise typer.BadParameter(f"item {text} is of batch {block.batch_id}, not of {batch}")
    return found


def whole(text: str, least: int, most: int) -> int:
    """Parse a whole number: ``1000000``, ``1_000_000``, ``1,000,000``, ``1e6``, ``1000k`` or ``1M``."""
    plain = text.replace(",", "").replace("_", "")
    if thousands := _THOUSANDS.fullmatch(plain):
        plain = f"{thousands[1]}e{_POWERS[thousands[2].lower()]}"
    # In many languages 1.000 is a thousand; here it would be one.
    clear = "." not in plain or "e" in plain.lower()
    number = Decimal(plain) if clear and _NUMBER.fullmatch(plain) else None
    if number is None or not least <= number <= most or number != number.to_integral_value():
        raise typer.BadParameter(
            f"{text!r} is not a whole number from {least:,} to {most:,}; write it like 1000000, 1e6 or 1M"
        )
    return int(number)


def span(text: str) -> timedelta:
    """Parse a duration: ``90`` or ``90s``, ``15m``, ``2h``, ``7d``."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a duration; write it like 90s, 15m, 2h or 7d")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2] or "s"])


def percents(text: str) -> tuple[int, ...]:
    """Parse percents, such as ``50,90``; ``none`` for an empty list."""
    if text == "none":
        return ()
    return tuple(whole(one.strip().removesuffix("%"), 1, WHOLE) for one in text.split(","))


def moment(text: str) -> timedelta | int:
    """Parse a point in time.

    Returns:
        A duration from now, or milliseconds since 1970 for a time in RFC 3339.
    """
    return span(text) if _SPAN.fullmatch(text) else _time(text, "a duration from now like 15m")


def moment_past(text: str) -> timedelta | int:
    """Parse a point in time that is over.

    Returns:
        A duration from now, which is negative; or milliseconds since 1970 for a time in RFC 3339.
    """
    return -span(text) if _SPAN.fullmatch(text) else _time(text, "how long ago, like 7d")


def _time(text: str, otherwise: str) -> int:
    try:
        return decode_time(text)
    except InvalidRequest as error:
        raise typer.BadParameter(f"{error}; write a time like 2026-11-21T09:40:00Z, or {otherwise}") from None


def item_range(text: str) -> ItemRange:
    """Parse a range: ``BATCH:GROUP`` is the whole group, ``BATCH:GROUP:FROM..TO`` its items FROM ≤ i < TO."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a range; write BATCH:GROUP or BATCH:GROUP:FROM..TO")
    start, stop = match["start"], match["stop"]
    return ItemRange(match["group"], int(start or 0), int(stop) if stop else None)


def items(text: str) -> Iterator[str]:
    """Parse a range like ``item_range``: the ids of its items."""
    found = item_range(text)
    try:
        most = parse_prefix(found.group).size
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from None
    stop = most if found.stop is None else found.stop
    if not found.start <= stop <= most:
        raise typer.BadParameter(f"{text!r} is not a range of the group, which has {most:,} items")
    return (f"{found.group}:{n}" for n in range(found.start, stop))


def ordinals(text: str) -> OrdinalRange:
    """Parse a range of ordinals: ``A..B`` is A ≤ i < B."""
    match = re.fullmatch(r"(\d{1,13})\.\.(\d{1,13})", text, re.ASCII)
    if match is None or int(match[1]) >= int(match[2]):
        raise typer.BadParameter(
            f"{text!r} is not a range of ordinals; write A..B, where B is one past the last"
        )
    return OrdinalRange(int(match[1]), int(match[2]))


def count(text: str) -> Count:
    """Parse a number of items that are done, without their ids: ``BATCH=N``."""
    batch, equals, number = text.partition("=")
    if not equals or not _DIGITS.fullmatch(number):
        raise typer.BadParameter(f"{text!r} is not a count; write BATCH=N")
    return Count(batch_id(batch), int(number))


def total(text: str) -> tuple[str, int]:
    """Parse what an item adds to a total: ``NAME=NUMBER``, such as ``rows=812``."""
    name, equals, number = text.partition("=")
    if not equals or not re.fullmatch(NAME, name):
        raise typer.BadParameter(f"{text!r} is not a total; write NAME=NUMBER, such as rows=812")
    if not re.fullmatch(r"[+-]?\d{1,32}", number, re.ASCII):
        raise typer.BadParameter(
            f"the value in {text!r} is not a whole number; write NAME=NUMBER, such as rows=812, with spaces"
            " between several"
        )
    try:
        check_values({name: int(number)})
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from None
    return name, int(number)


def totals(texts: Iterable[str]) -> dict[str, int]:
    """Parse what an item adds to several totals, each named once."""
    pairs = [total(text) for text in texts]
    if len(named := dict(pairs)) < len(pairs):
        raise typer.BadParameter("a total is named twice; write each once")
    return named


def quorum(text: str) -> int | float:
    """Parse a number of replies, ``5``, or a share of the recipients, ``0.8``."""
    if _DIGITS.fullmatch(text):
        return int(text)
    if re.fullmatch(r"[0-9]{0,9}\.[0-9]{1,30}", text):
        return float(text)
    raise typer.BadParameter(
        f"{text[:64]!r} is not a quorum; write a number of replies like 5, or a share like 0.8"
    )


def tolerated(text: str | None, min_sample: int | None) -> Tolerance | None:
    """Parse a number of failures, ``10``, or a share of the items that are done, ``5%``; None for any."""
    if text is None:
        if min_sample is not None:
            raise typer.BadParameter("--min-sample needs --tolerate-failures with a share, like 5%")
        return None
    match = re.fullmatch(r"(\d{1,13})|(\d{1,3}(?:\.\d{1,6})?)%", text)
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a tolerance; write a number like 10, or a share like 5%")
    if match[1]:
        return Tolerance(count=int(match[1]), min_sample=min_sample)
    return Tolerance(percent=float(match[2]), min_sample=min_sample)


def target(text: str) -> Target:
    """Parse who is told of the end of a batch: ``[WHEN:]TYPE=WHERE``, such as ``complete:sqs=https://…``."""
    kind, equals, where = text.partition("=")
    when, colon, named = kind.rpartition(":")
    try:
        of, at = TargetType(named), When(when) if colon else When.ANY
    except ValueError:
        equals = ""
    if not equals or not where:
        raise typer.BadParameter(
            f"{kind[:64]!r} is not a target; write TYPE=WHERE or WHEN:TYPE=WHERE, with a type of"
            f" {', '.join(TargetType)}, and {', '.join(When)}"
        )
    return Target(of, at, **{FIELD[of]: where})


def pair(text: str) -> tuple[str, str]:
    """Parse a pair: ``KEY=VALUE``; the value may contain further equals signs."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise typer.BadParameter(f"{text!r} is not a pair; write KEY=VALUE")
    return key, value
