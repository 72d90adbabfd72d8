"""What people type for numbers, times and limits."""

from datetime import timedelta

import pytest

from fanin.errors import InvalidRequest
from fanin.wire import typed


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7_200), ("7d", 604_800), ("0s", 0)]
)
def test_a_duration(text, seconds):
    assert typed.span(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "h", "-5s", "1.5h", "2 h", "2w", "1h30m", "1234567890"])
def test_a_text_that_is_not_a_duration(text):
    with pytest.raises(InvalidRequest, match="write it like 90s, 15m, 2h or 7d"):
        typed.span(text)


def test_a_moment_is_a_duration_or_a_time():
    assert typed.moment("15m") == timedelta(minutes=15)
    assert typed.moment("1970-01-01T00:01:00Z") == 60_000
    assert typed.moment("1970-01-01T01:00:00+01:00") == 0


def test_a_moment_without_a_zone_is_refused_with_both_forms():
    with pytest.raises(InvalidRequest, match=r"T09:40:00Z.* 15m"):
        typed.moment("2026-11-21T09:40:00")
