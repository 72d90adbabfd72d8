"""Tasks that write marks to the stack."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import StoredBatches
from fanin.spark.ack.ledger_writes import RESULTS, partition_marks, sum_results, write_marks_task
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.ack.steps import lift, merge, pages_from_files
from fanin.spark.runtime.service import Service
from tests.spark.items import ITEMS, filled, written

pytestmark = pytest.mark.emulator


def test_a_twin_that_writes_at_the_same_time_changes_nothing(
    spark: SparkSession, service: Service, tmp_path: Path
) -> None:
    # Given all items, a part of which is done, and every word's task started twice
    batch, group = filled(service)
    folder = written(tmp_path / "acks", item=list(group)[::-1])
    schema, source = InputSchema(by_id=True), StoredBatches(service)
    half = [row for n, row in enumerate(group) if n % 3]
    service.ledger().ack(half)
    pages = pages_from_files(spark, ParquetFiles(folder), schema, source)
    marks = lift(merge(pages, schema, source).localCheckpoint(), source)

    # When both write at once
    first, twin = (partition_marks(marks, 1).mapInArrow(write_marks_task(service), RESULTS) for _ in range(2))
    done = sum_results(first.unionByName(twin))

    # Then the batch is complete
    assert done["completed"] == 1
    assert service.ledger().status(batch.batch_id, exact=True).done_min == ITEMS
