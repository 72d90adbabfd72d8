"""The fan-out job: sends a dataset to a queue, as one batch."""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from fanin.client.conversions import targets
from fanin.domain.batch import Batch, CloseWhen, OnDeadline, OpenBatch
from fanin.domain.targets import Target
from fanin.errors import InvalidRequest
from fanin.spark.fanout.driver import fan_out
from fanin.spark.fanout.failed_rows import FailedRows
from fanin.spark.fanout.opening import check_url
from fanin.spark.inputs.formats import Dataset, Dialect
from fanin.spark.jobs.options import add_dataset, argument, dataset_of, dialect_of, names_of_totals, option
from fanin.spark.jobs.running import Job, Summary, arguments_of
from fanin.spark.runtime.service import Service
from fanin.wire.json_types import decode_time

_ABOUT: Final = """\
Send each row of a dataset to an SQS queue, as an item of one batch, and close the batch.

Running the same command again continues where a driver that died stopped: it stages nothing again, opens no
second batch and adds no item twice. What is known to be sent is left out; rows that were under way may be
sent again, as the same items.

Rows that cannot be a message are left out and written to the rejects; so are messages that the queue refuses
for good, whose items have failed.

With --failed-from and --retry-of, the failed rows of an earlier fan-out are sent again, as a batch that
retries the first. Each failure is sent once, however often this or `fanin redrive` runs.
"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    rows = parser.add_mutually_exclusive_group(required=True)
    option(rows, "--input PATH", "the dataset: a file, folder or table, s3:// on EMR")
    option(
        rows,
        "--failed-from PATH",
        "instead of a dataset: send the failed rows of the batch --retry-of, whose fan-out had this"
        " folder as --staging",
    )
    add = partial(option, parser)
    add("--and-pending", "with --failed-from: also the rows that are pending", action="store_true")
    add_dataset(parser)
    add("--schema DDL", "columns of a CSV dataset with their types (default: all are text)")
    add("--body COLUMN", "send this column (default: the row as a JSON object)")
    add(
        "--keys COLUMN",
        "the keys of the items, text of 1 to 512 bytes: one key is one item (default: no keys)",
    )
    add("--queue URL", "URL of the SQS queue", type=argument(check_url), required=True)
    about = "a folder for this fan-out alone; keep it until the batch has ended"
    add("--staging PATH", about, required=True)
    add("--key", "idempotency key of the batch (default: one made of the staging)")
    add("--rejects PATH", "folder for rows that were not sent (default: rejects in --staging)")
    add("--user-key", "your own name for the batch, returned with its event", default="")
    about = "a point in time, for example 2026-11-21T18:00:00Z"
    add("--deadline TIME", about, type=argument(decode_time))
    add(
        "--on-deadline",
        "what happens at the deadline",
        type=OnDeadline,
        choices=list(OnDeadline),
        default=OnDeadline.TIME_OUT,
    )
    add("--lifetime SECONDS", "hard end of the batch", type=int)
    add("--parent-item ITEM", "item of another batch that this one acknowledges at its end")
    add("--retry-of BATCH_ID", "the batch whose failed items this batch retries", type=int)
    add("--idle-ttl SECONDS", "the batch is orphaned after this time without activity", type=int)
    about = "returned with the event; may be given several times"
    add("--metadata KEY=VALUE", about, type=_pair, action="append", default=[])
    about = "totals of the batch, to which acknowledged items may bring values: rows,cents"
    add("--totals NAMES", about, type=names_of_totals, default=())
    add("--results", "the batch keeps the results of its items", action="store_true")
    add("--max-items N", "most items that the batch takes", type=int)
    add(
        "--close",
        "whether the batch takes no more items when all are sent, or once it is drained, so that its own"
        " items can add more",
        type=CloseWhen,
        choices=list(CloseWhen),
        default=CloseWhen.NOW,
    )
    add(
        "--on-end JSON",
        'whom to call back at the end: {"type": "sqs", "when": "complete", "queue_url": "https://…"};'
        " up to five times",
        type=_target,
        action="append",
        default=[],
    )
    about = "requests that each task sends at the same time (default: %(default)s)"
    add("--workers N", about, type=int, default=8)
    about = "on a standard queue, name the batch as the group of its messages (fair queues)"
    add("--fair", about, action="store_true")


def _run(_spark: SparkSession, options: argparse.Namespace) -> Summary:
    def opened(batch: Batch) -> None:
        options.so_far["batch_id"] = batch.batch_id
        follow = f"`fanin status {batch.batch_id}` shows how far it is"
        print(f"fan-out: batch {batch.batch_id} is {batch.state}; {follow}", file=sys.stderr)

    batch = {one.name: vars(options)[one.name] for one in fields(OpenBatch) if one.name in options}
    batch["metadata"] = dict(options.metadata)
    named = arguments_of(fan_out, options)
    return fan_out(_rows(options), opened=opened, progress=True, **named, **batch).summary()


def _rows(options: argparse.Namespace) -> Dataset | FailedRows:
    if options.failed_from is None:
        if options.and_pending:
            raise InvalidRequest("--and-pending goes with --failed-from, the staging of the earlier fan-out")
        return dataset_of(options, schema=options.schema)
    if options.retry_of is None:
        raise InvalidRequest("--failed-from needs --retry-of, the batch that was fanned out from that folder")
    given = [name for name in ("format", "body", "keys", "schema") if getattr(options, name) is not None]
    if given or dialect_of(options) != Dialect():
        named = given[0] if given else "delimiter, encoding, quote, escape or multiline"
        raise InvalidRequest(f"--failed-from sends messages as they were staged, so leave out {named}")
    return FailedRows(options.retry_of, options.failed_from, options.and_pending)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _target(text: str) -> Target:
    try:
        (found,) = targets([json.loads(text)])
    except (ValueError, InvalidRequest) as error:
        raise argparse.ArgumentTypeError(f"not a target: {error}") from None
    return found


def _needs(options: argparse.Namespace) -> Mapping[str, str]:
    return Service.from_env().endpoints("dynamodb", "sqs", *(["scheduler"] if options.deadline else []))


JOB: Final = Job("fan-out", _ABOUT, _arguments, _run, output="staging", check=_rows, needs=_needs)

if __name__ == "__main__":
    sys.exit(JOB.main())
