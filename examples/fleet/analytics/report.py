"""The datasets of a fleet report, each written before the next is made from it.

Everything that is read twice is written first: if a plan ran twice on an input that grows, the parts of the
report would not add up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

from pyarrow import fs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from examples.fleet.analytics import asking, odometer, rollups
from examples.fleet.analytics.asking import AskedFleet
from examples.fleet.analytics.checking import CORRUPT, check, read, rejected_rows, valid_rows
from examples.fleet.analytics.ranking import rank
from examples.fleet.analytics.telemetry import FILL_UPS, REJECTS, TRIPS, Feed, Reason
from examples.fleet.analytics.weeks import Period, week_of
from fanin.errors import InvalidRequest
from fanin.spark import Dataset, RejectLimit, Service


class Scope(NamedTuple):
    """What a report is about: weeks, and fleets by name; without names it is about all fleets."""

    period: Period
    fleets: Sequence[str]

    def includes(self, column: str) -> Column:
        """Whether the fleet in a column is one of these; null only if the column is."""
        return F.col(column).isin(*self.fleets) if self.fleets else F.lit(True)

    def select(self, rows: DataFrame) -> DataFrame:
        """The rows of these fleets."""
        return rows.where(self.includes("fleet"))


DATASETS: Final = (
    "checked/trips",
    "checked/fill_ups",
    "checked/vehicle_week",
    "checked/odometer",
    "rejects",
    "answers",
    "vehicle",
    "vehicle_week",
    "fleet",
    "fleet_week",
    "fleet_before",
    "missing",
    "ranking",
    "odometer",
)
"""All that is written beside the page."""


PAGE: Final = "report.html"
SIGN: Final = '<meta name="generator" content="fanin">'
"""A folder is that of an earlier report if it has a page with this sign."""
_BEGUN: Final = f"<!doctype html>{SIGN}<title>Fleet report</title><p>This report is being made."


class Output:
    """The folder of a report.

    Args:
        spark: the session.
        folder: for all files; what an earlier run left there is replaced.

    Raises:
        InvalidRequest: something else than a report is in the folder, which stays as it is.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self.spark, self._folder = spark, folder.rstrip("/")
        if "://" in folder:
            self._files, self._place = fs.FileSystem.from_uri(self._folder.replace("s3a://", "s3://"))
        else:
            self._files, self._place = fs.LocalFileSystem(), self._folder.removeprefix("file:")
        there = self._files.get_file_info(fs.FileSelector(self._place, allow_not_found=True))
        others = sorted(one.base_name for one in there if not one.base_name.startswith((".", "_")))
        if others and not self._is_report():
            raise InvalidRequest(
                f"{folder} is not the folder of a report, and has {others[0]}, which the job might replace;"
                " name another folder"
            )

    def _is_report(self) -> bool:
        page = f"{self._place}/{PAGE}"
        if self._files.get_file_info(page).type != fs.FileType.File:
            return False
        with self._files.open_input_stream(page) as file:
            return SIGN.encode() in file.read()

    def begin(self) -> None:
        """Put a first page there, so that a run after one that died finds a report."""
        self.write_page(_BEGUN)

    def write_page(self, text: str) -> None:
        self._files.create_dir(self._place)
        with self._files.open_output_stream(f"{self._place}/{PAGE}") as file:
            file.write(text.encode())

    @property
    def replaced(self) -> dict[str, str]:
        """The folders that the job replaces, each with the option that names it."""
        return {self.path(name): "--output" for name in DATASETS}

    def path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def write(self, name: str, rows: DataFrame) -> DataFrame:
        """Write a dataset, and give the DataFrame that reads it."""
        rows.write.mode("overwrite").parquet(self.path(name))
        return self.spark.read.schema(rows.schema).parquet(self.path(name))

    def rejects(self) -> DataFrame:
        return self.spark.read.schema(REJECTS).parquet(self.path("rejects"))


@dataclass(frozen=True)
class Facts:
    """What came in.

    Attributes:
        trips: of ``checking.check``.
        fill_ups: likewise.
        weeks: of ``rollups.vehicle_weeks``: all weeks of the vehicles that are reported on, those outside the
            period among them.
        rejects: reason → number of rows that are left out.
    """

    trips: DataFrame
    fill_ups: DataFrame
    weeks: DataFrame
    rejects: dict[str, int]

    def tally(self, scope: Scope) -> tuple[int, int]:
        """Count the rows that came in; and those that count, but are of other weeks or fleets."""
        both = [
            judged.select("fleet", "reason", week_of(feed.at).alias("week"))
            for judged, feed in ((self.trips, TRIPS), (self.fill_ups, FILL_UPS))
        ]
        elsewhere = F.col("reason").isNull() & ~(scope.period.holds("week") & scope.includes("fleet"))
        counts = both[0].unionByName(both[1]).agg(F.count("*"), F.count_if(elsewhere)).collect()[0]
        return counts[0], counts[1]


class Source(NamedTuple):
    """A dataset, if there is one, and what its columns are."""

    input: Dataset | None
    feed: Feed


