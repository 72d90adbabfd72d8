"""The parent of the processes that run Python for Spark: they are copies of it, and have nothing to load.

It has imported what tasks need, which takes a second; tests let many tasks die. And it takes PySpark from
where it is installed. Spark names its zip and its jar as well, and every task would read their directories
again, that of the zip for each of PySpark's packages (``zipimporter.invalidate_caches``): half a second.
"""

import gc
import sys
from pathlib import Path

sys.path[:] = [entry for entry in sys.path if Path(entry).is_dir()]
sys.path_importer_cache.clear()

from pyspark import daemon  # noqa: E402

if "pyspark.worker" in sys.argv:  # and not one of those that only ask a data source something
    import boto3  # noqa: F401
    import pandas as pd  # noqa: F401
    import pyarrow as pa  # noqa: F401

    from fanin.spark import acking  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # after each task Spark lets garbage be collected, and what is here is none
    daemon.manager()
