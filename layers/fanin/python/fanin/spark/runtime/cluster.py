"""How many tasks a cluster runs at the same time, once it has grown as far as it may."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

UNBOUNDED: Final = 4_096
"""Stands for the tasks of a cluster that may grow without bounds; the data then decides."""


def most_tasks(spark: SparkSession) -> int:
    """How many tasks can run at the same time when all executors are there that Spark may ask for.

    A cluster with dynamic allocation starts with few executors or none, and asks for more while tasks wait.
    ``defaultParallelism`` counts only those that are there: two cores if there are none.
    """
    context = spark.sparkContext
    conf = context.getConf()
    now = context.defaultParallelism
    if (conf.get("spark.dynamicAllocation.enabled") or "false").lower() != "true":
        return now
    executors = conf.get("spark.dynamicAllocation.maxExecutors") or "infinity"
    if not executors.isdigit():
        return max(now, UNBOUNDED)
    cores = int(conf.get("spark.executor.cores") or 1) // int(conf.get("spark.task.cpus") or 1)
    return max(now, min(UNBOUNDED, int(executors) * max(1, cores)))
