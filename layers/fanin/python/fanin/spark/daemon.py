"""The parent of the processes that run Python for Spark on one machine: they are copies of it.

It has imported what tasks need, which takes a second. And it takes PySpark from where it is installed: Spark
names its zips and its jar as well, and every task would read their directories again, that of a zip for each
of PySpark's packages (``zipimporter.invalidate_caches``), which takes a third of a second.
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

# Spark 4 says what runs, which may only ask a data source something. Spark 3.5 runs tasks, and says nothing.
if "pyspark.worker" in (sys.argv[1:] or ["pyspark.worker"]):
    import boto3  # noqa: F401
    import pandas as pd  # noqa: F401
    import pyarrow as pa  # noqa: F401

    from fanin.spark.ack import driver as acking  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # after each task Spark lets garbage be collected, and what is here is none
    manager: Callable[[], None] = daemon.manager
    manager()
