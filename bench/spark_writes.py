"""What acknowledging on Spark writes, with a ledger in memory."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.figures import Figure
from bench.spark_cluster import CORES, ROW_GROUP, Known, batch_row, cluster, parquet_files, write_ordinals
from bench.world import World
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.ledger_writes import mark, partition_marks
from fanin.spark.ack.page_merger import MARK_SCHEMA, merge
from fanin.spark.ack.parquet_files import pages_from_files
from fanin.spark.runtime.arrow import page

BILLION = 10**9
PARTITIONS = 200


@dataclass(frozen=True)
class Contiguous:
    """Stands for the files of a dataset in order, so that a billion rows need not be on the disk."""

    items: int
    partitions: int

    def splits(self, parallelism: int) -> list[tuple[int, int]]:  # noqa: ARG002
        ends = [self.items * n // self.partitions for n in range(self.partitions + 1)]
        return list(pairwise(ends))

    def read(self, split: tuple[int, int], schema: InputSchema, *, reasons: bool) -> Iterator[Any]:  # noqa: ARG002
        for start in range(*split, ROW_GROUP):
            ordinals = np.arange(start, min(start + ROW_GROUP, split[1]))
            yield pa.RecordBatch.from_arrays([pa.array(ordinals)], schema.columns)


def counts() -> list[Figure]:
    """Count writes."""
    with cluster() as spark:
        return [*writes(spark), billion(spark)]


def writes(spark: SparkSession, power: int = 20) -> list[Figure]:
    """Acknowledge a random half of a batch: one write for each word of the cover, and nothing else."""
    world, count = World(), 1 << power
    batch = world.batch(count)
    chosen = np.sort(np.random.default_rng(2).permutation(count)[: count // 2])
    with tempfile.TemporaryDirectory() as folder:
        write_ordinals(Path(folder) / "half", chosen)
        stack, schema = Known(batch_row(world, batch), 0), InputSchema(by_id=False, batch_id=batch.batch_id)
        pages = pages_from_files(spark, parquet_files(Path(folder) / "half"), schema, stack)
        found = partition_marks(merge(pages, schema, stack), CORES)
        with world.spending() as spent:
            _mark(world, found)
    name = f"writes over words, for a random half of 2^{power} items"
    note = f"{count // 2 / spent.writes:.1f} acks a write"
    return [Figure(name, spent.writes / len(np.unique(chosen >> 6)), at_most=1, note=note)]


def billion(spark: SparkSession) -> Figure:
    """Acknowledge a contiguous dataset as a whole: its words are lifted, and the batch completes."""
    world = World()
    batch = world.batch(BILLION, closed=True)
    stack, schema = Known(batch_row(world, batch), 0), InputSchema(by_id=False, batch_id=batch.batch_id)
    source: Any = Contiguous(BILLION, PARTITIONS)
    merged = merge(pages_from_files(spark, source, schema, stack), schema, stack)
    with world.spending() as spent:
        _mark(world, partition_marks(merged, CORES))
    world.check_complete()
    return Figure(f"writes for 10⁹ rows in {PARTITIONS} partitions in order", spent.writes, at_most=2_000)


def _mark(world: World, frame: DataFrame) -> None:
    """What the tasks do with their marks, on the ledger in memory."""
    for _ in mark([page(MARK_SCHEMA, frame.collect())], world.ledger):
        pass
