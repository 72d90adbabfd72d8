"""The stack, as the tasks of a job reach it."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from fanin.domain.batch import OpenBatch
from fanin.spark.runtime.service import Service


def test_tasks_reach_the_stack_that_the_driver_names(spark: SparkSession, service: Service) -> None:
    # Given a batch that the driver opened
    batch = service.ledger().open(OpenBatch(user_key="from the driver"))

    # When a task, which is another process, reads it
    def read(pages: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for page in pages:
            keys = [
                service.ledger().status(batch_id).batch.user_key
                for (batch_id,) in zip(page.column(0).to_pylist())
            ]
            yield pa.RecordBatch.from_pydict({"user_key": keys})

    answer = spark.createDataFrame([(batch.batch_id,)], "batch_id long").mapInArrow(read, "user_key string")

    # Then it finds what the driver wrote
    assert [row["user_key"] for row in answer.collect()] == ["from the driver"]
