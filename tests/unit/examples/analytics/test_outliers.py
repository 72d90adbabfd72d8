"""Weeks far from all others: when they are left out of a report, and how they are named."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from examples.fleet.analytics.outliers import Outliers, without_outliers
from examples.fleet.analytics.weeks import Period

MONDAY = date(2024, 3, 4)
MOST = 106


def weeks(count: int, rows: int = 100) -> dict[date, int]:
    return {MONDAY + timedelta(weeks=n): rows for n in range(count)}


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize("far", [date(1971, 3, 1), date(2190, 1, 4)])
def test_a_week_far_from_all_others_is_left_out_and_named(far: date, rows: int) -> None:
    # Given twenty weeks with data, and one decades away
    given = {**weeks(20), far: rows}

    # When the period is that of the data
    period, found = without_outliers(given, Period(), MOST)

    # Then the report is about the twenty, and says what it leaves out
    assert period == Period(MONDAY, MONDAY + timedelta(weeks=19))
    assert found is not None
    assert (found.rows, len(found.weeks)) == (rows, 1)
    assert str(found) == f"{rows} of {found.weeks[0]}"


@pytest.mark.parametrize("count", [1, 20, 106, 520])
def test_data_without_a_gap_has_no_outliers(count: int) -> None:
    assert without_outliers(weeks(count), Period(), MOST) == (Period(), None)


def test_what_fits_on_the_page_is_never_left_out() -> None:
    given = {MONDAY: 1, MONDAY + timedelta(weeks=100): 1_000}
    assert without_outliers(given, Period(), MOST) == (Period(), None)


def test_an_end_that_was_asked_for_stays() -> None:
    # Given a first week that is decades before all data
    asked = Period(date(1971, 3, 1), None)
    given = {**weeks(20), date(1971, 3, 1): 1}

    # Then it is what the report begins with, and only the other end may be cut
    assert without_outliers(given, asked, MOST) == (asked, None)
    period, found = without_outliers({**given, date(2190, 1, 4): 1}, asked, MOST)
    assert period == Period(date(1971, 3, 1), MONDAY + timedelta(weeks=19))
    assert found == Outliers(1, ["2190-W01"])


def test_no_data_has_no_outliers() -> None:
    assert without_outliers({}, Period(), MOST) == (Period(), None)
