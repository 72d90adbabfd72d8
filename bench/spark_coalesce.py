"""Coalescing on Spark with two cores, beside plain SQL, DuckDB, and numpy without Spark."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
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
    cluster,
    known,
    noop,
    parquet_files,
    plain,
    write_ordinals,
)
from fanin.spark.ack.coalescer import pages_from_rows
from fanin.spark.ack.input_schema import normalize
from fanin.spark.ack.page_builder import popcount
from fanin.spark.ack.page_merger import merge
from fanin.spark.ack.parquet_files import pages_from_files

FACTORS = {USUAL: (5.0, 1.2), FULL: (8.0, 2.5)}
"""Power of two → how many times as fast as plain SQL the strategies for Parquet and DataFrames must be."""
OF_NUMPY = 0.55


def ratios(power: int = USUAL) -> list[Figure]:
    """Measure how fast the strategies are, with 2^power acknowledgements."""
    with cluster() as spark, tempfile.TemporaryDirectory() as folder:
        return speeds(spark, Path(folder), power)


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
    write_ordinals(scattered, ordinals)
    del ordinals
    write_ordinals(ordered, np.arange(count))
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
