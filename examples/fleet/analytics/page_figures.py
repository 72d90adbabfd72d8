"""The figures of the page, collected from the datasets: as many as fit on it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from examples.fleet.analytics import rollups
from examples.fleet.analytics.asking import AskedFleet
from examples.fleet.analytics.contents import FLEETS, LISTED, WEEKS, Odometers, Ranked, Report, charted
from examples.fleet.analytics.ranking import RANKED
from examples.fleet.analytics.report import Datasets, Facts, Output, Scope
from examples.fleet.analytics.telemetry import Reason

REASONS: Final = 50
"""Most reasons for rejects that the page lists."""
FINDINGS: Final = 50
"""Odometer findings that the page lists."""


def build_report(
    output: Output,
    facts: Facts,
    made: Datasets,
    asked: Sequence[AskedFleet],
    scope: Scope,
    *,
    title: str,
    currency: str,
    outliers: str = "",
) -> Report:
    """Collect what the page shows: as many fleets, weeks, vehicles and reasons as fit on it."""
    top = _first(made.fleet.orderBy(F.desc("distance_m"), "fleet"), FLEETS)
    of_top = F.col("fleet").isin([row["fleet"] for row in top])
    by_fleet: dict[str, dict[str, int]] = {}
    missing: Counter[str] = Counter()
    shown = made.missing.withColumn("fleet", F.when(of_top, F.col("fleet")))
    for name, why, count in shown.groupBy("fleet", "why").count().collect():
        missing[why] += count
        if name is not None:
            by_fleet.setdefault(name, {})[why] = count
    rows, outside = facts.tally(scope)
    drawn = charted([row["fleet"] for row in top]) if len(made.weeks) <= WEEKS else []
    before = made.vehicle_before
    return Report(
        title=title,
        weeks=made.weeks,
        fleets=top,
        total=total(made.vehicle, len(made.weeks)),
        fleet_count=len(top) if len(top) < FLEETS else made.fleet.count(),
        fleet_weeks=_rows(made.fleet_week.where(F.col("fleet").isin(list(drawn))).collect()) if drawn else [],
        other_weeks=_other_weeks(made, drawn) if drawn else [],
        missing=by_fleet,
        missing_count=missing,
        listed=_first(made.missing.orderBy("fleet", "vehicle"), LISTED) if missing else [],
        asked=asked,
        rejects=_reasons(output.rejects()) if facts.rejects else [],
        rows=rows,
        outside=outside,
        currency=currency,
        outliers=outliers,
        corrected=facts.rejects.get(Reason.CORRECTED, 0),
        weeks_before=made.weeks_before,
        total_before=None if before is None else total(before, len(made.weeks)),
        fleets_before={row["fleet"]: row for row in _fleets_before(made, of_top)},
        ranked=_ranked(made.ranking),
        odometers=_odometers(made),
    )


def total(vehicles: DataFrame, weeks: int) -> dict[str, Any]:
    """All fleets together, as if they were one; zeros if there are no vehicles."""
    nothing = dict.fromkeys(("vehicles", "active", *rollups.SUMS, "fuelled_m"), 0)
    ratios = dict.fromkeys(("utilisation", "l_per_100km", "cost_per_100km"))
    one = rollups.fleets(vehicles.withColumn("fleet", F.lit("")), weeks).drop("fleet").head()
    return {**nothing, **ratios} if one is None else one.asDict()


def _other_weeks(made: Datasets, drawn: Sequence[str]) -> list[dict[str, Any]]:
    """The weeks of all fleets without a series of their own, together."""
    others = ~F.col("fleet").isin(list(drawn))
    vehicles = made.fleet.where(others).agg(F.sum("vehicles")).collect()[0][0]
    sums = [F.sum(name).alias(name) for name in (*rollups.SUMS, "fuelled_m")]
    added = made.fleet_week.where(others).groupBy("week").agg(*sums).withColumn("vehicles", F.lit(vehicles))
    return _rows(added.select("week", *rollups.SUMS, *rollups.ratios(F.lit(1))).collect())


def _fleets_before(made: Datasets, of_top: Column) -> list[dict[str, Any]]:
    if made.vehicle_before is None:
        return []
    return _rows(made.fleet_before.where(of_top).collect())


def _reasons(rejects: DataFrame) -> list[dict[str, Any]]:
    """The commonest reasons, with their details and counts."""
    counts = rejects.groupBy("reason", "detail").count()
    return _first(counts.orderBy(F.desc("count"), "reason", "detail"), REASONS)


def _ranked(ranking: DataFrame) -> Ranked:
    """The ends of the ranking; if all vehicles fit, they are all in its top."""
    active = ranking.where("trips > 0")
    top = _first(active.orderBy("rank"), 2 * RANKED + 1)
    if len(top) <= 2 * RANKED:
        return Ranked(top, (), len(top))
    bottom = _first(active.orderBy(F.desc("rank")), RANKED)
    return Ranked(top[:RANKED], bottom[::-1], active.count())


def _odometers(made: Datasets) -> Odometers | None:
    readings, compared = made.readings.agg(F.count("*"), F.count("from_m")).collect()[0]
    if not readings:
        return None
    if not compared:
        return Odometers(0, {}, [])
    problems = {row["problem"]: row["count"] for row in made.odometer.groupBy("problem").count().collect()}
    listed = made.odometer.orderBy(*rollups.VEHICLE, "to_at", "to_trip")
    return Odometers(compared, problems, _first(listed, FINDINGS) if problems else [])


def _first(ordered: DataFrame, most: int) -> list[dict[str, Any]]:
    return _rows(ordered.limit(most).collect())


def _rows(rows: Sequence[Any]) -> list[dict[str, Any]]:
    return [row.asDict() for row in rows]
