"""How many tasks a cluster runs at the same time, once it has grown as far as it may; and tasks of files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

UNBOUNDED: Final = 4_096
"""Stands for the tasks of a cluster that may grow without bounds; the data then decides."""

_LOCK: Final = threading.Lock()
_JOINED: Final[dict[int, list[str]]] = {}
"""Session → how it joins files elsewhere, once for each block that has a task for each file."""


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


@contextmanager
def one_task_for_each_file(spark: SparkSession) -> Iterator[None]:
    """Have tasks that are planned in the block read no more than one file each, or a part of a large one.

    Spark otherwise joins files until all cores have the same, which makes as many tasks as there are cores.
    Threads of one session may be in such a block at the same time.
    """
    cost, most = "spark.sql.files.openCostInBytes", "spark.sql.files.maxPartitionBytes"
    with _LOCK:
        joined = _JOINED.setdefault(id(spark), [])
        joined.append(joined[0] if joined else spark.conf.get(cost) or "")
        # With the cost of opening it, any file is as large as a task may be.
        spark.conf.set(cost, spark.conf.get(most) or "")
    try:
        yield
    finally:
        with _LOCK:
            before = joined.pop()
            if not joined:
                del _JOINED[id(spark)]
                spark.conf.set(cost, before)
