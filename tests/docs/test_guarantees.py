"""docs/guarantees.md against the code."""

from __future__ import annotations

import re
from pathlib import Path

import fanin
from fanin.entry.http.statuses import STATUS
from fanin.errors import FaninError

TEXT = (Path(__file__).parents[2] / "docs" / "guarantees.md").read_text()
AFTER = TEXT.split("## After an error")[1].split("\n## ")[0]


def test_it_says_of_every_error_that_leaves_a_doubt_what_to_do() -> None:
    told = set(re.findall(r"`([A-Z]\w+)`", AFTER))
    assert told >= {"OutcomeUnknown", "PartlyMarked", "Throttled", "ServiceUnavailable"}
    assert all(issubclass(getattr(fanin, name), FaninError) for name in told)


def test_it_says_which_errors_a_repeat_may_help() -> None:
    (sentence,) = re.findall(
        r"^`retryable` is true for (.+), and false for `OutcomeUnknown`", AFTER, re.MULTILINE
    )
    retryable = {error.__name__ for error in STATUS if error.retryable}
    assert set(re.findall(r"`(\w+)`", sentence)) == retryable