def read_facts(
    output: Output, trips: Source, fill_ups: Source, scope: Scope, max_rejects: RejectLimit
) -> Facts:
    """Check all rows, write the rejects, and add up the others.

    Raises:
        InvalidRequest: a dataset cannot be read, or lacks a column.
        TooManyRejects: too many rows are left out.
    """
    judged = [
        output.write(f"checked/{source.feed.name}", _checked(output, source)) for source in (trips, fill_ups)
    ]
    reasons = judged[0].select("reason").unionByName(judged[1].select("reason"))
    counts: dict[str | None, int] = dict(map(tuple, reasons.groupBy("reason").count().collect()))
    refused = {reason: count for reason, count in counts.items() if reason is not None}
    output.write("rejects", rejected_rows(judged[0]).unionByName(rejected_rows(judged[1])))
    # A row that a later one corrects is no sign of a dataset that was read wrongly, like a repeat.
    wrong = {reason: count for reason, count in refused.items() if reason != Reason.CORRECTED}
    max_rejects.check(wrong, sum(counts.values()), output.path("rejects"), output.spark)
    weeks = rollups.vehicle_weeks(
        scope.select(valid_rows(judged[0], TRIPS)), scope.select(valid_rows(judged[1], FILL_UPS))
    )
    return Facts(judged[0], judged[1], output.write("checked/vehicle_week", weeks), refused)


def _checked(output: Output, source: Source) -> DataFrame:
    if source.input is None:
        raw = output.spark.createDataFrame(
            [], ", ".join(f"{name} string" for name in [*source.feed.sources, CORRUPT])
        )
    else:
        raw = read(output.spark, source.input, source.feed, output.replaced)
    return check(raw, source.feed)


@dataclass(frozen=True)
class Datasets:
    """The datasets of the report.

    Attributes:
        weeks: Mondays of the period.
        vehicle: of ``rollups.vehicle_totals``.
        vehicle_week: of ``rollups.vehicle_weeks``.
        fleet_week: of ``rollups.fleet_weeks``.
        fleet: of ``rollups.fleets``.
        missing: of ``rollups.missing``.
        weeks_before: Mondays of the period before; empty if the data do not reach back so far.
        fleet_before: of ``rollups.fleets``, of the period before; no rows if there is none.
        vehicle_before: of ``rollups.vehicle_totals``, likewise; None if there is none.
        ranking: of ``ranking.rank``.
        readings: of ``odometer.readings``, those of the period.
        odometer: of ``odometer.findings``.
    """

    weeks: list[date]
    vehicle: DataFrame
    vehicle_week: DataFrame
    fleet_week: DataFrame
    fleet: DataFrame
    missing: DataFrame
    weeks_before: list[date]
    fleet_before: DataFrame
    vehicle_before: DataFrame | None
    ranking: DataFrame
    readings: DataFrame
    odometer: DataFrame


def write_datasets(output: Output, facts: Facts, asked: Sequence[AskedFleet], scope: Scope) -> Datasets:
    """Collect what the vehicles said, and roll everything up.

    Args:
        output: where the datasets go.
        facts: what came in.
        asked: of ``asking.ask_fleets``; empty if nobody was asked.
        scope: of the report.

    Raises:
        NotConfigured: vehicles were asked, and the environment names no tables for the tasks.
    """
    spark = output.spark
    said = asking.gather_answers(spark, asked, Service.from_env()) if asked else asking.no_answers(spark)
    answers = output.write("answers", said)
    vehicle = output.write("vehicle", rollups.vehicle_totals(facts.weeks, scope.period, answers))
    weekly = output.write("vehicle_week", facts.weeks.where(scope.period.holds("week")))
    ends = weekly.agg(F.min("week"), F.max("week")).head()
    weeks = scope.period.within(ends[0], ends[1]) if ends and ends[0] else []
    weeks_before, before = _before(facts, weeks, answers)
    fleet = output.write("fleet", rollups.fleets(vehicle, len(weeks)))
    fleet_before = fleet.where("false") if before is None else rollups.fleets(before, len(weeks))
    readings = output.write("checked/odometer", _readings(facts, scope))
    return Datasets(
        weeks=weeks,
        vehicle=vehicle,
        vehicle_week=weekly,
        fleet_week=output.write("fleet_week", rollups.fleet_weeks(weekly, vehicle)),
        fleet=fleet,
        missing=output.write("missing", rollups.missing(vehicle, answers)),
        weeks_before=weeks_before,
        fleet_before=output.write("fleet_before", fleet_before),
        vehicle_before=before,
        ranking=output.write("ranking", rank(vehicle, before, len(weeks))),
        readings=readings,
        odometer=output.write("odometer", odometer.findings(readings)),
    )


def _before(facts: Facts, weeks: list[date], asked: DataFrame) -> tuple[list[date], DataFrame | None]:
    """The weeks before a period, and what each vehicle did in them, if the data reach back to the first."""
    if not weeks:
        return [], None
    period = Period.before(weeks)
    if facts.weeks.where(F.col("week") == F.lit(period.first)).isEmpty():
        return [], None
    return period.within(weeks[0], weeks[0]), rollups.vehicle_totals(facts.weeks, period, asked)


def _readings(facts: Facts, scope: Scope) -> DataFrame:
    """The odometer readings of a period; without any, no trip is looked at."""
    trips = scope.select(facts.trips.where(F.col("reason").isNull()))
    if "odometer_m" not in trips.columns:
        trips = trips.withColumn("odometer_m", F.lit(None).cast("long"))
    if trips.where("odometer_m IS NOT NULL").isEmpty():
        trips = trips.limit(0)
    return odometer.within(odometer.readings(trips), scope.period)
