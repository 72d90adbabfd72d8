"""Totals: sums of whole numbers that items bring when they are done, the numbers of each item once.

A batch names up to four totals. An acknowledged item may bring a value for each; the write that clears the
item's bit adds them, so a repeat adds nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from fanin.domain import limits
from fanin.domain.ids import MAX_ITEMS
from fanin.errors import InvalidRequest

Sums: TypeAlias = tuple[int, ...]
"""A number for each total of a batch, in the order in which the batch names them; empty for no totals."""

MAX_TOTALS: Final = 4
MAX_VALUE: Final = 2**53
"""The largest value of an item, and with a minus the smallest: what JSON numbers hold everywhere."""
MAX_CHILD_SUM: Final = 2**80
"""The largest sum that a batch hands to its parent item, and with a minus the smallest."""
MAX_SUM: Final = MAX_ITEMS * MAX_CHILD_SUM
"""The largest sum of a batch. It has 37 digits; DynamoDB adds numbers of 38 digits exactly."""
NAME: Final = "[a-z][a-z0-9_]{0,31}"
_NAME: Final = re.compile(NAME)


def check_names(names: object) -> tuple[str, ...]:
    """Return the names of totals, if they are at most four different names.

    Raises:
        InvalidRequest: they are anything else.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidRequest(f'totals must be a list of names such as ["rows"], not {limits.shown(names)}')
    names = tuple(names)
    if len(names) > MAX_TOTALS:
        raise InvalidRequest(f"a batch has at most {MAX_TOTALS} totals, not {len(names)}: leave some out")
    for name in names:
        _check_name(name)
    if len(set(names)) < len(names):
        raise InvalidRequest(f"each total needs a name of its own: {', '.join(names)}")
    return names


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequest(
            "the name of a total has at most 32 lower-case letters, digits and underscores, and begins with a"
            f" letter, such as rows; {limits.shown(name)} does not"
        )


def check_values(values: object, most: int = MAX_VALUE) -> Mapping[str, int]:
    """Return what an item brings, if it is a whole number within ± ``most`` for each of its totals.

    Whether its batch has these totals is not known here. But a name that no batch can have is refused, since
    a queue would take the message with it, and other items of the message would suffer.

    Raises:
        InvalidRequest: it is anything else.
    """
    if not isinstance(values, Mapping):
        raise InvalidRequest(
            f'the totals of an item are whole numbers by name, such as {{"rows": 812}}, not'
            f" {limits.shown(values)}"
        )
    for name, value in values.items():
        _check_name(name)
        limits.whole(f"total {limits.shown(name)}", value, -most, most)
    return values


def in_order(values: Mapping[str, int], names: Sequence[str], *, batch_id: int) -> Sums:
    """The values in the order of a batch's totals, 0 for a total that gets none.

    Raises:
        InvalidRequest: the batch has no total of such a name.
    """
    if unknown := [name for name in values if name not in names]:
        has = f"its totals are {', '.join(names)}" if names else "it was opened without totals"
        raise InvalidRequest(
            f"batch {batch_id} has no total {limits.shown(unknown[0])}: {has}; name totals when the batch is"
            " opened"
        )
    return tuple(values.get(name, 0) for name in names)


def with_values(totals: Mapping[str, int], values: Mapping[str, int]) -> dict[str, int]:
    """What an item brings in all: what it brought before, and more.

    Raises:
        InvalidRequest: a value or a sum is not a whole number within ±2⁵³.
    """
    check_values(values)
    return {**totals, **check_values({name: totals.get(name, 0) + value for name, value in values.items()})}


def plus(one: Sums, other: Sums) -> Sums:
    """Both together, total by total; one of them may have fewer numbers."""
    if len(one) < len(other):
        one, other = other, one
    return tuple(a + b for a, b in zip(one, (*other, *(0,) * (len(one) - len(other))), strict=True))


def by_name(names: Sequence[str], sums: Sums) -> dict[str, int]:
    """The sums by the names of their totals."""
    return dict(zip(names, plus(sums, (0,) * len(names)), strict=True))
