"""Counts in sentences: one of a thing is in the singular."""

import pytest

from fanin.domain.limits import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 trips"), (1, "1 trip"), (2, "2 trips"), (1234, "1,234 trips")]
)
def test_one_is_singular(number: int, text: str) -> None:
    # Given a number of trips, when it is written, then one of them is in the singular
    assert counted(number, "trip") == text


def test_a_plural_may_be_named() -> None:
    assert counted(0, "reply", "replies") == "0 replies"
    assert counted(1, "item was", "items were") == "1 item was"
