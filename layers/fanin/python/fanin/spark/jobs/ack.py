"""The ack job: acknowledges a dataset of items, one write for each word."""

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from fanin.spark.ack.driver import acknowledge, check_rate, forecast
from fanin.spark.jobs.options import add_dataset, argument, dataset_of, names_of_totals, option
from fanin.spark.jobs.running import Job, Summary, arguments_of
from fanin.spark.runtime.results import Result
from fanin.spark.runtime.service import Service

ABOUT: Final = """\
Acknowledge a dataset of items: coalesce them to words, and write each word once.

The rows have a column item (item ids), or batch_id and ordinal, or, with --batch, only ordinal; and perhaps a
column reason: where it is not null, the item has failed. With --totals there is a column for each total, with
what the items bring to it. Rows that cannot be acknowledged go to the rejects, each with its reason: null,
malformed, foreign, gone, duplicate, conflicting. The job may be run again at any time."""

SETTINGS: Final = {"spark.sql.execution.arrow.maxRecordsPerBatch": "32768"}
"""Rows are short, and tasks join them to a million anyway; larger pages of ids leave a core's cache."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = partial(option, parser)
    add("--input", "folder, file or table of acknowledgements", required=True)
    add_dataset(parser)
    add("--batch ID", "the batch of all rows, which have only ordinals", dest="batch_id", type=int)
    add(
        "--work",
        "folder for what steps pass to each other; the job replaces pages, merged, failed, rejects and"
        " summary.json in it",
        required=True,
    )
    add(
        "--rejects",
        "folder for rows that are left out; those of an earlier run are replaced (default: rejects in"
        " --work)",
    )
    add("--ordinals", "JSON rows have batch_id and ordinal instead of item", action="store_true")
    add(
        "--max-writes-per-second N",
        "write units a second of all tasks together (default: as many as the table takes)",
        type=argument(check_rate),
    )
    add(
        "--dry-run",
        "say how many words and writes there are, what they cost and how long they take; write none",
        action="store_true",
    )
    about = "totals that the items bring something to, each a column: rows,cents"
    add("--totals NAMES", about, type=names_of_totals, default=())


def run(_spark: SparkSession, options: argparse.Namespace) -> Summary:
    do = forecast if options.dry_run else partial(acknowledge, progress=True)
    done: Result = do(dataset_of(options), **arguments_of(forecast, options))
    return {**({} if options.batch_id is None else {"batch_id": options.batch_id}), **done.summary()}


def _needs(_options: argparse.Namespace) -> Mapping[str, str]:
    return Service.from_env().endpoints("dynamodb")


JOB: Final = Job("ack", ABOUT, _arguments, run, SETTINGS, output="work", check=dataset_of, needs=_needs)

if __name__ == "__main__":
    sys.exit(JOB.main())
