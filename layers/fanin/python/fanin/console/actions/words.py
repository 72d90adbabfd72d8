"""Numbers in sentences."""

from __future__ import annotations

from fanin.domain.plurals import counted


def between(low: int, high: int, noun: str) -> str:
    """A number that is known within bounds, with its noun.

    >>> between(3, 3, "item"), between(3, 1_000, "item")
    ('3 items', '3 to 1,000 items')
    """
    return counted(high, noun) if low == high else f"{low:,} to {high:,} {noun}s"


def was(count: int) -> str:
    """The verb that follows a number, in the past.

    >>> was(1), was(2)
    ('was', 'were')
    """
    return "was" if count == 1 else "were"


def are(count: int) -> str:
    """The verb that follows a number.

    >>> are(1), are(2)
    ('is', 'are')
    """
    return "is" if count == 1 else "are"
