"""ISO weeks (ISO 8601): from Monday to Sunday, in UTC; week 1 has the year's first Thursday."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Self

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.errors import InvalidRequest

SECONDS: Final = 7 * 86_400
_FORM: Final = re.compile(r"(\d{4})-W(\d{2})", re.ASCII)


def monday(text: str) -> date:
    """The first day of a week.

    Args:
        text: for example ``2013-W46``.

    Raises:
        InvalidRequest: the text is not an ISO week.
    """
    match = _FORM.fullmatch(text)
    try:
        if match is not None:
            return date.fromisocalendar(int(match[1]), int(match[2]), 1)
    except ValueError:
        pass  # week 53 of a year with 52 weeks, or week 0
    raise InvalidRequest(f"{text!r} is not an ISO week; write it like 2013-W46")


def label(day: date) -> str:
    """A week as people write it, ``2013-W46``."""
    year, week, _ = day.isocalendar()
    return f"{year:04}-W{week:02}"


def week_of(column: str) -> Column:
    """The Monday of the week of a timestamp. The session's time zone must be UTC."""
    return F.date_trunc("week", F.col(column)).cast("date")


@dataclass(frozen=True)
class Period:
    """The weeks that a report is about.

    Attributes:
        first: Monday of the first week; None begins with the data.
        last: Monday of the last week; None ends with the data.
    """

    first: date | None = None
    last: date | None = None

    @classmethod
    def parse(cls, first: str | None, last: str | None) -> Self:
        """Read weeks as people write them.

        Raises:
            InvalidRequest: one is not an ISO week, or the last comes before the first.
        """
        period = cls(monday(first) if first else None, monday(last) if last else None)
        if period.first and period.last and period.first > period.last:
            raise InvalidRequest(f"the first week {first} is after the last week {last}; swap them")
        return period

    def __str__(self) -> str:
        if self.first == self.last:
            return label(self.first) if self.first else "all"
        return f"{label(self.first) if self.first else ''}..{label(self.last) if self.last else ''}"

    def holds(self, column: str) -> Column:
        """Whether the week in a column belongs to the period; null only if the column is."""
        found = F.lit(True)
        if self.first:
            found &= F.col(column) >= F.lit(self.first)
        if self.last:
            found &= F.col(column) <= F.lit(self.last)
        return found

    @classmethod
    def before(cls, weeks: Sequence[date]) -> Self:
        """As many weeks as these, immediately before them.

        Args:
            weeks: Mondays without a gap, at least one.
        """
        return cls(weeks[0] - timedelta(weeks=len(weeks)), weeks[0] - timedelta(weeks=1))

    def within(self, first: date, last: date) -> list[date]:
        """The Mondays of the period's weeks, for data that begins and ends in these weeks."""
        first, last = self.first or first, self.last or last
        return [first + timedelta(weeks=n) for n in range((last - first).days // 7 + 1)]
