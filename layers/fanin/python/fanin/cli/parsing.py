"""Parses the values of arguments and options; each error says what was expected."""

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final, NamedTuple

from fanin.domain.failures import Tolerance
from fanin.domain.ids import parse_batch_id, parse_item, parse_prefix
from fanin.domain.marks import Count, ItemRange
from fanin.domain.redrives import OrdinalRange
from fanin.domain.targets import FIELD, Target, TargetType, When
from fanin.domain.totals import NAME, check_values
from fanin.errors import InvalidRequest
from fanin.wire.typed import moment, tolerance

_DIGITS: Final = re.compile(r"[0-9]{1,30}")
_RANGE: Final = re.compile(r"(?P<group>[^:]+:[^:]+)(?::(?P<start>[0-9]{0,30})\.\.(?P<stop>[0-9]{0,30}))?")


def ordinal(text: str, batch: int) -> int:
    """Parse an item of a batch: its id, or its ordinal."""
    if _DIGITS.fullmatch(text):
        return int(text)
    try:
        block, found = parse_item(text)
    except InvalidRequest:
        raise InvalidRequest(
            f"{text!r} is not an item; write its ordinal, or its id BATCH:GROUP:INDEX"
        ) from None
    if block.batch_id != batch:
        raise InvalidRequest(f"item {text} is of batch {block.batch_id}, not of {batch}")
    return found


def moment_past(text: str) -> timedelta | int:
    """Parse a point in time that is over.

    Returns:
        A duration from now, which is negative; or milliseconds since 1970 for a time in RFC 3339.
    """
    found = moment(text, "how long ago, like 7d")
    return -found if isinstance(found, timedelta) else found


def item_range(text: str) -> ItemRange:
    """Parse a range: ``BATCH:GROUP`` is the whole group, ``BATCH:GROUP:FROM..TO`` its items FROM ≤ i < TO."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise InvalidRequest(f"{text!r} is not a range; write BATCH:GROUP or BATCH:GROUP:FROM..TO")
    start, stop = match["start"], match["stop"]
    return ItemRange(match["group"], int(start or 0), int(stop) if stop else None)


def items(found: ItemRange) -> Iterator[str]:
    """The ids of the items of a range."""
    most = parse_prefix(found.group).size
    stop = most if found.stop is None else found.stop
    if not found.start <= stop <= most:
        raise InvalidRequest(f"{found.start}..{stop} is not a range of the group, which has {most:,} items")
    return (f"{found.group}:{n}" for n in range(found.start, stop))


def ordinals(text: str) -> OrdinalRange:
    """Parse a range of ordinals: ``A..B`` is A ≤ i < B."""
    match = re.fullmatch(r"(\d{1,13})\.\.(\d{1,13})", text, re.ASCII)
    if match is None or int(match[1]) >= int(match[2]):
        raise InvalidRequest(f"{text!r} is not a range of ordinals; write A..B, where B is one past the last")
    return OrdinalRange(int(match[1]), int(match[2]))


def count(text: str) -> Count:
    """Parse a number of items that are done, without their ids: ``BATCH=N``."""
    batch, equals, number = text.partition("=")
    if not equals or not _DIGITS.fullmatch(number):
        raise InvalidRequest(f"{text!r} is not a count; write BATCH=N")
    return Count(parse_batch_id(batch), int(number))


def total(text: str) -> tuple[str, int]:
    """Parse what an item adds to a total: ``NAME=NUMBER``, such as ``rows=812``."""
    name, equals, number = text.partition("=")
    if not equals or not re.fullmatch(NAME, name):
        raise InvalidRequest(f"{text!r} is not a total; write NAME=NUMBER, such as rows=812")
    if not re.fullmatch(r"[+-]?\d{1,32}", number, re.ASCII):
        raise InvalidRequest(
            f"the value in {text!r} is not a whole number; write NAME=NUMBER, such as rows=812, with spaces"
            " between several"
        )
    check_values({name: int(number)})
    return name, int(number)


def totals(texts: Iterable[str]) -> dict[str, int]:
    """Parse what an item adds to several totals, each named once."""
    pairs = [total(text) for text in texts]
    if len(named := dict(pairs)) < len(pairs):
        raise InvalidRequest("a total is named twice; write each once")
    return named


def quorum(text: str) -> int | float:
    """Parse a number of replies, ``5``, or a share of the recipients, ``0.8``."""
    if _DIGITS.fullmatch(text):
        return int(text)
    if re.fullmatch(r"[0-9]{0,9}\.[0-9]{1,30}", text):
        return float(text)
    raise InvalidRequest(
        f"{text[:64]!r} is not a quorum; write a number of replies like 5, or a share like 0.8"
    )


def tolerated(text: str | None, min_sample: int | None) -> Tolerance | None:
    """Parse a number of failures, ``10``, or a share of the items that are done, ``5%``; None for any."""
    if text is None:
        if min_sample is not None:
            raise InvalidRequest("--min-sample needs --tolerate-failures with a share, like 5%")
        return None
    return tolerance(text, min_sample)


def target(text: str) -> Target:
    """Parse who is told of the end of a batch: ``[WHEN:]TYPE=WHERE``, such as ``complete:sqs=https://…``."""
    kind, equals, where = text.partition("=")
    when, colon, named = kind.rpartition(":")
    try:
        of, at = TargetType(named), When(when) if colon else When.ANY
    except ValueError:
        equals = ""
    if not equals or not where:
        raise InvalidRequest(
            f"{kind[:64]!r} is not a target; write TYPE=WHERE or WHEN:TYPE=WHERE, with a type of"
            f" {', '.join(TargetType)}, and {', '.join(When)}"
        )
    return Target(of, at, **{FIELD[of]: where})


class Pair(NamedTuple):
    """A name and its value."""

    key: str
    value: str


def pair(text: str) -> Pair:
    """Parse a pair: ``KEY=VALUE``; the value may contain further equals signs."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InvalidRequest(f"{text!r} is not a pair; write KEY=VALUE")
    return Pair(key, value)
