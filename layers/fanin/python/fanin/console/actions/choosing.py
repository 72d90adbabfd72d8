"""Which failures an action is about, as the address of its page says it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote

from starlette.datastructures import ImmutableMultiDict

from fanin.console.actions.action import Field
from fanin.domain.limits import MAX_CHANNEL
from fanin.domain.redrives import OrdinalRange, Selection
from fanin.errors import InvalidRequest

_THOUSANDS: Final = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])", re.ASCII)
"""One number as pages show it, or two: nobody should find out by sending the wrong messages."""
_RANGE: Final = re.compile(r"(\d{1,16})(?:\s*\.\.\s*(\d{1,16}))?", re.ASCII)
MAX_TEXT: Final = 4_000
"""Characters of ranges that can be typed."""
NAMED: Final = 5
MAX_SHOWN: Final = 256
"""How many errors a sentence names, and how many characters of each."""


def selection_of(asked: ImmutableMultiDict[str, str]) -> Selection:
    """Read a selection from the parameters ``error``, ``quoted`` and ``range``, each any number of times.

    ``quoted`` is an error that is percent-encoded once more: a field of a form loses its line ends otherwise.
    A range is ``A..B``, where B is one past the last, or one ordinal; several can stand in one parameter.

    Raises:
        InvalidRequest: a range is malformed, or the selection is.
        RequestTooLarge: there are too many errors or ranges.
    """
    errors = (*asked.getlist("error"), *map(unquote, asked.getlist("quoted")))
    ranges = tuple(one for text in asked.getlist("range") for one in _ranges(text))
    chosen = Selection(errors, ranges)
    chosen.check()
    return chosen


def address_of(chosen: Selection) -> dict[str, object]:
    """The parameters that ``selection_of`` reads."""
    return {"error": tuple(chosen.errors), "range": tuple(map(_written, chosen.ranges))}


def fields_of(chosen: Selection) -> tuple[Field, ...]:
    """The fields of a form that asks again for other ranges."""
    kept = tuple(Field("quoted", value=quote(error, safe=""), kind="hidden") for error in chosen.errors)
    written = ", ".join(map(_written, chosen.ranges))
    return (*kept, Field("range", "Items", written, hint="all; or such as 0..100, 250", most=MAX_TEXT))


def queue_field(queue: str) -> Field:
    """The field for the queue to send to."""
    return Field("queue", "Queue", queue, hint="its own; or a URL or an ARN", most=MAX_CHANNEL)


def described(chosen: Selection) -> str:
    """Which failures are meant, in a sentence; empty if all are."""
    parts = []
    if chosen.errors:
        named = [f"\u201c{_short(one)}\u201d" for one in chosen.errors[:NAMED]]
        named += [f"one of {len(chosen.errors) - NAMED:,} more"] if len(chosen.errors) > NAMED else []
        parts.append("whose error begins with " + " or ".join(named))
    if chosen.ranges:
        parts.append("of the items " + ", ".join(map(_written, chosen.ranges)))
    return f"Only failures {' and '.join(parts)}." if parts else ""


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}\u2026"


def _ranges(text: str) -> Iterator[OrdinalRange]:
    if found := _THOUSANDS.search(text):
        raise InvalidRequest(
            f"{found[0]!r} can be read as one number or as two; write numbers without commas, and a space"
            " after the comma between two of them"
        )
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise InvalidRequest(
                f"{part[:32]!r} is not a range of items; write one number, or A..B, where B is one past the"
                " last"
            )
        start = int(found[1])
        yield OrdinalRange(start, start + 1 if found[2] is None else int(found[2]))


def _written(one: OrdinalRange) -> str:
    return f"{one.start}..{one.stop}"
