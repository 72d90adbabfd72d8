"""Points in time on the wire: RFC 3339, in all its forms."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.errors import InvalidRequest
from fanin.wire.times import decode_time, encode_time

times = st.integers(0, 4_102_444_800_000)


@given(ms=times)
def test_times_agree_with_the_standard_library(ms: int) -> None:
    text = encode_time(ms)
    assert datetime.fromisoformat(text) == datetime.fromtimestamp(ms // 1000, UTC).replace(
        microsecond=ms % 1000 * 1000
    )
    assert decode_time(text) == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00.5z", 500),
        ("1970-01-01T02:00:00.123456+02:00", 123),
        ("1969-12-31T23:00:00-01:00", 0),
    ],
)
def test_times_are_read_in_all_forms_of_rfc_3339(text: str, ms: int) -> None:
    assert decode_time(text) == ms


@pytest.mark.parametrize(
    "text",
    ["", "now", "1970-01-01", "1970-01-01T00:00:00", "1970-02-30T00:00:00Z", "1970-01-01T24:01:00Z",
     "1970-01-01 00:00:00Z", "१९७०-01-01T00:00:00Z", "1970-01-01T00:00:00Z\n", "7"],
)  # fmt: skip
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="RFC 3339"):
        decode_time(text)
