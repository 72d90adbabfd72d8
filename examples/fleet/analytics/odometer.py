"""Odometers that do not agree with the trips: they are named, and no figure is made from them."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from examples.fleet.analytics.rollups import VEHICLE
from examples.fleet.analytics.weeks import Period, week_of

TOLERANCE_M: Final = 2_000
"""Metres by which two readings may disagree with the trips between them; many odometers show kilometres."""
TOLERANCE_PERCENT: Final = 5
"""The same as a share of what the trips drove; the larger of both counts."""
BACKWARDS: Final = "backwards"
DISAGREES: Final = "disagrees"
PROBLEMS: Final = (BACKWARDS, DISAGREES)


def readings(trips: DataFrame) -> DataFrame:
    """Odometer readings, each with the one before it.

    Args:
        trips: with all columns of ``telemetry.TRIPS``. A reading is of the end of its trip.

    Returns:
        fleet, vehicle; ``from_trip``, ``from_at`` and ``from_m`` of the reading before, null for a vehicle's
        first; ``to_trip``, ``to_at`` and ``to_m``; ``driven_m``, what the trips after the reading before add
        up to, this one included. A row for each trip with a reading.
    """
    in_order = Window.partitionBy(*VEHICLE).orderBy("started_at", "trip_id")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    read = trips.withColumn("_driven", F.sum("distance_m").over(so_far)).where("odometer_m IS NOT NULL")

    def before(column: str) -> Column:
        return F.lag(column).over(in_order)

    return read.select(
        *VEHICLE,
        before("trip_id").alias("from_trip"),
        before("started_at").alias("from_at"),
        before("odometer_m").alias("from_m"),
        F.col("trip_id").alias("to_trip"),
        F.col("started_at").alias("to_at"),
        F.col("odometer_m").alias("to_m"),
        (F.col("_driven") - before("_driven")).alias("driven_m"),
    )


def within(read: DataFrame, period: Period) -> DataFrame:
    """The readings of a period; the first of a vehicle is compared with the last one before the period."""
    week = week_of("to_at").alias("_week")
    return read.select("*", week).where(period.holds("_week")).drop("_week")


def findings(read: DataFrame) -> DataFrame:
    """Pairs of readings that cannot be true together, or not together with the trips.

    Args:
        read: of ``readings``.

    Returns:
        The same columns, and ``problem``: ``backwards``, or ``disagrees`` beyond the tolerance. If trips are
        missing or were left out, the odometer has rightly gone farther than the trips; it is a finding too.
    """
    shown = F.col("to_m") - F.col("from_m")
    tolerance = F.greatest(F.lit(TOLERANCE_M), F.col("driven_m") * TOLERANCE_PERCENT / 100)
    problem = F.when(shown < 0, BACKWARDS).when(F.abs(shown - F.col("driven_m")) > tolerance, DISAGREES)
    return read.withColumn("problem", problem).where(F.col("problem").isNotNull())
