"""The rows of a fan-out whose items failed, taken to be sent again: each failure by one redrive only.

A staging says which row is which item, so the dataset itself is not needed, and messages need not have been
kept. The rows are chosen and written down first. Then each is taken by the same conditional write with which
a redrive of kept messages takes a failure, under a name that belongs to what was written down. Whoever
repeats a step, at whatever point a driver died, takes the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import LongType, StringType, StructField, StructType

from fanin.app.ports.parts import PartStore
from fanin.app.redrives.planning import taken_at
from fanin.domain import ids
from fanin.domain.batch import Batch, Kind, Mode, OpenBatch
from fanin.domain.failures import Keep
from fanin.errors import BatchClosed, InvalidRequest
from fanin.spark.ack.schemas import Records
from fanin.spark.ack.tasks import Task
from fanin.spark.fanout.bodies import BODY
from fanin.spark.fanout.staging import ORDINAL, Staging, find_staging, stage
from fanin.spark.outcome.driver import outcomes
from fanin.spark.runtime.service import Service

STAGING: Final = "staging"
"""The entry in the metadata of a fan-out's batch that names its staging."""
ADD_KEY: Final = "fan-out"
"""Idempotency key of the addition, within the batch of a fan-out."""
EARLIER: Final = "retry_of_ordinal"
"""The column of a staging with the ordinal that the row had in the earlier batch."""

_CHOSEN: Final = "chosen"
_ROWS: Final = StructType([StructField(EARLIER, LongType()), StructField(BODY, StringType())])
_FAILED: Final = ("failed", "held")
_PENDING: Final = "pending"


@dataclass(frozen=True)
class FailedRows:
    """Rows of an earlier fan-out that are to be sent again, as items of a new batch.

    Attributes:
        batch_id: the batch of the earlier fan-out; it must have ended.
        folder: the folder of the earlier fan-out, with its staging.
        pending: whether rows whose items are pending are sent again, too. Their messages may still be in the
            queue; consumers drop them as far as they know that their batch has ended.
    """

    batch_id: int
    folder: str
    pending: bool = False

    def describe(self) -> dict[str, Any]:
        """What the rows depend on, as JSON."""
        return {"retry_of": self.batch_id, "staging": self.folder, "pending": self.pending}


class EarlierBatch(NamedTuple):
    """What a new batch takes over from the batch that it retries.

    It is stored with the rows that were taken: no other redrive sends these, so they must go out even if the
    earlier batch is removed.

    Attributes:
        batch_id: of the earlier batch.
        user_key, keep, totals, metadata: as that batch has them, in types of JSON.
    """

    batch_id: int
    user_key: str
    keep: str
    totals: Sequence[str]
    metadata: Mapping[str, str]

    @classmethod
    def of(cls, batch: Batch) -> EarlierBatch:
        return cls(batch.batch_id, batch.user_key, batch.keep.value, list(batch.totals), dict(batch.metadata))


class Retried(NamedTuple):
    """What is to be sent again.

    Attributes:
        earlier: the earlier batch.
        staging: the rows that are taken.
        already: rows that were left out, because another redrive has sent them.
    """

    earlier: EarlierBatch
    staging: Staging
    already: int


def take_failed_rows(
    spark: SparkSession, service: Service, rows: FailedRows, folder: str, source: dict[str, Any]
) -> Retried:
    """Stage the failed rows of an earlier fan-out that no other redrive has sent.

    If all rows are staged already, neither the earlier batch nor its staging is read.

    Args:
        spark: the session.
        service: the stack.
        rows: which rows.
        folder: of the new fan-out.
        source: everything that the new fan-out depends on, as JSON.

    Raises:
        InvalidRequest: the batch has not ended, or was not filled from the staging; or the folder belongs to
            another fan-out.
        BatchNotFound, BatchGone: the earlier batch is not there, or was removed.
    """
    staging, chosen = (find_staging(spark, at, source) for at in (folder, f"{folder}/{_CHOSEN}"))
    if staging is not None and chosen is not None and staging.notes:
        return Retried(EarlierBatch(**staging.notes), staging, chosen.rows - staging.rows)
    batch = ended_batch(service.ledger().refresh([rows.batch_id])[rows.batch_id])
    sent_from = find_staging(spark, rows.folder)
    if sent_from is None or batch.metadata.get(STAGING) != sent_from.attempt:
        holds = "no finished staging" if sent_from is None else "the staging of another batch"
        raise InvalidRequest(
            f"{rows.folder} holds {holds}: name the folder from which batch {batch.batch_id} was fanned out"
        )
    chosen = stage(
        spark, f"{folder}/{_CHOSEN}", source, lambda: _choose(spark, service, rows, batch, sent_from)
    )
    task = take_task(service, batch.batch_id, f"dataset/{chosen.attempt}")
    earlier, given = EarlierBatch.of(batch), chosen.read(spark).select(*_ROWS.names)
    staging = stage(spark, folder, source, lambda: given.mapInArrow(task, _ROWS), notes=earlier._asdict())
    return Retried(earlier, staging, chosen.rows - staging.rows)


