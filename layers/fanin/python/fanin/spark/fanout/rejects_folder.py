"""The rejects of a fan-out, which two runs may write at the same time.

Rejects have one place, which people name, and Spark cannot write a dataset twice at the same time: the run
that commits first deletes what the other one has written. So each run looks afterwards whether they are whole
there, and writes them once more if not.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from fanin.errors import ServiceUnavailable
from fanin.spark.runtime import rejects
from fanin.spark.runtime.datasets import read_dataset
from fanin.spark.runtime.failures import refused_storage, root_cause

WAITS: Final = (1, 4)
"""Seconds until rejects are written once more, at most."""


def write_rejects(
    spark: SparkSession,
    left: DataFrame | None,
    folder: str,
    *,
    wait: Callable[[float], object] = time.sleep,
) -> dict[str, int]:
    """Write rejects where another run may write the same at the same time.

    Args:
        spark: the session.
        left: rows of ``rejects.SCHEMA``, the same whenever they are read; None if there are none.
        folder: where to write them.
        wait: waits some seconds.

    Returns:
        Reason → number of rows.

    Raises:
        ServiceUnavailable: they cannot be written as they should be.
    """
    wanted = {} if left is None else rejects.count_by_reason(left)
    for longest in (*WAITS, None):
        try:
            if left is None:
                return rejects.write_few_rejects(spark, [], folder, write_empty=True)
            rejects.write_rejects(left, folder, wanted)
            trouble = "they are not all there"
        except (Py4JJavaError, PySparkException) as error:
            trouble = refused_storage(error) or root_cause(error)
        if _is_there(spark, folder, wanted):
            return wanted
        if longest is not None:
            wait(random.uniform(0, longest))  # noqa: S311  so that two runs do not meet again
    raise ServiceUnavailable(
        f"rejects cannot be written to {folder}: {trouble}. If another run of this job writes there, wait for"
        " its end; then start this one again"
    )


def _is_there(spark: SparkSession, folder: str, wanted: Mapping[str, int]) -> bool:
    try:
        return rejects.count_by_reason(read_dataset(spark, folder, rejects.SCHEMA)) == wanted
    except (Py4JJavaError, PySparkException):
        return False  # somebody is writing
