"""The steps from acknowledgements to marks, as DataFrames: pages, merged words, the minimal cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import NullType

from fanin.spark.ack.coalescer import coalesce_task
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import BatchReader
from fanin.spark.ack.page_builder import PAGE_BITS
from fanin.spark.ack.page_merger import LIFTED, WINDOW_BITS, lift_task, merge_task
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.ack.schemas import MARKS, MERGED, PAGES
from fanin.spark.runtime.arrow import ArrowBatches
from fanin.spark.runtime.session import most_tasks

_TASKS: Final = 32
"""Most tasks for each core: Python takes longer to start a task than to work off a small partition."""


def pages_from_files(
    spark: SparkSession,
    files: ParquetFiles,
    schema: InputSchema,
    batches: BatchReader,
    *,
    reasons: bool = False,
) -> DataFrame:
    """Make ``PAGES`` of Parquet files, which tasks read themselves.

    Args:
        spark: the session.
        files: the files.
        schema: how they name items.
        batches: where tasks read batches.
        reasons: skip rows with a ``reason``, which are failures.
    """
    splits = files.splits(most_tasks(spark))
    coalesce = coalesce_task(batches, schema)

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        for record in records:
            for number in record.column(0).to_pylist():
                yield from coalesce(files.read(splits[number], schema, reasons=reasons))

    return spark.range(0, len(splits), 1, max(1, len(splits))).mapInArrow(run, PAGES)


def pages_from_rows(
    rows: DataFrame, schema: InputSchema, batches: BatchReader, *, failed: bool = False
) -> DataFrame:
    """Make ``PAGES`` of a DataFrame that ``sql_items.normalize`` gave.

    Args:
        rows: the DataFrame; if it has very many partitions, a task takes several.
        schema: how it names items.
        batches: where tasks read batches.
        failed: the rows name items that failed.
    """
    # Handing a row to Python costs more than everything that is done with it: hand over what differs.
    ragged = not schema.by_id and not isinstance(rows.schema["raw"].dataType, NullType)
    columns = [*schema.columns, *(["raw"] if ragged else [])]
    task = coalesce_task(batches, schema, failed=failed)
    return _limit_partitions(rows.select(*columns)).mapInArrow(task, PAGES)


def _limit_partitions(rows: DataFrame) -> DataFrame:
    """Leave the rows no more partitions than there are tasks for.

    Rows behind a ``coalesce`` take a quarter longer to reach Python, even if it joins no partitions. So the
    partitions are counted first, unless Spark would have to run a part of the plan for that. Only the text of
    the plan says so; if Spark worded it otherwise, that would cost a job or a quarter, and change no result.
    """
    most = _TASKS * most_tasks(rows.sparkSession)
    plan = rows._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001
    shuffled = "Exchange" in plan or "AdaptiveSparkPlan" in plan
    return rows.coalesce(most) if shuffled or rows.rdd.getNumPartitions() > most else rows


def merge(pages: DataFrame, schema: InputSchema, batches: BatchReader) -> DataFrame:
    """Merge ``PAGES`` to ``MERGED``: each word in one task."""
    window = F.shiftright("page", WINDOW_BITS - PAGE_BITS)
    partitioned = pages.repartition("batch_id", window)
    ordered = partitioned.sortWithinPartitions("batch_id", "page", F.col("failed").desc())
    return ordered.mapInArrow(merge_task(batches, schema), MERGED)


def lift(merged: DataFrame, batches: BatchReader) -> DataFrame:
    """Make ``MARKS`` of ``MERGED``, each word once: the minimal cover of the acknowledged items."""
    columns = ["batch_id", "level", "number", "mask"]
    low = merged.where(f"mask IS NOT NULL AND level < {LIFTED}").select(columns)
    bits_above = merged.where(f"level = {LIFTED}").groupBy("batch_id", "number")
    above = bits_above.agg(F.expr("bit_or(mask)").alias("mask")).repartition("batch_id")
    high = above.sortWithinPartitions("batch_id").mapInArrow(lift_task(batches), MARKS)
    return low.unionByName(high)
