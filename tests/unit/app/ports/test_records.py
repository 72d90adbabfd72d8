"""A record lives until its second, and not in it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fanin.app.ports.records import FOREVER, Record

SECOND = 1_800_000_000


@pytest.mark.parametrize(
    ("expires_at", "now", "lives"),
    [
        (SECOND, SECOND * 1000 - 1, True),
        (SECOND, SECOND * 1000, False),
        (SECOND, SECOND * 1000 + 1, False),
        (FOREVER, SECOND * 1000, True),
    ],
)
def test_a_record_lives_until_its_time_to_live(expires_at: int, now: int, *, lives: bool) -> None:
    assert Record("name", {}, 1, expires_at).lives(now) is lives


def test_what_is_kept_forever_is_kept_until_the_last_second_that_a_date_can_say() -> None:
    assert datetime.fromtimestamp(FOREVER, UTC) == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
