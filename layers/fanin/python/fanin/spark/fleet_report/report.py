"""The datasets of a fleet report, each written before the next is made from it, and the page's figures.

Whatever is read twice is read from what was written: a plan that runs twice over an input that grows would
give a report whose parts do not add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.fleet_report import asking
from fanin.spark.fleet_report import rollups as fleet
from fanin.spark.fleet_report.asking import Asked
from fanin.spark.fleet_report.checking import CORRUPT, checked, counted, left_out, read
from fanin.spark.fleet_report.html_page import FLEETS, LISTED, WEEKS, Report
from fanin.spark.fleet_report.telemetry import FILL_UPS, TRIPS, Feed
from fanin.spark.fleet_report.weeks import Period, week_of
from fanin.spark.runtime import rejects
from fanin.spark.runtime.formats import DatasetFormat
from fanin.spark.runtime.service import Service

REASONS: Final = 50
"""Kinds of rows left out that the page tells apart."""


class Scope(NamedTuple):
    """What a report is about: weeks, and fleets by name; no fleets are all."""

    period: Period
    fleets: Sequence[str]

    def names(self, column: str) -> Column:
        """Whether the fleet in a column is one of these; never null where the column is not."""
        return F.col(column).isin(*self.fleets) if self.fleets else F.lit(True)

    def of(self, rows: DataFrame) -> DataFrame:
        """Those of the fleets."""
        return rows.where(self.names("fleet"))


@dataclass(frozen=True)
class Output:
    """The folder of a report.

    Attributes:
        spark: the session.
        folder: where all goes; what an earlier run left is replaced.
    """

    spark: SparkSession
    folder: str

    def path(self, name: str) -> str:
        return f"{self.folder.rstrip('/')}/{name}"

    def kept(self, name: str, rows: DataFrame) -> DataFrame:
        """Write a dataset, and give it as it was written."""
        rows.write.mode("overwrite").parquet(self.path(name))
        return self.spark.read.schema(rows.schema).parquet(self.path(name))

    def rejects(self) -> DataFrame:
        return self.spark.read.schema(rejects.SCHEMA).parquet(self.path("rejects"))


@dataclass(frozen=True)
class Facts:
    """What came in.

    Attributes:
        trips: judged, as ``checking.checked`` gives them.
        fill_ups: likewise.
        weeks: of all vehicles that are reported on, also those outside the period: ``fleet.vehicle_weeks``.
        refused: how many rows are left out, by reason.
    """

    trips: DataFrame
    fill_ups: DataFrame
    weeks: DataFrame
    refused: dict[str, int]

    def tally(self, scope: Scope) -> tuple[int, int]:
        """How many rows came in; and how many count, but are of other weeks or fleets."""
        both = [
            judged.select("fleet", "reason", week_of(feed.at).alias("week"))
            for judged, feed in ((self.trips, TRIPS), (self.fill_ups, FILL_UPS))
        ]
        elsewhere = F.col("reason").isNull() & ~(scope.period.holds("week") & scope.names("fleet"))
        counts = both[0].unionByName(both[1]).agg(F.count("*"), F.count_if(elsewhere)).collect()[0]
        return counts[0], counts[1]


class Source(NamedTuple):
    """A dataset: where it is, what its columns are, and its format where the suffix does not say."""

    path: str | None
    feed: Feed
    format: DatasetFormat | None = None


def facts(output: Output, trips: Source, fill_ups: Source, scope: Scope) -> Facts:
    """Judge all rows, set those aside that are left out, and add up the others.

    Raises:
        InvalidRequest: a dataset cannot be read, or lacks a column.
    """
    judged = [
        output.kept(f"checked/{source.feed.name}", _judged(output.spark, source))
        for source in (trips, fill_ups)
    ]
    refused = rejects.write_rejects(
        left_out(judged[0]).unionByName(left_out(judged[1])), output.path("rejects")
    )
    weeks = fleet.vehicle_weeks(scope.of(counted(judged[0], TRIPS)), scope.of(counted(judged[1], FILL_UPS)))
    return Facts(judged[0], judged[1], output.kept("checked/vehicle_week", weeks), refused)


def _judged(spark: SparkSession, source: Source) -> DataFrame:
    if source.path is None:
        raw = spark.createDataFrame(
            [], ", ".join(f"{name} string" for name in [*source.feed.sources, CORRUPT])
        )
    else:
        raw = read(spark, source.path, source.feed, source.format)
    return checked(raw, source.feed)


@dataclass(frozen=True)
class Datasets:
    """What the report says, in full; the columns are those of the functions of ``rollups``.

    Attributes:
        weeks: Mondays of the period.
        vehicle: of ``fleet.books``.
        vehicle_week: of ``fleet.vehicle_weeks``.
        fleet_week: of ``fleet.fleet_weeks``.
        fleet: of ``fleet.fleets``.
        missing: of ``fleet.missing``.
    """

    weeks: list[date]
    vehicle: DataFrame
    vehicle_week: DataFrame
    fleet_week: DataFrame
    fleet: DataFrame
    missing: DataFrame


def datasets(output: Output, found: Facts, asked: Sequence[Asked], scope: Scope) -> Datasets:
    """Gather what the vehicles said, and roll everything up.

    Args:
        output: where the datasets go.
        found: what came in.
        asked: whom ``asking.ask`` has asked; empty if nobody was.
        scope: of the report.

    Raises:
        NotConfigured: vehicles were asked, and the environment names no tables for the tasks.
    """
    spark = output.spark
    said = asking.gathered(spark, asked, Service.from_env()) if asked else asking.nobody(spark)
    answers = output.kept("answers", said)
    vehicle = output.kept("vehicle", fleet.books(found.weeks, scope.period, answers))
    weekly = output.kept("vehicle_week", found.weeks.where(scope.period.holds("week")))
    ends = weekly.agg(F.min("week"), F.max("week")).head()
    weeks = scope.period.within(ends[0], ends[1]) if ends and ends[0] else []
    return Datasets(
        weeks=weeks,
        vehicle=vehicle,
        vehicle_week=weekly,
        fleet_week=output.kept("fleet_week", fleet.fleet_weeks(weekly, vehicle)),
        fleet=output.kept("fleet", fleet.fleets(vehicle, len(weeks))),
        missing=output.kept("missing", fleet.missing(vehicle, answers)),
    )


def report(
    output: Output,
    found: Facts,
    made: Datasets,
    asked: Sequence[Asked],
    scope: Scope,
    *,
    title: str,
    currency: str,
) -> Report:
    """What the page shows: of fleets, weeks, vehicles and reasons never more than it has room for."""
    top = made.fleet.orderBy(F.desc("distance_m"), "fleet").limit(FLEETS).collect()
    of_top = F.col("fleet").isin([row["fleet"] for row in top])
    by_fleet: dict[str, dict[str, int]] = {}
    missing: Counter[str] = Counter()
    shown = made.missing.withColumn("fleet", F.when(of_top, F.col("fleet")))
    for name, why, count in shown.groupBy("fleet", "why").count().collect():
        missing[why] += count
        if name is not None:
            by_fleet.setdefault(name, {})[why] = count
    reasons = output.rejects().groupBy("reason", "detail").count()
    rows, outside = found.tally(scope)
    return Report(
        title=title,
        weeks=made.weeks,
        fleets=_rows(top),
        total=total(made.vehicle, len(made.weeks)),
        fleet_count=made.fleet.count(),
        fleet_weeks=_rows(made.fleet_week.where(of_top).collect()) if len(made.weeks) <= WEEKS else [],
        missing=by_fleet,
        missing_count=missing,
        listed=_rows(made.missing.orderBy("fleet", "vehicle").limit(LISTED).collect()),
        asked=asked,
        rejects=_rows(reasons.orderBy(F.desc("count"), "reason", "detail").limit(REASONS).collect()),
        rows=rows,
        outside=outside,
        currency=currency,
    )


def total(vehicles: DataFrame, weeks: int) -> dict[str, Any]:
    """All fleets together, as if they were one; nothing but zeros where there are no vehicles."""
    nothing = dict.fromkeys(("vehicles", "active", *fleet.SUMS, "fuelled_m"), 0)
    ratios = dict.fromkeys(("utilisation", "l_per_100km", "cost_per_100km"))
    one = fleet.fleets(vehicles.withColumn("fleet", F.lit("")), weeks).drop("fleet").head()
    return {**nothing, **ratios} if one is None else one.asDict()


def _rows(rows: Sequence[Any]) -> list[dict[str, Any]]:
    return [row.asDict() for row in rows]
