"""How many rows may be left out, and what is said if there are more."""

from __future__ import annotations

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.runtime.rejects import ANY, MOST_SHOWN, Commonest, RejectLimit
from fanin.spark.runtime.unreadable import UNREADABLE, WRONG_COLUMNS


@pytest.mark.parametrize(
    ("text", "limit"),
    [("0", RejectLimit(count=0)), ("100", RejectLimit(count=100)), ("2.5%", RejectLimit(share=0.025))],
)
def test_a_limit_is_a_number_of_rows_or_a_share_of_them(text: str, limit: RejectLimit) -> None:
    assert RejectLimit.parse(text) == limit


@pytest.mark.parametrize("text", ["", "%", "-1", "many", "101%", "-1%", "nan%", "1.5"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="neither a number of rows nor a share"):
        RejectLimit.parse(text)


@pytest.mark.parametrize(
    ("limit", "rejected", "enough"),
    [
        (ANY, {"null": 99}, True),
        (ANY, {"null": 60, "malformed": 40}, False),
        (RejectLimit(count=3), {"null": 3}, True),
        (RejectLimit(count=3), {"null": 2, "gone": 2}, False),
        (RejectLimit(count=0), {}, True),
        (RejectLimit(count=0), {"duplicate": 90}, True),
        (RejectLimit(share=0.05), {"null": 5}, True),
        (RejectLimit(share=0.05), {"null": 6}, False),
        (RejectLimit(count=1_000), {"null": 100}, True),
    ],
)
def test_repeats_do_not_count_and_all_rows_are_too_many(
    limit: RejectLimit, rejected: dict[str, int], enough: bool
) -> None:
    # Given a hundred rows, when some are rejects, then the job may go on or not
    assert limit.allows(rejected, 100) is enough


@pytest.mark.parametrize("percent", range(101))
def test_as_many_rejects_as_the_share_says_are_enough(percent: int) -> None:
    # 0.29 * 100 is less than 29 in floating-point numbers
    limit = RejectLimit.parse(f"{percent}%")
    assert limit.allows({"null": percent}, 100)
    assert not limit.allows({"null": percent + 1}, 100)


def test_a_dataset_without_rows_has_no_rejects() -> None:
    assert ANY.allows({}, 0)


@pytest.mark.parametrize(
    ("detail", "value", "told"),
    [
        ("the body is null", None, "The commonest (3): malformed, the body is null; for example null."),
        (None, "x", "The commonest (3): malformed; for example 'x'."),
        (UNREADABLE, "K\ufffdse", "Name the encoding of the files (--encoding, for example windows-1252)."),
        (UNREADABLE, "a,b,c", "look whether its delimiter and quote are right (--delimiter, --quote)."),
        (WRONG_COLUMNS, "a,b,c", "look whether its delimiter and quote are right (--delimiter, --quote)."),
        ("y" * 999, "x" * 999, f"{'y' * MOST_SHOWN}…; for example '{'x' * MOST_SHOWN}…'."),
    ],
)
def test_the_commonest_reject_says_what_to_look_at(detail: str | None, value: str | None, told: str) -> None:
    assert str(Commonest("malformed", detail, 3, value)).endswith(told)
