"""A report of some rows: two fleets, one week, and what is wrong with some of the rows."""

from pathlib import Path

from pyspark.sql import SparkSession

from examples.fleet.analytics.job import JOB
from fanin.spark import Summary

TRIPS = """\
fleet,vehicle,trip_id,started_at,distance_m,duration_s
north,n1,1,2024-03-04T08:00:00Z,30000,1800
north,n1,2,2024-03-05T08:00:00Z,10000,1200
north,n2,1,2024-03-06T08:00:00Z,7000,700
north,n4,1,2024-03-06T09:00:00Z,9000,900
north,n4,1,2024-03-06T09:00:00Z,9000,900
north,,5,2024-03-06T09:00:00Z,9000,900
south,s1,1,2024-03-07T09:00:00Z,50000,3600
south,s1,2,2024-03-17T09:00:00Z,50000,3600
south,s1,3,never,50000,3600
"""
FILL_UPS = """\
fleet,vehicle,fill_up_id,filled_at,volume_ml,cost
north,n1,a,2024-03-04T09:00:00Z,2400,420
"""


def datasets(folder: Path) -> list[str]:
    """Write them to a folder; returns arguments that name them and week 10."""
    (folder / "trips.csv").write_text(TRIPS)
    (folder / "fill_ups.csv").write_text(FILL_UPS)
    paths = ["--trips", f"{folder}/trips.csv", "--fill-ups", f"{folder}/fill_ups.csv"]
    return [*paths, "--week", "2024-W10"]


def run(spark: SparkSession, *arguments: str) -> Summary:
    return JOB.run(spark, JOB.parser().parse_args(arguments))
