"""Counts in sentences for people."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """A count, and what it counts.

    Args:
        count: how many.
        one: the words that go with 1.
        many: those that go with any other count, if that is not ``one`` with an s.

    >>> counted(1, "item"), counted(1_200, "item"), counted(2, "batch", "batches")
    ('1 item', '1,200 items', '2 batches')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
