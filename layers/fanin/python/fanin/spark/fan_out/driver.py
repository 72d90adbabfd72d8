"""A dataset to a queue, each row an item of one batch, however often drivers and tasks die on the way.

The driver stages the messages, opens the batch and adds its items, each step under an idempotency key; tasks
send. A row's item follows from its ordinal in the staging, so whoever sends it again sends the same item,
which the ledger counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import StructType

from fanin.client.messages import Message
from fanin.client.producing.sending import Sender
from fanin.domain.acks import Failure
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.limits import MAX_FAILURES
from fanin.spark.fan_out import bodies
from fanin.spark.fan_out.bodies import BODY, Dataset
from fanin.spark.fan_out.staging import ORDINAL, Staging, stage
from fanin.spark.runtime import rejects
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.service import Service

ADD_KEY: Final = "fan-out"
"""Idempotency key of the addition, within the batch."""

RESULT: Final = (
    StructType().add(ORDINAL, "long").add("detail", "string").add("sent", "long").add("requests", "long")
)
"""What sending gives: a row for each message that the queue refused, its ordinal and why; and a row for each
task, with the messages that were sent and the requests they took."""

_RESULT_ARROW: Final = pa.schema(
    [(ORDINAL, pa.int64()), ("detail", pa.string()), ("sent", pa.int64()), ("requests", pa.int64())]
)


@dataclass(frozen=True)
class Target:
    """Where messages go, and as which items.

    Attributes:
        queue: URL.
        group: ``<batch id>:<group id>``; a row's item is this and its ordinal.
        service: where the failures of refused messages are recorded.
        workers: requests at a time, of each task.
    """

    queue: str
    group: str
    service: Service
    workers: int = 8


@dataclass(frozen=True)
class Plan:
    """One fan-out; running the same again goes on with it.

    Attributes:
        dataset: what is sent.
        queue: URL of the queue.
        folder: for staging and results; it belongs to this fan-out.
        key: idempotency key of the batch; by default the staging's own.
        rejects: folder for rows that were not sent; by default one in ``folder``.
        request: the batch to open. Its metadata gets an entry ``staging``.
        workers: requests at a time, of each task.
    """

    dataset: Dataset
    queue: str
    folder: str
    key: str | None = None
    rejects: str | None = None
    request: OpenBatch = OpenBatch()
    workers: int = 8


def fan_out(spark: SparkSession, service: Service, plan: Plan) -> dict[str, Any]:
    """Send every row of a dataset as an item of one batch, and close the batch.

    Rows that are no message (malformed, null, too large) are rejects and no items. Messages that the queue
    refuses for good are rejects and failed items, so that the batch ends.

    Returns:
        ``batch_id``, ``rows`` (items), ``sent``, ``requests``, ``rejected`` (rows by reason), ``state``.
        ``sent`` and ``requests`` are null if the batch had been closed without the results being kept.

    Raises:
        InvalidRequest: the folder belongs to another fan-out, or the dataset has no such column.
        IdempotencyKeyReused: the key belongs to another fan-out.
        BatchGone: the batch of the key was removed.
    """
    staging = _staged(spark, plan)
    batch, group = _opened(service, plan, staging)
    files = Folder(spark, plan.folder)
    results = f"sent-{batch.batch_id}"
    if group is not None and not files.finished(results):
        target = Target(plan.queue, group, service, plan.workers)
        send(staging.read(spark), target).write.mode("overwrite").parquet(files.at(results))
    if batch.state is State.OPEN:
        batch = service.ledger().close(batch.batch_id)
    every = spark.createDataFrame([], rejects.SCHEMA)
    if files.finished(left_out := _left_out(staging.attempt)):
        every = spark.read.schema(rejects.SCHEMA).parquet(files.at(left_out))
    totals: dict[str, int | None] = dict.fromkeys(("sent", "requests"), None if staging.rows else 0)
    if files.finished(results):
        found = spark.read.schema(RESULT).parquet(files.at(results))
        totals, refused = _totals(found)
        if refused:
            every = every.unionByName(_refused(found, staging.read(spark)))
    return {
        "batch_id": batch.batch_id,
        "rows": staging.rows,
        **totals,
        "rejected": rejects.write_rejects(every, plan.rejects or files.at("rejects")),
        "state": batch.state.value,
    }


def send(numbered: DataFrame, target: Target) -> DataFrame:
    """Send messages, one an item; evaluating the result is what sends them, each time.

    Args:
        numbered: ``ordinal`` and ``body``.
        target: where they go.

    Returns:
        Of ``RESULT``.
    """
    return numbered.select(ORDINAL, BODY).mapInArrow(_sending(target), RESULT)


def _staged(spark: SparkSession, plan: Plan) -> Staging:
    files = Folder(spark, plan.folder)

    def make() -> DataFrame:
        return bodies.messages(bodies.read(spark, plan.dataset))

    def leave_out(attempt: str, messages: int) -> None:
        rows = bodies.read(spark, plan.dataset)
        # To count rows costs little; to find those that are no message is a second pass over all of them.
        if rows.count() != messages:
            bodies.left_out(rows).write.parquet(files.at(_left_out(attempt)))

    source = {**plan.dataset.describe(), "queue": plan.queue}
    return stage(spark, plan.folder, source, make, then=leave_out)


def _left_out(attempt: str) -> str:
    """The dataset of what an attempt left out, beside its rows; there is none if it left nothing out."""
    return f"{attempt}-left-out"


def _opened(service: Service, plan: Plan, staging: Staging) -> tuple[Batch, str | None]:
    """The batch, and the group of its items; None if there are none, or it takes no more."""
    ledger = service.ledger()
    # The staging is part of the request: two drivers that each staged the dataset cannot have one batch.
    metadata = {**plan.request.metadata, "staging": staging.attempt}
    request = OpenBatch(
        user_key=plan.request.user_key,
        idle_ttl=plan.request.idle_ttl,
        lifetime=plan.request.lifetime,
        deadline=plan.request.deadline,
        on_deadline=plan.request.on_deadline,
        metadata=metadata,
    )
    batch = ledger.open(request, key=plan.key or f"{ADD_KEY}/{staging.attempt}")
    if batch.state is not State.OPEN or not staging.rows:
        return batch, None
    return batch, ledger.add(batch.batch_id, staging.rows, key=ADD_KEY).prefix


def _sending(target: Target) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def task(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tracker = target.service.tracker()
        sender = Sender(
            tracker.sqs,
            target.queue,
            group_id=target.group.partition(":")[0],
            workers=target.workers,
            strict=True,  # the task is tried again, and the job; only what can never be sent has failed
        )
        yield from sending(pages, target.group, sender.send, tracker.fail)

    return task


def sending(
    pages: Iterable[pa.RecordBatch],
    group: str,
    send: Callable[[Iterable[Iterable[tuple[str, Message]]]], Iterator[tuple[int, dict[str, str]]]],
    fail: Callable[[list[Failure]], object],
) -> Iterator[pa.RecordBatch]:
    """What one task does, with no more in hand than a page, the requests under way and some refusals.

    Args:
        pages: of ``ordinal`` and ``body``.
        group: of the items.
        send: as ``Sender.send``.
        fail: records failures.

    Yields:
        Pages of ``RESULT``.
    """
    sent = requests = 0
    refused: dict[str, str] = {}
    for taken, failed in send(_entries(page, group) for page in pages):
        sent, requests = sent + taken, requests + 1
        refused |= failed
        if len(refused) >= MAX_FAILURES:
            yield _failed(refused, fail)
            refused = {}
    if refused:
        yield _failed(refused, fail)
    yield _result([{"sent": sent, "requests": requests}])


def _entries(page: pa.RecordBatch, group: str) -> Iterator[tuple[str, Message]]:
    ordinals, texts = page.column(ORDINAL).to_pylist(), page.column(BODY).to_pylist()
    return ((f"{group}:{ordinal}", Message(text)) for ordinal, text in zip(ordinals, texts, strict=True))


def _failed(refused: Mapping[str, str], fail: Callable[[list[Failure]], object]) -> pa.RecordBatch:
    fail([Failure(item, f"not sent: {why}") for item, why in refused.items()])
    return _result([{ORDINAL: int(item.rpartition(":")[2]), "detail": why} for item, why in refused.items()])


def _result(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=_RESULT_ARROW)


def _totals(results: DataFrame) -> tuple[dict[str, int | None], int]:
    """Messages sent and requests they took; and how many messages the queue refused."""
    (row,) = results.agg(
        F.coalesce(F.sum("sent"), F.lit(0)).alias("sent"),
        F.coalesce(F.sum("requests"), F.lit(0)).alias("requests"),
        F.count(ORDINAL).alias("refused"),
    ).collect()
    return {"sent": row["sent"], "requests": row["requests"]}, row["refused"]


def _refused(results: DataFrame, numbered: DataFrame) -> DataFrame:
    """The messages that the queue refused, as ``rejects.SCHEMA``."""
    found = results.where(F.col(ORDINAL).isNotNull()).select(ORDINAL, "detail")
    reason = F.lit(Reason.UNSENT.value).alias("reason")
    return numbered.join(found, ORDINAL).select(F.col(BODY).alias("value"), reason, "detail")
