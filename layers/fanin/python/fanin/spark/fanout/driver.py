"""A dataset to a queue: each row is an item of one batch, however often drivers and tasks die on the way.

The driver stages the messages, opens the batch and adds its items, each step under an idempotency key; then
the tasks send. A row's item follows from its ordinal in the staging. So whoever sends the row again sends the
same item, and the ledger counts it once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession

from fanin.domain.batch import Batch, OpenBatch, State
from fanin.errors import InvalidRequest
from fanin.spark.fanout import bodies
from fanin.spark.fanout.bodies import Dataset
from fanin.spark.fanout.earlier_batch import retrying
from fanin.spark.fanout.failed_rows import FailedRows, take_failed_rows
from fanin.spark.fanout.folder_owner import check_key, note_batch
from fanin.spark.fanout.opening import check_request, default_key, open_batch
from fanin.spark.fanout.queue_check import check_queue, check_url
from fanin.spark.fanout.rejects_folder import write_rejects
from fanin.spark.fanout.sending import Target, send
from fanin.spark.fanout.sent_messages import SentMessages
from fanin.spark.fanout.staging import Made, Staging, find_staging, left_out_name, stage
from fanin.spark.fanout.summary import accounted, summarize
from fanin.spark.inputs.footers import check_promised
from fanin.spark.inputs.opening import Opened, fingerprint_of
from fanin.spark.runtime import rejects
from fanin.spark.runtime.classic import classic
from fanin.spark.runtime.datasets import check_apart, read_dataset
from fanin.spark.runtime.file_tasks import one_task_for_each_file
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.progress import Progress
from fanin.spark.runtime.reject_limit import ANY, RejectLimit
from fanin.spark.runtime.rejects import check_rejects_folder, rejects_folder
from fanin.spark.runtime.service import Service


@dataclass(frozen=True)
class FanOut:
    """One fan-out; running the same one again continues it.

    Attributes:
        dataset: what to send: a dataset, or the failed rows of an earlier fan-out.
        queue: URL of the queue.
        folder: for the staging and the results; it belongs to this fan-out alone.
        key: idempotency key of the batch; by default the staging's own.
        rejects: folder for rows that were not sent; by default ``rejects`` in ``folder``.
        request: the batch to open: exact, and without a limit. Its metadata gets an entry ``staging``. What
            it leaves open of user key, metadata, totals and ``keep`` is as in the batch that it retries.
        workers: requests that each task sends at the same time.
        max_rejects: how many rows may be left out; by default not all of them.
    """

    dataset: Dataset | FailedRows
    queue: str
    folder: str
    key: str | None = None
    rejects: str | None = None
    request: OpenBatch = OpenBatch()
    workers: int = 8
    max_rejects: RejectLimit = ANY

    @property
    def left_out(self) -> str:
        """The folder for rows that were not sent."""
        return rejects_folder(self.rejects, self.folder)


class Watching(NamedTuple):
    """How a caller follows a fan-out, as the arguments of ``fan_out`` say."""

    opened: Callable[[Batch], object]
    progress: bool


def _ignore(_batch: Batch) -> None:
    """Nobody wants to know."""


def fan_out(
    spark: SparkSession,
    service: Service,
    plan: FanOut,
    *,
    opened: Callable[[Batch], object] = _ignore,
    progress: bool = False,
) -> dict[str, Any]:
    """Send every row of a dataset as an item of one batch, and close the batch.

    The dataset is evaluated once: what is sent and what is left out are made of the rows that were staged.

    Rows that cannot be a message (malformed, null, too large) become rejects, and not items. Messages that
    the queue refuses for good become rejects and failed items, so that the batch ends.

    Failed rows of an earlier fan-out are sent as a batch that retries its batch. Each failure is sent by one
    redrive only, whether that sends rows or the messages that were kept.

    Args:
        spark: the session.
        service: the stack.
        plan: what to send, and where.
        opened: called with the batch as soon as it is open, or was found; before any message is sent.
        progress: whether to say on standard error how many messages are sent. A task says how many it has
            sent when it ends.

    Returns:
        ``batch_id``, ``rows`` (items), ``sent``, ``requests``, ``rejects`` (rows by reason), ``accounted``
        (``in``, the rows of the dataset, is ``sent`` and ``rejected`` together) and ``state``. ``sent`` and
        ``requests`` are null if the batch was already closed and its results were lost. Of failed rows also
        ``retry_of`` and ``already``, the rows that another redrive has sent; if no rows are
        left, no batch is opened, and ``batch_id`` and ``state`` are null. If the batch ended before its rows
        were done, or its deadline completed it before all were sent, ``detail`` says how to send what is
        left.

    Raises:
        InvalidRequest: the queue is not a URL, the batch cannot be filled by Spark, the folder belongs to
            another fan-out or to other data, or the dataset does not have the column; or the earlier batch
            has not ended, or was not filled from the staging that is named; or the footers of Parquet files
            promise other rows than Spark reads, or what was sent does not account for every row.
        NotConfigured: there is no such queue; nothing was staged or sent.
        BatchNotFound: there is no batch to retry.
        TooManyRejects: too many rows have no message; nothing was sent.
        IdempotencyKeyReused: the key belongs to another fan-out.
        BatchGone: the batch of the key, or the batch to retry, was removed.
        ServiceUnavailable: the data changed while it was staged, the file system lost rows, or the rejects
            cannot be written; start the same fan-out again.
        InvalidItemId: the service did not issue the parent item.
    """
    check_request(plan.request)
    check_url(plan.queue)
    classic(spark, "fan_out")
    # Early, so that a run does not send everything and fail then.
    check_apart(spark, "rejects", plan.left_out, [f"{plan.folder}/rows"])
    check_rejects_folder(spark, plan.left_out)
    if find_staging(spark, plan.folder) is None:
        # Later the queue may be gone: a run that has nothing left to send does not need it.
        check_queue(service.tracker().sqs, plan.queue)
    watching = Watching(opened, progress)
    if isinstance(plan.dataset, FailedRows):
        return _retry(spark, service, plan, plan.dataset, watching)
    return _send(spark, service, plan, _staged(spark, plan, plan.dataset), watching)


def _retry(
    spark: SparkSession, service: Service, plan: FanOut, rows: FailedRows, watching: Watching
) -> dict[str, Any]:
    """Send the failed rows of an earlier fan-out."""
    source = {**rows.describe(), "queue": plan.queue}
    retried = take_failed_rows(spark, service, rows, plan.folder, source)
    told = {"retry_of": rows.batch_id, "already": retried.already}
    if not retried.staging.rows:
        nothing = {
            "rows": 0,
            "sent": 0,
            "requests": 0,
            "rejects": {},
            "accounted": accounted(0, sent=0, rejected=0),
        }
        return {"batch_id": None, **nothing, "state": None, **told}
    plan = replace(plan, request=retrying(plan.request, retried.earlier))
    return {**_send(spark, service, plan, retried.staging, watching), **told}


def _send(
    spark: SparkSession, service: Service, plan: FanOut, staging: Staging, watching: Watching
) -> dict[str, Any]:
    """Send rows that are staged, unless their batch has ended or all were sent; close it, and sum up."""
    files, key = Folder(spark, plan.folder), plan.key or default_key(staging)
    retry = isinstance(plan.dataset, FailedRows)
    check_key(files, key, service.ledger(), taken=retry)

    def opened(batch: Batch) -> None:
        watching.opened(batch)
        note_batch(files, batch, key)

    def began(batch_id: int) -> bool:
        return SentMessages(files, batch_id).began()

    batch, group = open_batch(service, plan.request, key, staging, opened, began=began if retry else None)
    messages = SentMessages(files, batch.batch_id)
    if group is not None and messages.results() is None:
        messages.begin()
        batch = service.ledger().refresh([batch.batch_id])[batch.batch_id]
        if batch.state is State.OPEN:
            results = messages.new()
            target = Target(plan.queue, group, service, plan.workers)
            _send_messages(spark, staging, target, files.at(results), progress=watching.progress)
            messages.finish(results)
    if batch.state is State.OPEN:
        batch = service.ledger().close(batch.batch_id)
    return summarize(spark, files, batch, staging, plan.left_out)


def _send_messages(
    spark: SparkSession, staging: Staging, target: Target, results: str, *, progress: bool
) -> None:
    """Have tasks send the messages of a staging, and write what came of it to ``results``."""
    count: Accumulator[int] = spark.sparkContext.accumulator(0)
    shown = Progress("messages", staging.rows, lambda: count.value) if progress else nullcontext()
    # Tasks say how far they are when they end, so of a small staging each reads a single file.
    apart = one_task_for_each_file(spark) if staging.small else nullcontext()
    with apart, shown:
        send(staging.read(spark), replace(target, count=count)).write.parquet(results)


def _staged(spark: SparkSession, plan: FanOut, dataset: Dataset) -> Staging:
    files, left = Folder(spark, plan.folder), plan.left_out
    opened: list[Opened] = []
    # The folder may hold the dataset itself, but what is staged in it must not become a part of that.
    written = {left: "rejects (--rejects)", files.at("rows"): "folder (--staging)"}

    def make() -> DataFrame:
        found = bodies.read(spark, dataset, written)
        opened.append(found.opened)
        return found.rows

    def check(made: Made) -> None:
        check_promised(spark, opened[0], made.rows + made.left)
        if made.left:
            found = read_dataset(spark, files.at(left_out_name(made.attempt)), rejects.SCHEMA)
            counted = write_rejects(spark, found, left)
            plan.max_rejects.check(counted, made.rows + made.left, left, spark)

    def data() -> dict[str, Any] | None:
        try:
            return fingerprint_of(spark, dataset.input)
        except InvalidRequest:
            return None  # if it is gone, what was staged of it is sent; if nothing was, reading it says why

    source = {**dataset.describe(), "queue": plan.queue}
    return stage(spark, plan.folder, source, make, data=data, then=check)
