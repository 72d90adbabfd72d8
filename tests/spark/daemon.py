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
    import boto3  # noqa: F401
    import pandas as pd  # noqa: F401
    import pyarrow as pa  # noqa: F401

    from fanin.spark.ack import driver  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # Spark collects garbage after each task; what is here never becomes garbage
    manager: Callable[[], None] = daemon.manager
    manager()
