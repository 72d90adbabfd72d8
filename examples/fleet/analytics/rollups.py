"""Rollups of telemetry: per vehicle and week, then per fleet and week, then per fleet.

Trips and fill-ups are added up to vehicle and week before they are joined, so that joins are small and a
vehicle's fill-ups never multiply its trips. Sums are of whole numbers; ratios are computed from them last.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from examples.fleet.analytics.weeks import SECONDS, Period, week_of

VEHICLE: Final = ["fleet", "vehicle"]
SUMS: Final = ["trips", "distance_m", "duration_s", "fill_ups", "volume_ml", "cost"]
"""What adds up: trips, metres, seconds, fill-ups, millilitres, hundredths of the currency."""


def vehicle_weeks(trips: DataFrame, fill_ups: DataFrame) -> DataFrame:
    """What each vehicle did in each week.

    Args:
        trips: with the columns of ``telemetry.TRIPS``; a trip counts for the week in which it began.
        fill_ups: with the columns of ``telemetry.FILL_UPS``.

    Returns:
        fleet, vehicle, week (its Monday) and ``SUMS``; a row for each vehicle and week that has data.
    """
    driven = trips.groupBy(*VEHICLE, week_of("started_at").alias("week")).agg(
        F.count("*").alias("trips"),
        F.sum("distance_m").alias("distance_m"),
        F.sum("duration_s").alias("duration_s"),
    )
    filled = fill_ups.groupBy(*VEHICLE, week_of("filled_at").alias("week")).agg(
        F.count("*").alias("fill_ups"), F.sum("volume_ml").alias("volume_ml"), F.sum("cost").alias("cost")
    )
    both = driven.join(filled, [*VEHICLE, "week"], "full")
    return both.select(*VEHICLE, "week", *(F.coalesce(name, F.lit(0)).alias(name) for name in SUMS))


def vehicle_totals(weeks: DataFrame, period: Period, asked: DataFrame) -> DataFrame:
    """What each vehicle that is known did in a period.

    Args:
        weeks: of ``vehicle_weeks``, those before and after the period among them.
        period: of the report.
        asked: fleet and vehicle of the vehicles in the directory; some may never have sent anything.

    Returns:
        fleet, vehicle, ``last_week`` with a trip or a fill-up, and ``SUMS`` over the period.
    """
    inside = period.holds("week")
    heard = weeks.groupBy(*VEHICLE).agg(
        F.max("week").alias("last_week"),
        *(F.sum(F.when(inside, F.col(name)).otherwise(0)).alias(name) for name in SUMS),
    )
    return heard.join(asked.select(*VEHICLE), VEHICLE, "full").select(
        *VEHICLE, "last_week", *(F.coalesce(name, F.lit(0)).alias(name) for name in SUMS)
    )


def fleet_weeks(weeks: DataFrame, vehicles: DataFrame) -> DataFrame:
    """What each fleet did in each week.

    Args:
        weeks: of ``vehicle_weeks``, those of the period.
        vehicles: of ``vehicle_totals``.

    Returns:
        fleet, week, ``vehicles`` (of the fleet), ``active`` (those with a trip), ``SUMS``, ``fuelled_m`` and
        the columns of ``ratios``.
    """
    fuelled = vehicles.where("fill_ups > 0").select(*VEHICLE, F.lit(True).alias("_fuelled"))
    size = vehicles.groupBy("fleet").agg(F.count("*").alias("vehicles"))
    added = (
        weeks.join(fuelled, VEHICLE, "left")
        .groupBy("fleet", "week")
        .agg(
            F.sum((F.col("trips") > 0).cast("long")).alias("active"),
            *(F.sum(name).alias(name) for name in SUMS),
            F.sum(F.when(F.col("_fuelled"), F.col("distance_m")).otherwise(0)).alias("fuelled_m"),
        )
        .join(F.broadcast(size), "fleet")
    )
    return added.select("fleet", "week", "vehicles", "active", *SUMS, "fuelled_m", *ratios(F.lit(1)))


def fleets(vehicles: DataFrame, weeks: int) -> DataFrame:
    """What each fleet did in the period.

    Args:
        vehicles: of ``vehicle_totals``.
        weeks: how many weeks the period has.

    Returns:
        fleet, ``vehicles``, ``active``, ``SUMS``, ``fuelled_m`` and the columns of ``ratios``.
    """
    added = vehicles.groupBy("fleet").agg(
        F.count("*").alias("vehicles"),
        F.sum((F.col("trips") > 0).cast("long")).alias("active"),
        *(F.sum(name).alias(name) for name in SUMS),
        F.sum(F.when(F.col("fill_ups") > 0, F.col("distance_m")).otherwise(0)).alias("fuelled_m"),
    )
    return added.select("fleet", "vehicles", "active", *SUMS, "fuelled_m", *ratios(F.lit(weeks)))


def ratios(weeks: Column) -> list[Column]:
    """Ratios of a fleet's sums; null where the divisor is zero.

    Consumption and cost are of the vehicles that filled up in the period; ``fuelled_m`` is what these drove.
    Otherwise a vehicle that reports no fill-ups would seem to need no fuel. Since fuel is filled in one week
    and burnt in the next, single weeks are rough; the period is not.

    Args:
        weeks: how many weeks the sums are over.

    Returns:
        ``utilisation``, the share of all the vehicles' hours that they were driven; ``l_per_100km``; and
        ``cost_per_100km`` in hundredths of the currency.
    """
    return [
        F.try_divide(F.col("duration_s"), F.col("vehicles") * weeks * SECONDS).alias("utilisation"),
        F.try_divide(F.col("volume_ml") * 100, F.col("fuelled_m")).alias("l_per_100km"),
        F.try_divide(F.col("cost") * 100_000, F.col("fuelled_m")).alias("cost_per_100km"),
    ]


def missing(vehicles: DataFrame, answers: DataFrame) -> DataFrame:
    """Which vehicles are missing, and why.

    Args:
        vehicles: of ``vehicle_totals``.
        answers: of ``asking.ANSWERS``. Vehicles of a fleet that was not asked are missing only if they are
            idle.

    Returns:
        fleet, vehicle, ``why``, ``detail``, ``last_week``; one row for each vehicle. ``why`` is ``failed``
        (it could not be asked), ``silent`` (it was asked and did not answer), ``unregistered`` (its fleet was
        asked, and it was not in the directory) or ``idle`` (it has no trip in the period).
    """
    asked = answers.select("fleet").distinct().withColumn("_asked", F.lit(True))
    why = (
        F.when(F.col("answer").isin("failed", "silent"), F.col("answer"))
        .when(F.col("_asked") & F.col("answer").isNull(), "unregistered")
        .when(F.col("trips") == 0, "idle")
    )
    return (
        vehicles.join(answers.select(*VEHICLE, "answer", "detail"), VEHICLE, "left")
        .join(F.broadcast(asked), "fleet", "left")
        .withColumn("why", why)
        .where(F.col("why").isNotNull())
        .select(*VEHICLE, "why", "detail", "last_week")
    )
