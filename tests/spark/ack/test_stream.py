"""How the partitions of a micro-batch are read, on Spark."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext

from fanin.spark.ack import coalescing, stream
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.ledger_writes import Acknowledged
from tests.spark.given import Given, batch

NOBODY: Any = object()
"""A stack that is not asked."""


def test_each_partition_is_read_once_and_by_a_task_of_its_own(spark, tmp_path, monkeypatch):
    # Given a stream of some partitions, such as shards, which say what task reads them
    (tmp_path / "read").mkdir()
    partitions = coalescing.TASKS + 1
    read = str(tmp_path / "read")

    def told(records: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context
        (Path(read) / f"{context.taskAttemptId()}-{uuid4()}").touch()
        yield from records

    rows = spark.range(0, 300, 1, partitions).selectExpr("id AS ordinal")

    def coalesced(given: coalescing.Given) -> Acknowledged:
        rows = given.rows
        found = coalescing.coalesce_few(rows, InputSchema.of(rows.columns, 7), Given((batch(7, 300),)))
        assert found
        return Acknowledged(rows=found.rows, distinct=found.rows, failed=0)

    monkeypatch.setattr(stream, "acknowledge_few", coalesced)
    done: list[int] = []
    handler = stream.ack_stream(
        NOBODY, work=str(tmp_path / "work"), batch_id=7, on_done=lambda _, result: done.append(result.rows)
    )
    # When a micro-batch comes
    handler(rows.mapInArrow(told, "ordinal long"), 0)
    # Then as many tasks have read them as there are partitions
    assert done == [300]
    tasks = [path.name.partition("-")[0] for path in Path(read).iterdir()]
    assert len(tasks) == len(set(tasks)) == partitions
