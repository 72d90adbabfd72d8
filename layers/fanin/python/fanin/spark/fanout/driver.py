"""A dataset to a queue: each row is an item of one batch, however often drivers and tasks die on the way.

The driver stages the messages, opens the batch and adds its items, each step under an idempotency key; then
the tasks send. A row's item follows from its ordinal in the staging. So whoever sends the row again sends the
same item, and the ledger counts it once.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from os import PathLike
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from fanin.client.conversions import member
from fanin.domain.batch import Batch, CloseWhen, OpenBatch, State
from fanin.domain.limits import shown
from fanin.errors import InvalidRequest
from fanin.spark.fanout import bodies
from fanin.spark.fanout.failed_rows import EarlierBatch, FailedRows, retrying, take_failed_rows
from fanin.spark.fanout.folder import SentMessages, check_key, note_batch
from fanin.spark.fanout.opening import ADD_KEY, check_queue, check_url, open_batch, request_of
from fanin.spark.fanout.sending import SendTarget, send, sent_before
from fanin.spark.fanout.staging import Data, Staging, find_staging, left_out_name, stage
from fanin.spark.fanout.summary import FannedOut, summarize, write_rejects
from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.listing import check_not_replaced, files_of, fingerprint
from fanin.spark.inputs.opening import Opened, check_promised, fingerprint_of, open_input
from fanin.spark.runtime import rejects
from fanin.spark.runtime.datasets import check_apart, read_dataset
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.places import path_of
from fanin.spark.runtime.progress import JobProgress
from fanin.spark.runtime.rejects import RejectLimit, check_rejects_folder, rejects_folder
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import classic, holding, one_task_for_each_file, session_of
from fanin.spark.runtime.values import whole

_PAGES: Final = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 2**20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}
"""Bodies may be large: pages for tasks are bounded by bytes, and by rows for Spark 3.5. Each that is sent is
noted, so that another run leaves it out."""


class FanOutPlan(NamedTuple):
    """One fan-out, with its arguments as they were read; see ``fan_out``."""

    rows: DataFrame | Dataset | FailedRows
    body: str | None
    keys: str | None
    queue: str
    folder: str
    key: str | None
    left_out: str
    request: OpenBatch
    workers: int
    fair: bool
    close: CloseWhen
    max_rejects: RejectLimit
    opened: Callable[[Batch], object]
    progress: bool


def fan_out(
    rows: DataFrame | Dataset | FailedRows,
    service: Service | None = None,
    *,
    queue: str,
    staging: str | PathLike[str],
    body: str | None = None,
    keys: str | None = None,
    key: str | None = None,
    rejects: str | PathLike[str] | None = None,
    max_rejects: int | str | RejectLimit | None = None,
    workers: int = 8,
    fair: bool = False,
    close: CloseWhen | str = CloseWhen.NOW,
    opened: Callable[[Batch], object] = lambda _: None,
    progress: bool = False,
    **batch: Any,
) -> FannedOut:
    """Send every row as an item of one batch, and close the batch. Running the same again continues it.

    The rows are evaluated once: what is sent and what is left out are made of the rows that were staged.

    Rows that cannot be a message (malformed, null, too large) become rejects, and not items. Messages that
    the queue refuses for good become rejects and failed items, so that the batch ends.

    Failed rows of an earlier fan-out are sent as a batch that retries its batch. Each failure is sent by one
    redrive only, whether that sends rows or the messages that were kept.

    Example:
        >>> done = fan_out(rows, queue=queue, staging="s3://lake/runs/1", user_key="me")  # doctest: +SKIP
        >>> done.batch_id, done.sent, done.rejects  # doctest: +SKIP

    Args:
        rows: a DataFrame; a ``Dataset``, which says where the rows are; or ``FailedRows``.
        service: the stack; by default the one that the environment names.
        queue: URL of the queue.
        staging: a folder for the staging and the results; it belongs to this fan-out alone.
        body: the column that holds the message. None sends the row as a JSON object that keeps nulls; an
            object of a JSON dataset is sent as it is.
        keys: the column that holds the keys of items: text of 1 to 512 bytes in UTF-8. One key is one item of
            the batch, so of several rows with a key the first is sent, and the others are rejects; and a row
            whose key others have added to the batch, with another message, is a reject, too. By default
            items have no keys.
        key: idempotency key of the batch; by default the staging's own.
        rejects: folder for rows that were not sent; by default ``rejects`` in ``staging``.
        max_rejects: how many rows may be left out, 100 or ``"2.5%"``; by default not all of them.
        workers: requests that each task sends at the same time.
        fair: on a standard queue, name the batch as the group of its messages, so that a large batch does not
            keep the messages of others waiting (SQS's fair queues).
        close: ``drained`` lets the items of the batch add more until all are done; see ``Tracker.close``.
        opened: called with the batch as soon as it is open, or was found; before any message is sent.
        progress: whether to say on standard error how many messages are sent. A task says how many it has
            sent when it ends.
        batch: options of the batch, as ``Tracker.open`` takes them, such as ``user_key``; an exact one,
            without a limit. Its metadata gets an entry ``staging``. What is left out of user key, metadata,
            totals and ``keep`` is as in the batch that it retries.

    Raises:
        InvalidRequest: an argument is not what it should be, the batch cannot be filled by Spark, the folder
            belongs to another fan-out or to other data, or the rows do not have the column; or the earlier
            batch has not ended, or was not filled from the staging that is named; or the footers of Parquet
            files promise other rows than Spark reads, or what was sent does not account for every row.
        NotConfigured: there is no such queue; nothing was staged or sent.
        BatchNotFound: there is no batch to retry.
        TooManyRejects: too many rows have no message; nothing was sent.
        IdempotencyKeyReused: the key belongs to another fan-out.
        BatchGone: the batch of the key, or the batch to retry, was removed.
        ServiceUnavailable: the data changed while it was staged, the file system lost rows, or the rejects
            cannot be written; start the same fan-out again.
        InvalidItemId: the service did not issue the parent item.
    """
    folder = path_of("staging", staging)
    for name, column in (("body", body), ("keys", keys)):
        if not isinstance(column, str | None):
            raise InvalidRequest(f"{name} must be the name of a column, not {shown(column)}")
    plan = FanOutPlan(
        rows,
        body,
        keys,
        check_url(queue),
        folder,
        key,
        rejects_folder(None if rejects is None else path_of("rejects", rejects), folder),
        request_of(batch),
        whole("workers", workers, 1),
        fair,
        member(CloseWhen, close),
        RejectLimit.of(max_rejects),
        opened,
        progress,
    )
    if not (body is None and keys is None) and isinstance(rows, FailedRows):
        raise InvalidRequest(
            "failed rows are sent as they were staged, and their items have no keys; leave out body and keys"
        )
    spark = classic(session_of(rows), "fan_out")
    service = service or Service.from_env()
    # Early, so that a run does not send everything and fail then.
    check_apart(spark, "rejects", plan.left_out, [f"{folder}/rows"])
    check_rejects_folder(spark, plan.left_out)
    if find_staging(spark, folder) is None:
        # Later the queue may be gone: a run that has nothing left to send does not need it. And no batch is
        # open yet: what none can be opened with is refused before the rows are read.
        check_queue(service.tracker().sqs, queue)
        service.ledger().draft(plan.request, None, None, 0)
    with holding(spark, _PAGES):
        if isinstance(rows, FailedRows):
            return _retry(spark, service, plan, rows)
        return _send(spark, service, plan, _staged(spark, plan, rows))


def _retry(spark: SparkSession, service: Service, plan: FanOutPlan, rows: FailedRows) -> FannedOut:
    source = {**rows.describe(), "queue": plan.queue}
    staging, already = take_failed_rows(spark, service, rows, plan.folder, source)
    if staging.rows:
        plan = plan._replace(request=retrying(plan.request, EarlierBatch(**staging.notes)))
        done = _send(spark, service, plan, staging)
    else:
        done = FannedOut(batch_id=None, rows=0, sent=0, requests=0, rejects={}, state=None)
    return replace(done, retry_of=rows.batch_id, already=already)


def _send(spark: SparkSession, service: Service, plan: FanOutPlan, staging: Staging) -> FannedOut:
    """Send rows that are staged, unless their batch has ended or all were sent; close it, and sum up."""
    files, key = Folder(spark, plan.folder), plan.key or f"{ADD_KEY}/{staging.attempt}"
    retry = isinstance(plan.rows, FailedRows)
    check_key(files, key, service.ledger(), taken=retry)

    def opened(batch: Batch) -> None:
        plan.opened(batch)
        note_batch(files, batch, key)

    began = (lambda batch_id: SentMessages(files, batch_id).began()) if retry else None
    batch, group = open_batch(service, plan.request, key, staging, opened, began=began)
    messages = SentMessages(files, batch.batch_id)
    if group is not None and messages.results() is None:
        target = SendTarget(plan.queue, group, service, plan.workers, plan.fair)
        before = sent_before(target) if messages.began() else []
        messages.begin()
        batch = service.ledger().refresh([batch.batch_id])[batch.batch_id]
        if batch.state is State.OPEN:
            results, count = messages.new(), spark.sparkContext.accumulator(0)
            told = (
                JobProgress("messages", staging.rows, lambda: count.value) if plan.progress else nullcontext()
            )
            # Tasks say how far they are when they end, so of a small staging each reads a single file.
            with one_task_for_each_file(spark) if staging.small else nullcontext(), told:
                sending = send(staging.read(spark), replace(target, count=count, sent=before))
                sending.write.parquet(files.at(results))
            messages.finish(results)
    if batch.state is State.OPEN:
        batch = service.ledger().close(batch.batch_id, when=plan.close)
    return summarize(spark, files, batch, staging, plan.left_out)


def _staged(spark: SparkSession, plan: FanOutPlan, rows: DataFrame | Dataset) -> Staging:
    files, left = Folder(spark, plan.folder), plan.left_out
    opened: list[Opened] = []
    # The folder may hold the dataset itself, but what is staged in it must not become a part of that.
    written = {left: "rejects (--rejects)", files.at("rows"): "folder (--staging)"}

    def make() -> tuple[DataFrame, Data]:
        if not isinstance(rows, Dataset):
            files = files_of(rows)
            check_not_replaced(spark, "of the DataFrame", files, written)
            return bodies.of_rows(rows, plan.body, keys=plan.keys), fingerprint(files) if files else None
        fields = list(dict.fromkeys(name for name in (plan.body, plan.keys) if name is not None))
        found = open_input(spark, rows, fields=fields, replaced=written)
        opened.append(found)
        messages = bodies.of_rows(found.rows, plan.body, found.format, plan.keys)
        return messages, data() if found.files is None else fingerprint(found.files)

    def check(made: Staging) -> None:
        if opened:
            check_promised(opened[0], made.rows + made.left)
        if made.left:
            found = read_dataset(spark, files.at(left_out_name(made.attempt)), rejects.SCHEMA)
            counted = write_rejects(spark, found, left)
            plan.max_rejects.check(counted, made.rows + made.left, left, spark)

    def data() -> Data:
        try:
            if isinstance(rows, Dataset):
                return fingerprint_of(spark, rows)
            found = files_of(rows)
            return fingerprint(found) if found else None
        except InvalidRequest:
            return None  # if it is gone, what was staged of it is sent; if nothing was, reading it says why

    described = rows.describe() if isinstance(rows, Dataset) else {"columns": rows.schema.simpleString()}
    source = {**described, "body": plan.body, "keys": plan.keys, "queue": plan.queue}
    return stage(spark, plan.folder, source, make, data=data, then=check)
