"""Rollups of telemetry: per vehicle and week, then per fleet and week, then per fleet.

Facts are added up to vehicle and week before anything is joined, so that joins are small and a vehicle's
fill-ups never multiply its trips. All sums are of whole numbers; ratios are taken from them last.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.fleet_report.weeks import SECONDS, Period, week_of

VEHICLE: Final = ["fleet", "vehicle"]
SUMS: Final = ["trips", "distance_m", "duration_s", "fill_ups", "volume_ml", "cost"]
"""What adds up: trips, metres, seconds, fill-ups, millilitres, hundredths of the currency."""


def vehicle_weeks(trips: DataFrame, fill_ups: DataFrame) -> DataFrame:
    """What each vehicle did in each week.

    Args:
        trips: with the columns of ``telemetry.TRIPS``; a trip is of the week in which it began.
        fill_ups: with the columns of ``telemetry.FILL_UPS``.

    Returns:
        fleet, vehicle, week (its Monday) and ``SUMS``; a row wherever there is a trip or a fill-up.
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


def books(weeks: DataFrame, period: Period, asked: DataFrame) -> DataFrame:
    """Every vehicle that is known, and what it did in a period.

    Args:
        weeks: of ``vehicle_weeks``, also those before and after the period.
        period: of the report.
        asked: fleet and vehicle of those that the directory knew, which may have sent nothing ever.

    Returns:
        fleet, vehicle, ``last_week`` in which there is something of it, and ``SUMS`` over the period.
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
        vehicles: of ``books``.

    Returns:
        fleet, week, ``vehicles`` (of the fleet), ``active`` (those with a trip), ``SUMS``, ``fuelled_m`` and
        what ``ratios`` gives.
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
        vehicles: of ``books``.
        weeks: how many the period has.

    Returns:
        fleet, ``vehicles``, ``active``, ``SUMS``, ``fuelled_m`` and the ratios of ``ratios``.
    """
    added = vehicles.groupBy("fleet").agg(
        F.count("*").alias("vehicles"),
        F.sum((F.col("trips") > 0).cast("long")).alias("active"),
        *(F.sum(name).alias(name) for name in SUMS),
        F.sum(F.when(F.col("fill_ups") > 0, F.col("distance_m")).otherwise(0)).alias("fuelled_m"),
    )
    return added.select("fleet", "vehicles", "active", *SUMS, "fuelled_m", *ratios(F.lit(weeks)))


def ratios(weeks: Column) -> list[Column]:
    """What follows from the sums of a fleet; null where there is nothing to divide by.

    Consumption and cost are of those vehicles only that filled up in the period, ``fuelled_m`` being what
    they drove: a vehicle that reports no fill-ups would else seem to drive on nothing. Fuel that is filled in
    one week and burnt in the next makes single weeks rough, and the period right.

    Args:
        weeks: how many the sums are over.

    Returns:
        ``utilisation``, the share of their vehicles' time that was driven; ``l_per_100km``; and
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
        vehicles: of ``books``.
        answers: of ``asking.ANSWERS``, whoever was asked. A fleet of which nobody was is not held to it.

    Returns:
        fleet, vehicle, ``why``, ``detail``, ``last_week``; one row a vehicle. ``why`` is ``failed`` (it could
        not be asked), ``silent`` (it was asked and did not answer), ``unregistered`` (its fleet was asked,
        and the directory did not know it) or ``idle`` (it has no trip in the period).
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
