"""The ack job: a dataset of acknowledgements to one write a word."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.acking import acknowledge
from fanin.spark.coalesce import Way
from fanin.spark.formats import Format, format_of, reading
from fanin.spark.jobs.running import FORMAT, Job, Summary
from fanin.spark.parquet import Files
from fanin.spark.service import Service

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
    files = Files(options.input) if form is Format.PARQUET and _plain(options.input) else None
    with reading(options.input):
        rows = _read(spark, options, form, files)
    done = acknowledge(
        rows,
        Service.from_env(),
        work=options.work.rstrip("/"),
        batch_id=options.batch,
        files=files,
        way=Way(options.way) if options.way else None,
        rejected=options.rejects,
        writers=options.writers,
    )
    return done.summary()


def _read(spark: SparkSession, options: argparse.Namespace, form: Format, files: Files | None) -> DataFrame:
    if form is Format.CSV:
        return spark.read.option("header", "true").csv(options.input)
    if form is Format.JSON:
        rows = spark.read.schema(_JSON).json(options.input, columnNameOfCorruptRecord=_LINE)
        by_ordinal = options.ordinals or options.batch is not None
        name = (
            "ordinal" if by_ordinal else "item"
        )  # which a line that is no JSON is not, so it is told as it is
        named = rows.withColumn(name, F.coalesce(name, _LINE))
        return named.drop("item", _LINE) if by_ordinal else named.drop(_LINE)
    if files and not files.sizes:  # Spark cannot tell the schema of no file
        return spark.createDataFrame([], "batch_id long, ordinal long" if options.ordinals else "item string")
    return spark.read.parquet(options.input)


def _plain(path: str) -> bool:
    """Whether a path is no pattern, of which only Spark knows the files."""
    return not set("*?[{") & set(path)


JOB: Final = Job("ack", ABOUT, arguments, run, SETTINGS)

if __name__ == "__main__":
    sys.exit(JOB.main())
