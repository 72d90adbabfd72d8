"""Numbers in sentences."""

from __future__ import annotations

import doctest

from fanin.console.actions import words


def test_examples_hold() -> None:
    assert doctest.testmod(words).attempted > 0
    assert doctest.testmod(words).failed == 0


def test_a_plural_can_be_given() -> None:
    assert words.counted(0, "reply", "replies") == "0 replies"
