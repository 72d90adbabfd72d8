"""Where tasks of a local session get their code."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession


def test_tasks_have_what_they_need_and_no_archive_of_spark(spark: SparkSession) -> None:
    # When a task says what it finds when it starts
    def tell(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark as there

        loaded = [name for name in ("boto3", "pandas", "fanin.spark.jobs.audit") if name in sys.modules]
        for _ in pages:
            pass
        yield pa.RecordBatch.from_pydict({"path": [*sys.path, *loaded, there.__file__]})

    told = [row.path for row in spark.range(1).mapInArrow(tell, "path string").collect()]

    # Then PySpark is the installed one, not that of Spark's archives, and the rest is there
    assert not [
        entry for entry in told if Path(entry).name.startswith(("pyspark.zip", "py4j-", "spark-core"))
    ]
    assert told[-4:] == ["boto3", "pandas", "fanin.spark.jobs.audit", pyspark.__file__]
