"""The ack job: acknowledges a dataset of items, one write for each word."""

import argparse
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from fanin.spark.ack.driver import acknowledge, check_rate, forecast
from fanin.spark.jobs.dataset_arguments import (
    add_format,
    add_max_rejects,
    argument,
    dataset_of,
    names_of_totals,
)
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
    parser.add_argument("--input", required=True, help="folder, file or table of acknowledgements")
    add_format(parser)
    add_max_rejects(parser)
    parser.add_argument(
        "--batch",
        dest="batch_id",
        type=int,
        metavar="ID",
        help="the batch of all rows, which have only ordinals",
    )
    parser.add_argument(
        "--work",
        required=True,
        help="folder for what steps pass to each other; the job replaces pages, merged, failed, rejects and"
        " summary.json in it",
    )
    parser.add_argument(
        "--rejects",
        help="folder for rows that are left out; those of an earlier run are replaced (default: rejects in"
        " --work)",
    )
    parser.add_argument(
        "--ordinals", action="store_true", help="JSON rows have batch_id and ordinal instead of item"
    )
    parser.add_argument(
        "--max-writes-per-second",
        type=argument(check_rate),
        metavar="N",
        help="write units a second of all tasks together (default: as many as the table takes)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say how many words and writes there are, what they cost and how long they take; write none",
    )
    parser.add_argument(
        "--totals",
        type=names_of_totals,
        default=(),
        metavar="NAMES",
        help="totals that the items bring something to, each a column: rows,cents",
    )


def run(_spark: SparkSession, options: argparse.Namespace) -> Summary:
    """Acknowledge what the arguments name."""
    rows = dataset_of(options)
    done: Result
    if options.dry_run:
        done = forecast(rows, **arguments_of(forecast, options))
    else:
        done = acknowledge(rows, progress=True, **arguments_of(acknowledge, options))
    return {**({} if options.batch_id is None else {"batch_id": options.batch_id}), **done.summary()}


def _needs(_options: argparse.Namespace) -> Mapping[str, str]:
    return Service.from_env().endpoints("dynamodb")


JOB: Final = Job("ack", ABOUT, _arguments, run, SETTINGS, output="work", check=dataset_of, needs=_needs)

if __name__ == "__main__":
    sys.exit(JOB.main())
