"""Coalescing on Spark with two cores, beside plain SQL, DuckDB, and numpy without Spark."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from bench import duck
from bench.comparison import Strategy, compared
from bench.figures import Figure
from bench.spark_cluster import (
    CORES,
    FULL,
    ROW_GROUP,
    USUAL,
    WARM_ROWS,
    WARM_UPS,
    Known,
    batch_row,
    cluster,
    known,
    noop,
    parquet_files,
    plain,
)
from bench.world import World
from fanin.spark.ack.coalescer import pages_from_rows
from fanin.spark.ack.input_schema import InputSchema, normalize
from fanin.spark.ack.ledger_writes import mark, partition_marks
from fanin.spark.ack.page_builder import popcount
from fanin.spark.ack.page_merger import MARK_SCHEMA, merge
from fanin.spark.ack.parquet_files import pages_from_files
from fanin.spark.runtime.arrow import page

FACTORS = {USUAL: (5.0, 1.2), FULL: (8.0, 2.5)}
"""Power of two → how many times as fast as plain SQL the strategies for Parquet and DataFrames must be."""
OF_NUMPY = 0.55
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


def ratios(power: int = USUAL) -> list[Figure]:
    """Measure how fast the strategies are, with 2^power acknowledgements."""
    with cluster() as spark, tempfile.TemporaryDirectory() as folder:
        return speeds(spark, Path(folder), power)


def counts() -> list[Figure]:
    """Count writes."""
    with cluster() as spark:
        return [*writes(spark), billion(spark)]


def speeds(spark: SparkSession, folder: Path, power: int) -> list[Figure]:
    """Time the strategies on the same files; every figure is a ratio within this run."""
    warm_up = _strategies(spark, folder / "few", WARM_ROWS)
    took = compared(_strategies(spark, folder / "all", 1 << power), warm_up=warm_up, times=WARM_UPS)
    parquet, in_order = took["parquet"], took["parquet in order"]
    fast, fair = FACTORS.get(power, (None, None))
    name = f"2^{power} acks in no order"
    rate = f"{(1 << power) / 1e6 / parquet.best:.1f} million a second"
    return [
        parquet.faster_than(
            took["sql"], f"{name}: Parquet strategy over plain SQL", at_least=fast, note=rate
        ),
        took["frame"].faster_than(took["sql"], f"{name}: DataFrame strategy over plain SQL", at_least=fair),
        parquet.faster_than(
            took["numpy"], f"{name}: Parquet strategy over pyarrow and numpy alone", at_least=OF_NUMPY
        ),
        in_order.faster_than(
            took["sql in order"], f"2^{power} acks in order: Parquet strategy over plain SQL", at_least=1
        ),
        in_order.faster_than(
            took["duckdb in order"], f"2^{power} acks in order: Parquet strategy over DuckDB", at_least=0.8
        ),
    ]


def _strategies(spark: SparkSession, folder: Path, count: int) -> dict[str, Strategy]:
    """The strategies by name, on files that they share."""
    ordinals = np.random.default_rng(1).permutation(count)
    scattered, ordered = folder / "scattered", folder / "ordered"
    _write(scattered, ordinals)
    del ordinals
    _write(ordered, np.arange(count))
    stack, schema = known(count)
    rows = spark.read.parquet(str(scattered))

    def of_files(path: Path) -> DataFrame:
        return merge(pages_from_files(spark, parquet_files(path), schema, stack), schema, stack)

    of_rows = merge(pages_from_rows(normalize(rows, schema), schema, stack), schema, stack)
    return {
        "sql": partial(noop, plain(rows)),
        "parquet": partial(noop, of_files(scattered)),
        "frame": partial(noop, of_rows),
        "numpy": partial(_numpy, scattered, count),
        "sql in order": partial(noop, plain(spark.read.parquet(str(ordered)))),
        "parquet in order": partial(noop, of_files(ordered)),
        "duckdb in order": partial(duck.words, ordered, duck.ORDINALS, count, CORES),
    }


def writes(spark: SparkSession, power: int = 20) -> list[Figure]:
    """Acknowledge a random half of a batch: one write for each word of the cover, and nothing else."""
    world, count = World(), 1 << power
    batch = world.batch(count)
    chosen = np.sort(np.random.default_rng(2).permutation(count)[: count // 2])
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder) / "half", chosen)
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


def _write(folder: Path, ordinals: np.ndarray[Any, Any]) -> None:
    folder.mkdir(parents=True)
    for number, part in enumerate(np.array_split(ordinals, 2 * CORES)):
        table = pa.table({"ordinal": part})
        pq.write_table(table, folder / f"part-{number}.parquet", ROW_GROUP, use_dictionary=False)


def _numpy(folder: Path, count: int) -> None:
    """The same without Spark: two threads read row groups and set flags, which are packed to words."""
    flags = np.zeros(count, np.uint8)

    def run(path: Path) -> None:
        file = pq.ParquetFile(path)
        for batch in file.iter_batches(ROW_GROUP, columns=["ordinal"], use_threads=False):
            flags[batch.column(0).to_numpy()] = 1

    with ThreadPoolExecutor(CORES) as pool:
        list(pool.map(run, sorted(folder.iterdir())))
    words = np.packbits(flags, bitorder="little").view(np.uint64)
    if popcount(words).sum(dtype=np.int64) != count:
        raise AssertionError("numpy has lost items")
