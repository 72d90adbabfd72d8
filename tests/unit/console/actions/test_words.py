"""Numbers in sentences."""

from __future__ import annotations

import doctest

from fanin.console.actions import words


def test_examples_hold() -> None:
    assert doctest.testmod(words).attempted > 0
    assert doctest.testmod(words).failed == 0
