"""Tasks that read a single file each, where Spark would join files until all cores have the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

_LOCK: Final = threading.Lock()
_JOINED: Final[dict[int, list[str]]] = {}
"""Session → how it joins files elsewhere, once for each block that has a task for each file."""


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