def ended_batch(batch: Batch) -> Batch:
    """Refuse a batch whose rows cannot be sent again, or not yet.

    Raises:
        InvalidRequest: it is estimated, belongs to a pattern, or has not ended.
    """
    if batch.kind is not Kind.BATCH or batch.mode is not Mode.EXACT:
        raise InvalidRequest(
            f"{batch.batch_id} is not the batch of a fan-out on Spark, which is a plain and exact one"
        )
    if not batch.state.terminal:
        raise InvalidRequest(
            f"batch {batch.batch_id} is {batch.state}; its failed rows can be sent again when it has ended."
            f" `fanin why {batch.batch_id}` says what it waits for"
            + (f", and `fanin redrive {batch.batch_id}` sends what it holds" if batch.holds else "")
        )
    return batch


def _choose(
    spark: SparkSession, service: Service, rows: FailedRows, batch: Batch, sent_from: Staging
) -> DataFrame:
    """The rows whose items have failed, or are pending, with their ordinals in the batch."""
    if not sent_from.rows:
        return spark.createDataFrame([], _ROWS)
    first = _first_ordinal(service, batch, sent_from)
    numbered = sent_from.read(spark).select((F.col(ORDINAL) + F.lit(first)).alias(ORDINAL), BODY)
    wanted = [*_FAILED, *([_PENDING] if rows.pending else [])]
    told = outcomes(numbered.select(ORDINAL), service, batch_id=batch.batch_id)
    found = told.where(F.col("outcome").isin(wanted)).select(ORDINAL)
    return numbered.join(found, ORDINAL).select(F.col(ORDINAL).alias(EARLIER), BODY)


def _first_ordinal(service: Service, batch: Batch, sent_from: Staging) -> int:
    """Ordinal of the first row: that of the addition, of which a repeat says the same."""
    try:
        group = service.ledger().add(batch.batch_id, sent_from.rows, key=ADD_KEY)
    except BatchClosed:
        raise InvalidRequest(
            f"batch {batch.batch_id} ended before its rows became items, so nothing was sent; fan the"
            " dataset out again, in another folder"
        ) from None
    return ids.parse_prefix(group.prefix).first


def take_task(service: Service, batch_id: int, name: str) -> Task:
    """Make the function of a task that takes rows for a redrive.

    Args:
        service: the stack.
        batch_id: the earlier batch.
        name: of the redrive.

    Returns:
        A function that takes the ordinals of the rows in the earlier batch and their messages, and gives
        those that this redrive has taken, now or before.
    """

    def run(pages: Iterable[Records]) -> Iterator[Records]:
        ledger = service.ledger()
        batch = ledger.refresh([batch_id])[batch_id]
        for page in pages:
            ordinals = page.column(EARLIER).to_pylist()
            taken = take(ledger.ports.parts, batch, name, ordinals)
            yield page.filter(pa.array([ordinal in taken for ordinal in ordinals], pa.bool_()))

    return run


def take(parts: PartStore, batch: Batch, name: str, ordinals: Collection[int]) -> set[int]:
    """Take failures of an ended batch for a redrive, unless another redrive has.

    Returns:
        The ordinals that this redrive has taken, now or before.
    """
    if not ordinals:
        return set()
    notes = parts.notes(batch.batch_id, ordinals)
    failed_at = {ordinal: notes[ordinal].failed_at if ordinal in notes else 0 for ordinal in ordinals}
    wanted = {ordinal: taken_at(batch, at) for ordinal, at in failed_at.items()}
    return parts.mark_redriven(batch.batch_id, name, wanted, again=batch.holds, expires_at=batch.expires_at)


def retrying(request: OpenBatch, earlier: EarlierBatch) -> OpenBatch:
    """The request for the new batch: what it leaves open is as in the earlier batch.

    Raises:
        InvalidRequest: the request retries another batch.
    """
    if request.retry_of not in {None, earlier.batch_id}:
        raise InvalidRequest(
            f"the rows are those of batch {earlier.batch_id}, and the request retries batch"
            f" {request.retry_of}; leave retry_of out"
        )
    return replace(
        request,
        retry_of=earlier.batch_id,
        user_key=request.user_key or earlier.user_key,
        keep=request.keep or Keep(earlier.keep),
        totals=request.totals or tuple(earlier.totals),
        metadata={**earlier.metadata, **request.metadata},
    )
