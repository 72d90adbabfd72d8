"""The ack job: a dataset of acknowledgements to one write a word."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.ack.driver import acknowledge
from fanin.spark.ack.parquet_files import Files
from fanin.spark.ack.strategy import Way
from fanin.spark.jobs.running import FORMAT, Job, Summary
from fanin.spark.runtime.formats import Format, format_of, opened
from fanin.spark.runtime.service import Service

ABOUT: Final = """\
Acknowledge a dataset of items: coalesce them to words, and write each word once.

The rows have a column item (item ids), or batch_id and ordinal, or, with --batch, only ordinal; and perhaps a
column reason: where it is not null, the item has failed. What cannot be acknowledged goes to the rejects,
each row with its reason: null, malformed, foreign, gone, duplicate. The job may be run again at any time."""

SETTINGS: Final = {"spark.sql.execution.arrow.maxRecordsPerBatch": "65536"}
"""The rows are short; tasks join them to a million, so that memory is the same."""
_LINE: Final = "_line"
_JSON: Final = f"item string, batch_id string, ordinal string, reason string, {_LINE} string"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, help="folder or file of acknowledgements")
    parser.add_argument("--format", **FORMAT)
    parser.add_argument("--batch", type=int, help="the batch of all rows, which have only ordinals")
    parser.add_argument(
        "--work", required=True, help="folder for what goes from step to step; it is replaced"
    )
    parser.add_argument("--rejects", help="folder for the rows left out (default: rejects in --work)")
    parser.add_argument("--way", choices=[way.value for way in Way], help="how to coalesce (it chooses)")
    parser.add_argument("--writers", type=int, help="tasks that write at a time (default: as many as run)")
    parser.add_argument(
        "--ordinals", action="store_true", help="JSON rows have batch_id and ordinal instead of item"
    )


def run(spark: SparkSession, options: argparse.Namespace) -> Summary:
    form = options.format or format_of(options.input)
    by_ordinal = options.ordinals or options.batch is not None
    readers: dict[Format, Callable[[str], DataFrame]] = {
        Format.PARQUET: spark.read.parquet,
        Format.CSV: spark.read.option("header", "true").csv,
        Format.JSON: lambda path: _json(spark, path, by_ordinal=by_ordinal),
    }
    empty = "batch_id long, ordinal long" if by_ordinal else "item string"
    done = acknowledge(
        opened(spark, options.input, lambda: readers[form](options.input), empty),
        Service.from_env(),
        work=options.work.rstrip("/"),
        batch_id=options.batch,
        files=Files(options.input) if form is Format.PARQUET and _plain(options.input) else None,
        way=Way(options.way) if options.way else None,
        rejected=options.rejects,
        writers=options.writers,
    )
    return done.summary()


def _json(spark: SparkSession, path: str, *, by_ordinal: bool) -> DataFrame:
    """Rows that name items in one way.

    What names an item the other way is told as malformed, and so is a line that is no JSON, as it came.
    """
    rows = spark.read.schema(_JSON).json(path, columnNameOfCorruptRecord=_LINE)
    name, other = ("ordinal", "item") if by_ordinal else ("item", "ordinal")
    return rows.withColumn(name, F.coalesce(name, _LINE, other)).drop(_LINE, other)


def _plain(path: str) -> bool:
    """Whether a path is no pattern, of which only Spark knows the files."""
    return not set("*?[{") & set(path)


JOB: Final = Job("ack", ABOUT, arguments, run, SETTINGS)

if __name__ == "__main__":
    sys.exit(JOB.main())
