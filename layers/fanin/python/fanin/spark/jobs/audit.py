"""The audit job: checks what the tables say about every batch."""

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.auditing.driver import MOST_SEGMENTS, SEGMENTS, audit
from fanin.spark.jobs.options import argument, option
from fanin.spark.jobs.running import Job, Summary, arguments_of
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.values import whole

ABOUT: Final = """\
Audit all batches: how far each has come, what is missing, and what contradicts its stored state.

Reads exports of both tables (DynamoDB JSON), or the tables themselves with --scan, and writes Parquet below
--output: batches, missing, findings; with --repair or --confirm also verified. What an active batch shows for
a moment is in flux, and not wrong. Exports need no stack, unless there is --repair or --confirm."""

SETTINGS: Final = {"spark.sql.adaptive.forceOptimizeSkewedJoin": "true"}
"""The words of a batch are joined with its row, and then grouped. Where the batches are too many to be
broadcast, Spark would do both in one task for each batch, also for one that has most of the words."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = partial(option, parser)
    add("--batches-export FOLDER", "full export of the batches table: s3://bucket/AWSDynamoDB/<id>")
    add("--words-export FOLDER", "full export of the words table, made at about that time")
    add(
        "--scan",
        "instead of exports: read the tables of the stack that the environment names",
        action="store_true",
    )
    add(
        "--segments N",
        "parallel readers of a scan, and tasks of --repair and --confirm (default: %(default)s)",
        type=argument(partial(whole, "segments", least=1, most=MOST_SEGMENTS)),
        default=SEGMENTS,
    )
    add("--eventually", "scan with eventually consistent reads, at half the price", action="store_true")
    about = "folder for all datasets and summary.json; an earlier audit there is replaced"
    add("--output FOLDER", about, required=True)
    add(
        "--snapshot FOLDER",
        "folder for the rows that were read, as large as the tables; those of an earlier audit are"
        " replaced (default: snapshot in --output)",
    )
    then = parser.add_mutually_exclusive_group()
    repair = "have the service verify the batches with findings that it can judge, and repair them"
    option(then, "--repair", repair, dest="verify", action="store_const", const="repair")
    confirm = "have the service verify these batches on the tables as they are now, and change nothing"
    option(then, "--confirm", confirm, dest="verify", action="store_const", const="confirm")


def _check(options: argparse.Namespace) -> None:
    """Refuse no source, half of one, and more than one."""
    exports = (options.batches_export, options.words_export)
    if any(exports) if options.scan else not all(exports):
        raise InvalidRequest("say what to audit: pass --scan, or both --batches-export and --words-export")


def run(_spark: SparkSession, options: argparse.Namespace) -> Summary:
    return audit(progress=True, **arguments_of(audit, options)).summary()


def _needs(options: argparse.Namespace) -> Mapping[str, str]:
    """Exports are read from S3 alone."""
    return Service.from_env().endpoints("dynamodb") if options.scan or options.verify else {}


JOB: Final = Job("audit", ABOUT, _arguments, run, SETTINGS, output="output", check=_check, needs=_needs)

if __name__ == "__main__":
    sys.exit(JOB.main())
