"""The ack job: acknowledges a dataset of items, one write for each word."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.errors import InvalidRequest
from fanin.spark.ack.acknowledged import Acknowledged
from fanin.spark.ack.coalescing import WORK
from fanin.spark.ack.driver import acknowledge, forecast
from fanin.spark.ack.few import TASKS, acknowledge_few
from fanin.spark.ack.forecast import Forecast
from fanin.spark.ack.parquet_files import ParquetFiles
from fanin.spark.inputs.formats import DatasetFormat
from fanin.spark.inputs.names import case_sensitive, with_names
from fanin.spark.inputs.opening import Input, Opened, open_input
from fanin.spark.jobs.dataset_arguments import add_format, add_max_rejects, dialect_of, names_of_totals
from fanin.spark.jobs.running import Job, Summary
from fanin.spark.runtime.rejects import rejects_folder
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.unreadable import marked

ABOUT: Final = """\
Acknowledge a dataset of items: coalesce them to words, and write each word once.

The rows have a column item (item ids), or batch_id and ordinal, or, with --batch, only ordinal; and perhaps a
column reason: where it is not null, the item has failed. With --totals there is a column for each total, with
what the items bring to it. Rows that cannot be acknowledged go to the rejects, each with its reason: null,
malformed, foreign, gone, duplicate, conflicting. The job may be run again at any time."""

MOST_WRITES: Final = 10_000_000
"""A second; no table takes more."""
SMALL: Final = 4 * 2**20
"""Most bytes of all files for which it is tried whether their rows are few."""
SETTINGS: Final = {"spark.sql.execution.arrow.maxRecordsPerBatch": "32768"}
"""Rows are short, and tasks join them to a million anyway; larger pages of ids leave a core's cache."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, help="folder, file or table of acknowledgements")
    add_format(parser)
    add_max_rejects(parser)
    parser.add_argument("--batch", type=int, help="the batch of all rows, which have only ordinals")
    parser.add_argument(
        "--work",
        required=True,
        help="folder for what steps pass to each other; the job replaces given, rows, failures, pages,"
        " merged, failed, rejects and summary.json in it",
    )
    parser.add_argument(
        "--rejects",
        help="folder for rows that are left out; those of an earlier run are replaced (default: rejects in"
        " --work)",
    )
    parser.add_argument(
        "--writers",
        type=int,
        help="tasks that write at the same time (default: as many as the cluster can run)",
    )
    parser.add_argument(
        "--ordinals", action="store_true", help="JSON rows have batch_id and ordinal instead of item"
    )
    parser.add_argument(
        "--max-writes-per-second",
        type=_rate,
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


def _rate(text: str) -> float:
    """The value of ``--max-writes-per-second``.

    Raises:
        ArgumentTypeError: it is not a number from 1 to 10,000,000.
    """
    try:
        rate = float(text)
    except ValueError:
        rate = 0
    if not 1 <= rate <= MOST_WRITES:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MOST_WRITES:,}")
    return rate


def run(spark: SparkSession, options: argparse.Namespace) -> Summary:
    """Acknowledge what the arguments name.

    Raises:
        InvalidRequest: the dataset cannot be read, or names no items.
        TooManyRejects: too many rows are left out.
    """
    by_ordinal = options.ordinals or options.batch is not None
    name, other = ("ordinal", "item") if by_ordinal else ("item", "ordinal")
    fields = list(dict.fromkeys((name, other, "batch_id", "reason", *options.totals)))
    given = Input(options.input, options.format, dialect_of(options))
    opened = open_input(spark, given, fields=fields, replaced=_replaced(options))
    rows = with_names(opened.rows, fields)
    if opened.format is DatasetFormat.JSON:
        _check_totals(rows, options.input, options.totals)
        rows = rows.withColumn(name, F.coalesce(name, other)).drop(other)
    if opened.format in {DatasetFormat.CSV, DatasetFormat.JSON} and name in rows.columns:
        rows = rows.withColumn(name, F.coalesce(marked(), name))
    service, work = Service.from_env(), options.work.rstrip("/")
    common = {
        "batch_id": options.batch,
        "rejects": rejects_folder(options.rejects, work),
        "max_rejects": options.max_rejects,
    }
    done: Acknowledged | Forecast | None = None
    if _may_be_few(opened, options):
        done = acknowledge_few(rows, service, write_empty=True, **common)
    if done is None:
        common |= {
            "work": work,
            "files": _parquet_files(spark, opened, options.input, fields),
            "totals": options.totals,
            "max_writes_per_second": options.max_writes_per_second,
        }
        if options.dry_run:
            done = forecast(rows, service, **common)
        else:
            done = acknowledge(rows, service, writers=options.writers, progress=True, **common)
    return {**({} if options.batch is None else {"batch_id": options.batch}), **done.summary()}


def _replaced(options: argparse.Namespace) -> Mapping[str, str]:
    """The folders that the job replaces, each with the option that names it."""
    work = options.work.rstrip("/")
    return {rejects_folder(options.rejects, work): "--rejects"} | {f"{work}/{one}": "--work" for one in WORK}


def _may_be_few(opened: Opened, options: argparse.Namespace) -> bool:
    """Whether to try ``acknowledge_few``: for small files, if nothing else is asked for."""
    if opened.files is None or options.dry_run or options.totals:
        return False
    if options.writers is not None or options.max_writes_per_second is not None:
        return False
    return len(opened.files) <= TASKS and sum(file.size for file in opened.files) <= SMALL


def _check_totals(rows: DataFrame, path: str, totals: Sequence[str]) -> None:
    """Refuse a total that no object of JSON has, since any text would have it as a field.

    Raises:
        InvalidRequest: no row has a value for a total.
    """
    for total in totals:
        if rows.where(F.col(total).isNotNull()).isEmpty() and not rows.isEmpty():
            raise InvalidRequest(f"no row of {path} has a field {total} with what its item brings")


def _parquet_files(
    spark: SparkSession, opened: Opened, path: str, fields: Sequence[str]
) -> ParquetFiles | None:
    """The files that tasks can read themselves.

    Returns:
        None if folders have columns that the files do not have, or if pyarrow cannot read the files here,
        perhaps because only Spark has the credentials; then Spark reads them.
    """
    if opened.format is not DatasetFormat.PARQUET or not opened.files:
        return None
    folders = {
        part.partition("=")[0].lower()
        for file in opened.files
        for part in file.path.split("/")[:-1]
        if "=" in part
    }
    if folders & set(fields):
        return None
    try:
        files = ParquetFiles(path, opened.files, exact=case_sensitive(spark), spark=spark)
        _ = files.schema  # of the first file, which has to be opened for it
    except (pa.ArrowException, OSError) as error:
        first = opened.files[0].path
        print(f"ack: pyarrow cannot read {first}, so Spark reads all files, slower: {error}", file=sys.stderr)
        return None
    return files


def _needs(_options: argparse.Namespace) -> Mapping[str, str]:
    return Service.from_env().endpoints("dynamodb")


JOB: Final = Job("ack", ABOUT, _arguments, run, SETTINGS, output="work", needs=_needs)

if __name__ == "__main__":
    sys.exit(JOB.main())
