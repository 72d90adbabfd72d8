"""Weeks so far from all others that a report of the time between would show nothing: a clock was wrong."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from examples.fleet.analytics.weeks import Period, label

LEAST: Final = 52
"""Weeks within which nothing is an outlier."""
_FAR: Final = 3
"""Quartile ranges beyond a quartile; what lies there is far out (Tukey, Exploratory Data Analysis, 1977)."""
_NAMED: Final = 5


class Outliers(NamedTuple):
    """Rows that a report leaves out because of their time.

    Attributes:
        rows: how many.
        weeks: the first of their weeks, as people write them.
    """

    rows: int
    weeks: list[str]

    def __str__(self) -> str:
        return f"{self.rows} of {', '.join(self.weeks)}"


def rows_by_week(weeks: DataFrame) -> dict[date, int]:
    """How many trips and fill-ups there are in each week of ``rollups.vehicle_weeks``."""
    added = weeks.groupBy("week").agg(F.sum(F.col("trips") + F.col("fill_ups")).alias("rows"))
    return {row["week"]: row["rows"] for row in added.collect()}


def without_outliers(rows: Mapping[date, int], period: Period, most: int) -> tuple[Period, Outliers | None]:
    """The period of a report, without the weeks that are outliers.

    Args:
        rows: of ``rows_by_week``.
        period: what was asked for; an end that is given stays as it is.
        most: weeks that a report can show; as long as all fit in, there are no outliers.
    """
    inside = sorted(
        week
        for week in rows
        if not ((period.first and week < period.first) or (period.last and week > period.last))
    )
    if not inside or (inside[-1] - inside[0]).days // 7 < most:
        return period, None
    lower, upper = (_quantile(rows, inside, share) for share in (0.25, 0.75))
    reach = max(_FAR * (upper - lower), timedelta(weeks=LEAST))
    near = [
        week
        for week in inside
        if (period.first or week >= lower - reach) and (period.last or week <= upper + reach)
    ]
    far = [week for week in inside if week not in set(near)]
    if not far:
        return period, None
    found = Outliers(sum(rows[week] for week in far), [label(week) for week in far[:_NAMED]])
    return Period(period.first or near[0], period.last or near[-1]), found


def _quantile(rows: Mapping[date, int], weeks: list[date], share: float) -> date:
    """The week that so large a share of the rows is not after."""
    wanted, seen = share * sum(rows[week] for week in weeks), 0
    for week in weeks:
        seen += rows[week]
        if seen >= wanted:
            return week
    return weeks[-1]
