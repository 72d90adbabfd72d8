"""Reads what people type for numbers, times and limits, on the command line and in the console.

Each error says what was expected.
"""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

from fanin.domain.batch import WHOLE
from fanin.domain.failures import Tolerance
from fanin.errors import InvalidRequest
from fanin.wire.json_types import decode_time

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SPAN: Final = re.compile(r"([0-9]{1,9})([smhd]?)")
_NUMBER: Final = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE]\+?[0-9]{1,2})?")
_THOUSANDS: Final = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?)([kKmMgG])")
_POWERS: Final = {"k": 3, "m": 6, "g": 9}
_TOLERANCE: Final = re.compile(r"([0-9]{1,13})|([0-9]{1,3}(?:\.[0-9]{1,6})?)%")


def whole(text: str, least: int, most: int) -> int:
    """Parse a whole number: ``1000000``, ``1_000_000``, ``1,000,000``, ``1e6``, ``1000k`` or ``1M``."""
    plain = text.replace(",", "").replace("_", "")
    if thousands := _THOUSANDS.fullmatch(plain):
        plain = f"{thousands[1]}e{_POWERS[thousands[2].lower()]}"
    # In many languages 1.000 is a thousand; here it would be one.
    clear = "." not in plain or "e" in plain.lower()
    number = Decimal(plain) if clear and _NUMBER.fullmatch(plain) else None
    if number is None or not least <= number <= most or number != number.to_integral_value():
        raise InvalidRequest(
            f"{text[:64]!r} is not a whole number from {least:,} to {most:,}; write it like 1000000, 1e6 or"
            " 1M"
        )
    return int(number)


def span(text: str) -> timedelta:
    """Parse a duration: ``90`` or ``90s``, ``15m``, ``2h``, ``7d``."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise InvalidRequest(f"{text[:64]!r} is not a duration; write it like 90s, 15m, 2h or 7d")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2] or "s"])


def duration(seconds: float, units: int = 2) -> str:
    """A duration as people read it, in its largest units, such as ``2 h 5 min``."""
    left, parts = max(0, int(seconds)), []
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}")
        elif parts:
            break
    return " ".join(parts[:units]) or "0 s"


def percents(text: str) -> tuple[int, ...]:
    """Parse percents, such as ``50,90``; ``none`` for an empty list."""
    if text == "none":
        return ()
    return tuple(whole(one.strip().removesuffix("%"), 1, WHOLE) for one in text.split(","))


def moment(text: str, otherwise: str = "a duration from now like 15m") -> timedelta | int:
    """Parse a point in time.

    Args:
        text: what was typed.
        otherwise: what can be written in place of a time, for the error.

    Returns:
        A duration, or milliseconds since 1970 for a time in RFC 3339.
    """
    if _SPAN.fullmatch(text):
        return span(text)
    try:
        return decode_time(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{error}; write a time like 2026-11-21T09:40:00Z, or {otherwise}") from None


def tolerance(text: str, min_sample: int | None = None) -> Tolerance:
    """Parse a number of failures, ``10``, or a share of the items that are done, ``5%``."""
    match = _TOLERANCE.fullmatch(text)
    if match is None:
        raise InvalidRequest(f"{text[:64]!r} is not a tolerance; write a number like 10, or a share like 5%")
    if match[1]:
        return Tolerance(count=int(match[1]), min_sample=min_sample)
    return Tolerance(percent=float(match[2]), min_sample=min_sample)
