"""Item ids as users have them, texts, coalesced on Spark; beside DuckDB and plain SQL on Spark."""

import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from bench import duck
from bench.comparison import Strategy, compared
from bench.figures import Figure
from bench.spark_cluster import (
    CORES,
    ROW_GROUP,
    USUAL,
    WARM_ROWS,
    WARM_UPS,
    Known,
    cluster,
    known,
    noop,
    parquet_files,
    plain,
)
from fanin.domain import ids
from fanin.spark.ack.coalescer import pages_from_rows
from fanin.spark.ack.coalescing import coalesce_few
from fanin.spark.ack.input_schema import InputSchema, normalize
from fanin.spark.ack.page_merger import merge
from fanin.spark.ack.parquet_files import pages_from_files

SCHEMA = InputSchema(by_id=True)
EPOCH = 1_000


def ratios(power: int = USUAL) -> list[Figure]:
    """Measure how fast 2^power ids in no order are coalesced."""
    with cluster() as spark, tempfile.TemporaryDirectory() as folder:
        return [*speeds(spark, Path(folder), power), epoch(spark)]


def speeds(spark: SparkSession, folder: Path, power: int) -> list[Figure]:
    """Time the strategies on the same files; every figure is a ratio within this run."""
    warm_up = _strategies(spark, folder / "few", WARM_ROWS)
    took = compared(_strategies(spark, folder / "all", 1 << power), warm_up=warm_up, times=WARM_UPS)
    name = f"2^{power} ids in no order"
    return [
        took["parquet"].faster_than(took["duckdb"], f"{name}: Parquet strategy over DuckDB", at_least=1.5),
        took["parquet"].faster_than(took["sql"], f"{name}: Parquet strategy over plain SQL", at_least=8),
        took["frame"].faster_than(took["duckdb"], f"{name}: DataFrame strategy over DuckDB", at_least=0.7),
    ]


def _strategies(spark: SparkSession, folder: Path, count: int) -> dict[str, Strategy]:
    """The strategies by name, on files that they share."""
    stack, _ = known(count)
    _write(folder, np.random.default_rng(1).permutation(count), stack)
    rows = spark.read.parquet(str(folder))
    numbers = rows.select(F.split_part("item", F.lit(":"), F.lit(3)).cast("long").alias("ordinal"))
    files = pages_from_files(spark, parquet_files(folder), SCHEMA, stack)
    pages = pages_from_rows(normalize(rows, SCHEMA), SCHEMA, stack)
    return {
        "parquet": partial(noop, merge(files, SCHEMA, stack)),
        "frame": partial(noop, merge(pages, SCHEMA, stack)),
        "sql": partial(noop, plain(numbers)),
        "duckdb": partial(duck.words, folder, duck.IDS, count, CORES),
    }


def epoch(spark: SparkSession) -> Figure:
    """Seconds to coalesce a small micro-batch as ``ack_stream`` does; the ledger is not called."""
    stack, _ = known(EPOCH)
    items = pa.array(_ids(np.arange(EPOCH), stack)).to_pylist()
    rows = spark.createDataFrame([(item,) for item in items], "item string").repartition(CORES)
    times = [_seconds(rows, stack) for _ in range(5)][1:]  # Java compiles in the first
    return Figure(f"seconds for a micro-batch of {EPOCH:,} ids", median(times), at_most=1)


def _seconds(rows: DataFrame, stack: Known) -> float:
    began = time.perf_counter()
    found = coalesce_few(rows, SCHEMA, stack)
    if found is None or found.rows != EPOCH or found.rejects:
        raise AssertionError(found)
    return time.perf_counter() - began


def _ids(numbers: np.ndarray[Any, Any], stack: Known) -> Any:
    prefix = ids.issue(stack.row.batch_id, 0, stack.row.items, stack.row.salt).prefix
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), ":")


def _write(folder: Path, numbers: np.ndarray[Any, Any], stack: Known) -> None:
    folder.mkdir()
    for number, part in enumerate(np.array_split(numbers, 2 * CORES)):
        schema = pa.schema([("item", pa.string())])
        with pq.ParquetWriter(folder / f"part-{number}.parquet", schema, use_dictionary=False) as writer:
            for first in range(0, len(part), ROW_GROUP):
                texts = _ids(part[first : first + ROW_GROUP], stack)
                writer.write_table(pa.table({"item": texts}), ROW_GROUP)
