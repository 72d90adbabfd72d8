"""The ack job: a dataset of acknowledgements to one write a word."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from fanin.spark.acking import acknowledge
from fanin.spark.coalesce import Way
from fanin.spark.jobs.running import Job, Summary
from fanin.spark.parquet import Files
from fanin.spark.service import Service

ABOUT: Final = """\
Acknowledge a dataset of items: coalesce them to words, and write each word once.

The rows have a column item (item ids), or batch_id and ordinal, or, with --batch, only ordinal; and perhaps a
column reason: where it is not null, the item has failed. What cannot be acknowledged goes to the rejects,
each row with its reason: null, malformed, foreign, gone, duplicate. The job may be run again at any time."""

SETTINGS: Final = {"spark.sql.execution.arrow.maxRecordsPerBatch": "65536"}
"""The rows are short; tasks join them to a million, so that memory is the same."""
_JSON: Final = "item string, batch_id string, ordinal string, reason string"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, help="folder or file of acknowledgements")
    parser.add_argument("--format", choices=("parquet", "csv", "json"), default="parquet")
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
    files = Files(options.input) if options.format == "parquet" and _plain(options.input) else None
    done = acknowledge(
        _read(spark, options, files),
        Service.from_env(),
        work=options.work.rstrip("/"),
        batch_id=options.batch,
        files=files,
        way=Way(options.way) if options.way else None,
        rejected=options.rejects,
        writers=options.writers,
    )
    return done.summary()


def _read(spark: SparkSession, options: argparse.Namespace, files: Files | None) -> DataFrame:
    if options.format == "csv":
        return spark.read.option("header", "true").csv(options.input)
    if options.format == "json":
        rows = spark.read.schema(_JSON).json(options.input)
        return rows.drop("item") if options.ordinals or options.batch is not None else rows
    if files and not files.sizes:  # Spark cannot tell the schema of no file
        return spark.createDataFrame([], "batch_id long, ordinal long" if options.ordinals else "item string")
    return spark.read.parquet(options.input)


def _plain(path: str) -> bool:
    """Whether a path is no pattern, of which only Spark knows the files."""
    return not set("*?[{") & set(path)


JOB: Final = Job("ack", ABOUT, arguments, run, SETTINGS)

if __name__ == "__main__":
    sys.exit(JOB.main())
