"""The process that forks the Python workers of Spark on one machine.

It imports what tasks need before it forks, which saves each worker a second. It also uses the installed
PySpark instead of the one in Spark's zips and jar: every task would read the directories of these again, once
for each of PySpark's packages (``zipimporter.invalidate_caches``), which takes a third of a second.
"""

import gc
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path

_OF_SPARK = ("pyspark.zip", "py4j-", "spark-core")

kept = [entry for entry in sys.path if not Path(entry).name.startswith(_OF_SPARK)]
if all(PathFinder.find_spec(name, kept) for name in ("pyspark", "py4j")):
    sys.path[:] = kept
    sys.path_importer_cache.clear()

from pyspark import daemon  # noqa: E402

# Spark 4 names the module to run, which may only ask a data source something. Spark 3.5 always runs tasks.
if "pyspark.worker" in (sys.argv[1:] or ["pyspark.worker"]):
    import boto3
    import pandas as pd  # noqa: F401
    import pyarrow as pa  # noqa: F401

    from fanin.spark.jobs import ack, audit, fan_out  # noqa: F401

    for service in ("dynamodb", "sqs"):  # reads the models of these, which the session keeps
        boto3.client(service, region_name="us-east-1")


class _Young:
    """Stands for ``gc`` in Spark's daemon, and collects what a task has left.

    Spark has each worker look through all that it has after each task, which takes longer than most tasks.
    """

    @staticmethod
    def collect() -> int:
        return gc.collect(1)


if __name__ == "__main__":
    gc.freeze()  # what is here never becomes garbage
    daemon.gc = _Young
    manager: Callable[[], None] = daemon.manager
    manager()
