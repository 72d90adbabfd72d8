"""The rows of a fan-out whose items failed, taken to be sent again: each failure by one redrive only.

A staging says which row is which item, so the dataset itself is not needed, and messages need not have been
kept. The rows are chosen and written down first. Then each is taken by the same conditional write with which
a redrive of kept messages takes a failure, under a name that belongs to what was written down. Whoever
repeats a step, at whatever point a driver died, takes the same rows.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import StructType

from fanin.app.ledger.failed import Held
from fanin.app.ports import Ports
from fanin.app.ports.parts import FailureRow, Redriven
from fanin.domain.batch import Batch, Kind, Mode, OpenBatch
from fanin.domain.failures import Keep
from fanin.errors import GONE, InvalidRequest
from fanin.spark.fanout.bodies import BODY, KEY
from fanin.spark.fanout.folder import noted_batch
from fanin.spark.fanout.opening import STAGING, first_ordinal
from fanin.spark.fanout.staging import ORDINAL, Staging, find_staging, stage
from fanin.spark.outcome import ordinals_of_keys, outcomes
from fanin.spark.runtime.arrow import ArrowBatches, Task
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.places import path_of
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import Located, session
from fanin.spark.runtime.values import whole

EARLIER: Final = "retry_of_ordinal"
"""The column of a staging with the ordinal that the row had in the earlier batch."""

_CHOSEN: Final = "chosen"
_ROWS: Final = StructType().add(EARLIER, "long").add(BODY, "string")


@dataclass(frozen=True)
class FailedRows(Located):
    """Rows of an earlier fan-out that are to be sent again, as items of a new batch.

    Attributes:
        batch_id: the batch of the earlier fan-out; it must have ended.
        folder: the folder of the earlier fan-out, with its staging.
        pending: whether rows whose items are pending are sent again, too. Their messages may still be in the
            queue; consumers drop them as far as they know that their batch has ended.
    """

    batch_id: int
    folder: str | os.PathLike[str]
    pending: bool = False

    @property
    def place(self) -> str:
        """The folder as text."""
        return path_of("the folder of failed rows", self.folder)

    def describe(self) -> dict[str, Any]:
        """What the rows depend on, as JSON."""
        return {"retry_of": self.batch_id, "staging": self.place, "pending": self.pending}

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_id", whole("batch_id", self.batch_id))
        _ = self.place


class EarlierBatch(NamedTuple):
    """What a new batch takes over from the batch that it retries.

    It is stored with the rows that were taken: no other redrive sends these, so they must go out even if the
    earlier batch is removed; so it has types of JSON only.
    """

    batch_id: int
    user_key: str
    keep: str
    totals: Sequence[str]
    metadata: Mapping[str, str]

    @classmethod
    def of(cls, batch: Batch) -> Self:
        return cls(batch.batch_id, batch.user_key, batch.keep.value, list(batch.totals), dict(batch.metadata))


def take_failed_rows(
    spark: SparkSession, service: Service, rows: FailedRows, folder: str, source: dict[str, Any]
) -> tuple[Staging, int]:
    """Stage the failed rows of an earlier fan-out that no other redrive has sent, in the folder of a new one.

    If all rows are staged already, neither the earlier batch nor its staging is read.

    Returns:
        The rows that are to be sent again, whose notes are those of an ``EarlierBatch``; and how many others
        another redrive has sent already.
    """
    staging, chosen = (find_staging(spark, at, source) for at in (folder, f"{folder}/{_CHOSEN}"))
    if staging is not None and chosen is not None:
        return staging, chosen.rows - staging.rows
    batch = ended_batch(still_there(service, rows.batch_id, chosen))
    sent_from = find_staging(spark, rows.place)
    if sent_from is None or batch.metadata.get(STAGING) != sent_from.attempt:
        holds = "no finished staging" if sent_from is None else "the staging of another batch"
        raise InvalidRequest(
            f"{rows.place} holds {holds}: name the folder from which batch {batch.batch_id} was fanned out"
        )

    # A batch that is removed while tasks read or mark it reads as if nothing had failed, or been taken by
    # others. If it is there after all tasks, it was there for each of them.
    def check(_made: Staging) -> None:
        still_there(service, batch.batch_id, chosen)

    def choose() -> tuple[DataFrame, None]:
        return _choose(spark, service, rows, batch, sent_from), None

    chosen = stage(spark, f"{folder}/{_CHOSEN}", source, choose, then=check)
    task, notes = take_task(service, batch, f"dataset/{chosen.attempt}"), EarlierBatch.of(batch)._asdict()
    taken = chosen.read(spark).select(*_ROWS.names).mapInArrow(task, _ROWS)
    staging = stage(spark, folder, source, lambda: (taken, None), then=check, notes=notes)
    return staging, chosen.rows - staging.rows


def _choose(
    spark: SparkSession, service: Service, rows: FailedRows, batch: Batch, sent_from: Staging
) -> DataFrame:
    """The rows whose items have failed, or are pending, with their ordinals in the batch."""
    if not sent_from.rows:
        return spark.createDataFrame([], _ROWS)
    numbered = with_ordinals(spark, service, batch, sent_from).select(ORDINAL, BODY)
    wanted = ["failed", "held", *(["pending"] if rows.pending else [])]
    told = outcomes(numbered.select(ORDINAL), service, batch_id=batch.batch_id)
    found = told.where(F.col("outcome").isin(wanted)).select(ORDINAL)
    return numbered.join(found, ORDINAL).select(F.col(ORDINAL).alias(EARLIER), BODY)


def take_task(service: Service, batch: Batch, name: str) -> Task:
    """Make the function of a task that takes rows of ``_ROWS`` for a redrive, and gives those that it has."""

    def run(pages: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        ports = service.ledger().ports
        for page in pages:
            ordinals = page.column(EARLIER).to_pylist()
            taken = take(ports, batch, name, ordinals)
            yield page.filter(pa.array([ordinal in taken for ordinal in ordinals], pa.bool_()))

    return run


def take(ports: Ports, batch: Batch, name: str, ordinals: Collection[int]) -> set[int]:
    """Take failures of an ended batch for a redrive, and give those that it has taken, now or before."""
    if not ordinals:
        return set()
    parts, batch_id = ports.parts, batch.batch_id
    found = parts.notes(batch_id, ordinals)
    notes = [found.get(ordinal) or FailureRow(ordinal, "", "") for ordinal in ordinals]
    takings = Held(ports).takings(batch, notes, elsewhere=True)
    mine = {ordinal for ordinal, mark in takings.marks.items() if mark.redrive == name}
    free = {note.ordinal: Redriven(name, note.failed_at) for note in takings.free if note.ordinal not in mine}
    return mine | parts.mark_redriven(batch_id, free, takings.marks, expires_at=batch.expires_at)


def still_there(service: Service, batch_id: int, chosen: Staging | None) -> Batch:
    """Read the earlier batch. If it is gone, and rows may be taken of those chosen, say how to send all."""
    try:
        return service.ledger().refresh([batch_id])[batch_id]
    except GONE as error:
        if chosen is None or not chosen.rows:
            raise
        rows = f"{chosen.folder}/{chosen.attempt}"
        raise type(error)(
            f"batch {batch_id} was removed before all of its failed rows were taken, so nobody can tell which"
            f" another redrive has sent. To send all {chosen.rows} of them, fan them out as a dataset:"
            f" --input {rows} --format parquet --body {BODY} and another --staging"
        ) from error


def ended_batch(batch: Batch) -> Batch:
    """Refuse a batch whose rows cannot be sent again, or not yet."""
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


def retrying(request: OpenBatch, earlier: EarlierBatch) -> OpenBatch:
    """The request for the new batch: what it leaves open is as in the earlier batch."""
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


def sent_rows(folder: str | PathLike[str], service: Service | None = None) -> DataFrame:
    """Read the rows that a fan-out has sent, each with its item: the input of ``outcomes``.

    The rows are read from the folder of the fan-out, and nothing is sent or written.

    Example:
        >>> told = outcomes(sent_rows("s3://lake/runs/orders"))  # doctest: +SKIP

    Args:
        folder: of the fan-out, its ``--staging``.
        service: the stack; by default the one that the environment names.

    Returns:
        ``batch_id`` and ``ordinal``, which name the item, ``body``, the message, and ``key``, if items have
        keys; a row for each item, in any order. Rows that were left out, since they could not be a message,
        are not among them.

    Raises:
        InvalidRequest: no fan-out has sent the rows of the folder; says what to do.
        BatchNotFound, BatchGone: the batch is not there, or was removed.
    """
    folder, spark, service = path_of("folder", folder), session("fanin"), service or Service.from_env()
    staging, batch_id = find_staging(spark, folder), noted_batch(Folder(spark, folder))
    if staging is None or batch_id is None:
        holds = "holds no finished staging" if staging is None else "has staged rows, and no batch"
        raise InvalidRequest(
            f"{folder} {holds}: name the folder that a fan-out had as --staging. If it did not come to its"
            " end, run it again"
        )
    batch = service.ledger().refresh([batch_id])[batch_id]
    if batch.metadata.get(STAGING) != staging.attempt or (staging.rows and not batch.items):
        raise InvalidRequest(f"the rows of {folder} are not items of batch {batch_id}; run the fan-out again")
    return with_ordinals(spark, service, batch, staging)


def with_ordinals(spark: SparkSession, service: Service, batch: Batch, staging: Staging) -> DataFrame:
    """The rows of a staging that are items of its batch, as ``sent_rows`` gives them."""
    rows, batch_id = staging.read(spark), F.lit(batch.batch_id).cast("long")
    if staging.keyed:
        found = ordinals_of_keys(service, batch_id, F.col(KEY), F.col(BODY))
        items = rows.select(batch_id.alias("batch_id"), found.alias(ORDINAL), BODY, KEY)
        return items.where(F.col(ORDINAL).isNotNull())
    first = first_ordinal(service, batch, staging) if staging.rows else 0
    return rows.select(batch_id.alias("batch_id"), (F.col(ORDINAL) + F.lit(first)).alias(ORDINAL), BODY)
