"""Vehicles in the order of what they drove."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from examples.fleet.analytics.rollups import VEHICLE
from examples.fleet.analytics.weeks import SECONDS

RANKED: Final = 10
"""Vehicles at each end of the ranking that the page shows; the dataset has all."""
_BEFORE: Final = ("trips", "distance_m", "duration_s")


def rank(vehicles: DataFrame, before: DataFrame | None, weeks: int) -> DataFrame:
    """Rank all vehicles, farthest first; those that drove as far by trips, then by fleet and name.

    Args:
        vehicles: of ``rollups.vehicle_totals``.
        before: the same of the period before; None if there is none.
        weeks: how many weeks the period has.

    Returns:
        ``rank`` from 1, fleet, vehicle, trips, ``distance_m``, ``duration_s``; ``week_share``, the share of
        the period's hours that it was under way; ``distance_share``, its share of what all drove, null if
        nobody drove; and ``trips_before``, ``distance_m_before`` and ``duration_s_before``, null if there is
        no period before.
    """
    # One task ranks them all. A row is some hundred bytes, and a sort spills to disk. Spark would warn of a
    # window without partitions, so it gets one partition, by what is the same for all.
    every = Window.partitionBy(F.col("fleet").isNull())
    order = every.orderBy(F.desc("distance_m"), F.desc("trips"), *VEHICLE)
    ranked = vehicles.select(
        F.row_number().over(order).alias("rank"),
        *VEHICLE,
        *_BEFORE,
        F.try_divide("duration_s", F.lit(weeks * SECONDS)).alias("week_share"),
        F.try_divide("distance_m", F.sum("distance_m").over(every)).alias("distance_share"),
    )
    if before is None:
        return ranked.select("*", *(F.lit(None).cast("long").alias(f"{name}_before") for name in _BEFORE))
    earlier = before.select(*VEHICLE, *(F.col(name).alias(f"{name}_before") for name in _BEFORE))
    return ranked.join(earlier, VEHICLE, "left").select(*ranked.columns, *earlier.columns[len(VEHICLE) :])
