"""A dataset to a queue, as one batch."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from pyspark.sql import SparkSession

from fanin.domain.batch import OnDeadline, OpenBatch, State
from fanin.errors import InvalidRequest
from fanin.spark.fan_out.bodies import Dataset
from fanin.spark.fan_out.driver import Plan, fan_out
from fanin.spark.jobs.running import FORMAT, Job, Summary
from fanin.spark.runtime.formats import format_of_path
from fanin.spark.runtime.service import Service
from fanin.wire.ledger import decode_time

_ABOUT: Final = """\
Send each row of a dataset to an SQS queue, as an item of one batch, and close the batch.

Running the same command again goes on where a driver that died stopped: it stages nothing anew, opens no
second batch and adds no item twice. Rows that were sent already may be sent again under the same items.

Rows that are no message are left out and written to the rejects; so is what the queue refuses for good,
whose items have then failed. The environment names the stack by its tables (FANIN_BATCHES_TABLE ...).
"""
_PAGES: Final = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 2**20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}
"""Bodies may be large: what reaches Python at a time is bounded by bytes, and by rows for Spark 3.5."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--input", required=True, metavar="PATH", help="the dataset: a file or a folder, s3:// on EMR")
    add("--format", **FORMAT)
    add("--schema", metavar="DDL", help="types of the columns of a CSV dataset; without, all are text")
    add("--multiline", action="store_true", help="a CSV dataset has line breaks within quotes")
    add("--body", metavar="COLUMN", help="send this column; without, the row as a JSON object")
    add("--queue", required=True, metavar="URL", help="URL of the SQS queue")
    add(
        "--staging",
        required=True,
        metavar="PATH",
        help="a folder for this fan-out alone; keep it until the end",
    )
    add("--key", help="idempotency key of the batch; without, the staging's own")
    add(
        "--rejects",
        metavar="PATH",
        help="folder for rows that were not sent; rejects in the staging's folder",
    )
    add("--user-key", default="", help="your own name for the batch, returned with its event")
    add("--deadline", type=_moment, metavar="TIME", help="RFC 3339, such as 2026-11-21T18:00:00Z")
    add(
        "--on-deadline",
        type=OnDeadline,
        choices=list(OnDeadline),
        default=OnDeadline.TIME_OUT,
        help="what happens then",
    )
    add("--lifetime", type=int, metavar="SECONDS", help="hard end of the batch")
    add(
        "--idle-ttl", type=int, metavar="SECONDS", help="the batch is orphaned after so long without activity"
    )
    add(
        "--metadata",
        type=_pair,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="returned with the event; may be repeated",
    )
    add(
        "--workers", type=int, default=8, metavar="N", help="requests to the queue at a time, of each task; 8"
    )


def _run(spark: SparkSession, options: argparse.Namespace) -> Summary:
    form = options.format or format_of_path(options.input)
    plan = Plan(
        dataset=Dataset(options.input, form, options.body, options.schema, options.multiline),
        queue=options.queue,
        folder=options.staging,
        key=options.key,
        rejects=options.rejects,
        request=OpenBatch(
            user_key=options.user_key,
            deadline=options.deadline,
            on_deadline=options.on_deadline,
            lifetime=options.lifetime,
            idle_ttl=options.idle_ttl,
            metadata=dict(options.metadata),
        ),
        workers=options.workers,
    )
    told = fan_out(spark, Service.from_env(), plan)
    return {"ok": told["state"] in {State.CLOSED, State.COMPLETE}, **told}


def _moment(text: str) -> int:
    try:
        return decode_time(text)
    except InvalidRequest as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


JOB: Final = Job("fan-out", _ABOUT, _arguments, _run, _PAGES)

if __name__ == "__main__":
    sys.exit(JOB.main())
