"""What the measurements on Spark share: a session with two cores, a batch in memory, plain SQL."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from bench.world import World
from fanin.domain.batch import Batch
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.inputs.listing import FoundFile
from fanin.spark.jobs.ack import SETTINGS
from fanin.spark.runtime.session import session

CORES = 2
ROW_GROUP = 1 << 20
USUAL, FULL = 25, 27
"""Powers of two: how many acknowledgements are measured."""
WARM_ROWS = 1 << 16
"""Rows with which each strategy is warmed up."""
WARM_UPS = 25
"""How often."""


@dataclass(frozen=True)
class Known:
    """A stack that has a single batch, in memory, as tasks read it."""

    row: Batch
    at: int

    def read(self, batch_ids: Collection[int]) -> Mapping[int, Batch]:
        return {self.row.batch_id: self.row} if self.row.batch_id in batch_ids else {}

    def now(self) -> int:
        return self.at

    def ledger(self) -> Any:
        return SimpleNamespace(ports=SimpleNamespace(batches=self, clock=self))


@contextmanager
def cluster() -> Iterator[SparkSession]:
    """A session with two cores."""
    settings = {
        "spark.master": f"local[{CORES}]",
        "spark.sql.shuffle.partitions": str(2 * CORES),
        "spark.python.daemon.module": "tests.spark.daemon",
        # Over TCP every second task waits 45 ms for an acknowledgement that the kernel delays; Spark prints a
        # traceback for each limit instead, so the jobs leave this as it is.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.files.maxPartitionBytes": "1g",  # one task for each core, with every strategy
        **SETTINGS,
    }
    spark = session("bench", settings)
    try:
        yield spark
    finally:
        spark.stop()


def batch_row(world: World, batch: Batch) -> Batch:
    """The row with its items."""
    return world.memory.ports().batches.read([batch.batch_id])[batch.batch_id]


def known(items: int) -> tuple[Known, InputSchema]:
    """A batch of so many items, and how ordinals name them."""
    world = World()
    batch = world.batch(items)
    return Known(batch_row(world, batch), 0), InputSchema(by_id=False, batch_id=batch.batch_id)


def plain(rows: DataFrame) -> DataFrame:
    """Words as people aggregate them in SQL."""
    bit = "shiftleft(1L, CAST(ordinal & 63 AS INT)) AS bit"
    keyed = rows.selectExpr("shiftright(ordinal, 6) AS word", bit)
    return keyed.groupBy("word").agg(F.expr("bit_or(bit)").alias("mask"))


def noop(frame: DataFrame) -> None:
    """Run a plan, and drop what it gives."""
    frame.write.format("noop").mode("overwrite").save()


def parquet_files(folder: Path) -> ParquetFiles:
    """The files of a folder, as tasks read them."""
    found = [FoundFile(str(p), p.stat().st_size, 0) for p in sorted(folder.glob("*.parquet"))]
    return ParquetFiles(found, SparkSession.active())


def write_ordinals(folder: Path, ordinals: np.ndarray[Any, Any]) -> None:
    """Write a dataset of ordinals, in as many files as two tasks for each core read."""
    folder.mkdir(parents=True)
    for number, part in enumerate(np.array_split(ordinals, 2 * CORES)):
        table = pa.table({"ordinal": part})
        pq.write_table(table, folder / f"part-{number}.parquet", ROW_GROUP, use_dictionary=False)
