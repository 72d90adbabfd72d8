"""The ack job: acknowledges a dataset of items, one write for each word."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.errors import InvalidRequest
from fanin.spark.ack.driver import acknowledge
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.jobs.running import FORMAT, Job, Summary, names_of_totals
from fanin.spark.runtime.formats import DatasetFormat, format_of_path, load
from fanin.spark.runtime.service import Service

ABOUT: Final = """\
Acknowledge a dataset of items: coalesce them to words, and write each word once.

The rows have a column item (item ids), or batch_id and ordinal, or, with --batch, only ordinal; and perhaps a
column reason: where it is not null, the item has failed. With --totals there is a column for each total, with
what the items bring to it. Rows that cannot be acknowledged go to the rejects, each with its reason: null,
malformed, foreign, gone, duplicate, conflicting. The job may be run again at any time."""

SETTINGS: Final = {"spark.sql.execution.arrow.maxRecordsPerBatch": "65536"}
"""Rows are short, and tasks join them to a million anyway: larger pages take no more memory."""
_LINE: Final = "_line"
_JSON: Final = ("item", "batch_id", "ordinal", "reason", _LINE)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, help="folder or file of acknowledgements")
    parser.add_argument("--format", **FORMAT)
    parser.add_argument("--batch", type=int, help="the batch of all rows, which have only ordinals")
    parser.add_argument(
        "--work", required=True, help="folder for what steps pass to each other; its content is replaced"
    )
    parser.add_argument("--rejects", help="folder for rows that are left out (default: rejects in --work)")
    parser.add_argument(
        "--writers",
        type=int,
        help="tasks that write at the same time (default: as many as the cluster can run)",
    )
    parser.add_argument(
        "--ordinals", action="store_true", help="JSON rows have batch_id and ordinal instead of item"
    )
    parser.add_argument(
        "--totals",
        type=names_of_totals,
        default=(),
        metavar="NAMES",
        help="totals that the items bring something to, each a column: rows,cents",
    )


def run(spark: SparkSession, options: argparse.Namespace) -> Summary:
    format_ = options.format or format_of_path(options.input)
    by_ordinal = options.ordinals or options.batch is not None
    readers: dict[DatasetFormat, Callable[[str], DataFrame]] = {
        DatasetFormat.PARQUET: spark.read.parquet,
        DatasetFormat.CSV: spark.read.option("header", "true").csv,
        DatasetFormat.JSON: lambda path: _json(spark, path, by_ordinal=by_ordinal, totals=options.totals),
    }
    names = "batch_id long, ordinal long" if by_ordinal else "item string"
    empty = ", ".join([names, *(f"{total} long" for total in options.totals)])
    parquet = format_ is DatasetFormat.PARQUET and not _is_pattern(options.input)
    done = acknowledge(
        load(spark, options.input, lambda: readers[format_](options.input), empty),
        Service.from_env(),
        work=options.work.rstrip("/"),
        batch_id=options.batch,
        files=ParquetFiles(options.input, spark) if parquet else None,
        rejects=options.rejects,
        writers=options.writers,
        totals=options.totals,
    )
    return done.summary()


def _json(spark: SparkSession, path: str, *, by_ordinal: bool, totals: Sequence[str]) -> DataFrame:
    """Read rows of JSON that name items either by id or by ordinal.

    The name's column also gets what becomes a malformed reject: the name of a row that names its item the
    other way, and a line that is not JSON, as it came.

    Raises:
        InvalidRequest: no row has a value for a total.
    """
    schema = ", ".join(f"{column} string" for column in dict.fromkeys((*_JSON, *totals)))
    rows = spark.read.schema(schema).json(path, columnNameOfCorruptRecord=_LINE)
    for total in totals:
        if rows.where(F.col(total).isNotNull()).isEmpty() and not rows.isEmpty():
            raise InvalidRequest(f"no row of {path} has a field {total} with what its item brings")
    name, other = ("ordinal", "item") if by_ordinal else ("item", "ordinal")
    return rows.withColumn(name, F.coalesce(name, _LINE, other)).drop(_LINE, other)


def _is_pattern(path: str) -> bool:
    """Whether a path is a glob pattern, which only Spark can expand."""
    return bool(set("*?[{") & set(path))


JOB: Final = Job("ack", ABOUT, arguments, run, SETTINGS)

if __name__ == "__main__":
    sys.exit(JOB.main())
