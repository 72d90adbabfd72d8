"""A driver one of whose tasks dies in the middle, twice; a program, run by a test.

Usage: ``python -m tests.spark.faulty_driver QUEUE FOLDER fan-out DATASET | sink BATCH ROWS``. The task is
that of partition 0. The last line of output is the summary, with the deaths that took place.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from fanin.spark import bodies, fanout
from fanin.spark.service import Service
from fanin.spark.session import session

SETTINGS = {
    "spark.master": "local[2,4]",  # a task is tried four times
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
}


def faults(folder: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Gives a task its pages, and lets it die before the third of them."""

    def pages(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        for number, page in enumerate(given):
            if number == 2 and context.partitionId() == 0 and context.attemptNumber() < 2:
                Path(folder, f"died-{context.attemptNumber()}").touch()
                os._exit(1)
            yield page

    return pages


def fan_out(spark: SparkSession, queue: str, folder: str, dataset: str) -> dict[str, Any]:
    task_of, through = fanout._sending, faults(folder)

    def faulty(target: fanout.Target) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
        task = task_of(target)
        return lambda pages: task(through(pages))

    fanout._sending = faulty
    return fanout.fan_out(
        spark, Service.from_env(), fanout.Plan(bodies.Dataset(dataset), queue, f"{folder}/staging")
    )


def write(spark: SparkSession, queue: str, folder: str, batch: str, rows: str) -> dict[str, Any]:
    from fanin.spark import sink  # Spark 4.0 or later

    through = faults(folder)

    class FaultyWriter(sink.FaninWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> sink.Written:
            return super().write(through(iterator))

    class FaultySource(sink.FaninDataSource):
        service = Service.from_env()

        def writer(self, schema: Any, overwrite: bool) -> sink.FaninWriter:
            return FaultyWriter(**vars(super().writer(schema, overwrite)))

    spark.dataSource.register(FaultySource)
    frame = bodies.with_body(spark.range(0, int(rows), 1, 4))
    frame.write.format("fanin").options(batch=batch, queue=queue).mode("append").save()
    return {}


def main(queue: str, folder: str, what: str, *arguments: str) -> None:
    spark = session("faulty", SETTINGS)
    told = (fan_out if what == "fan-out" else write)(spark, queue, folder, *arguments)
    happened = sorted(path.name for path in Path(folder).iterdir() if path.is_file())
    sys.stdout.write(json.dumps({**told, "happened": happened}) + "\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
