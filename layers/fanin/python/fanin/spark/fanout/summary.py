"""What a fan-out says at its end: how many messages were sent, which were not, and what is left to do.

Its rejects have one place, which people name, and Spark cannot write a dataset twice at the same time: the
run that commits first deletes what the other one has written. So each run looks afterwards whether they are
whole there, and writes them once more if not.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import Final

import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.domain.batch import Batch, State
from fanin.errors import InvalidRequest, ServiceUnavailable
from fanin.spark.fanout.bodies import BODY
from fanin.spark.fanout.folder import SentMessages
from fanin.spark.fanout.sending import RESULT
from fanin.spark.fanout.staging import ORDINAL, Staging, left_out_name
from fanin.spark.runtime import rejects
from fanin.spark.runtime.datasets import read_dataset, read_few
from fanin.spark.runtime.failures import refused_storage, root_cause
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.results import Result


class SentSoFar(StrEnum):
    """How many messages of a batch were sent, as far as the folder knows; in words."""

    NONE = ", and none of its rows was sent"
    SOME = ", and perhaps not all of its rows were sent"
    """A run may have sent some, and none has noted that it sent all."""
    ALL = ""


@dataclass(frozen=True)
class FannedOut(Result):
    """What a fan-out did.

    Attributes:
        batch_id: the batch; None if a redrive had nothing left to send.
        rows: that were staged, each for an item of the batch.
        sent: messages that were sent; None if the batch was already closed, and its results were lost.
        requests: that the last run took; None likewise.
        rejects: rows that are not sent, by reason.
        state: of the batch; it is open after a run that has closed it once it is drained.
        detail: how to send what is left, if the batch ended before its rows were done, or its deadline
            completed it before all were sent.
        retry_of: the earlier batch whose failed rows were sent.
        already: rows of that batch that another redrive has sent.
    """

    batch_id: int | None
    rows: int
    sent: int | None
    requests: int | None
    rejects: dict[str, int]
    state: State | None
    detail: str | None = None
    retry_of: int | None = None
    already: int | None = None

    @property
    def ok(self) -> bool:  # type: ignore[override]
        """Whether the batch is closed, drains or is complete, with nothing left to send."""
        return self.state in {State.OPEN, State.CLOSED, State.COMPLETE, None} and self.detail is None

    @property
    def accounted(self) -> dict[str, int | None]:
        """Every row once: ``in`` is ``sent`` and ``rejected`` together, unless that is not known."""
        rejected = sum(self.rejects.values())
        items_too = sum(self.rejects.get(reason, 0) for reason in (Reason.UNSENT, Reason.CONFLICTING))
        return {"in": self.rows + rejected - items_too, "sent": self.sent, "rejected": rejected}


def summarize(
    spark: SparkSession, files: Folder, batch: Batch, staging: Staging, rejects_folder: str
) -> FannedOut:
    """Summarize a fan-out whose batch has all its messages, or takes no more; writes its rejects."""
    messages, left = SentMessages(files, batch.batch_id), list[DataFrame]()
    if files.finished(left_out := left_out_name(staging.attempt)):
        left.append(read_dataset(spark, files.at(left_out), rejects.SCHEMA))
    sent: int | None = None if staging.rows else 0
    requests, refused, so_far = sent, 0, SentSoFar.ALL
    if (results := messages.results()) is not None:
        sent, requests, refused = _totals(spark, files.at(results))
        if sent != staging.rows - refused:
            raise InvalidRequest(
                f"{staging.rows} rows are staged, and {files.at(results)} tells of {sent} that were sent and"
                f" {refused} that were not: the file system lost or doubled some. {messages.again}"
            )
        if refused:
            found = read_dataset(spark, files.at(results), RESULT)
            left.append(_refused(found, staging.read(spark)))
            so_far = SentSoFar.SOME
    elif staging.rows:
        so_far = SentSoFar.SOME if messages.began() else SentSoFar.NONE
    rejected = write_rejects(spark, reduce(DataFrame.unionByName, left) if left else None, rejects_folder)
    out = sum(rejected.values())
    if out != staging.left + refused:
        raise InvalidRequest(
            f"{staging.left} rows were left out, {refused} were not sent, and there are {out} rejects:"
            f" the file system lost or doubled some. See who else writes to {files.path}, and put it back"
            " from a copy"
        )
    detail = unsent(batch, files.path, so_far)
    return FannedOut(batch.batch_id, staging.rows, sent, requests, rejected, batch.state, detail)


def unsent(batch: Batch, folder: str, sent: SentSoFar) -> str | None:
    """Say how to send what is left of a batch that ended before its rows were done.

    None if the batch goes on, if all its items are done, or if its deadline completed it after all messages
    were sent.
    """
    by_deadline = batch.state is State.COMPLETE
    if not batch.state.terminal or (by_deadline and (not batch.partial or sent is SentSoFar.ALL)):
        return None
    told = f"batch {batch.batch_id} {'was completed by its deadline' if by_deadline else f'is {batch.state}'}"
    if not batch.items:
        return f"{told}{SentSoFar.NONE}; to send them, name another --key"
    return (
        f"{told}{sent}; to send what has failed or is pending,"
        f" name --retry-of {batch.batch_id} --failed-from {folder} --and-pending and a new --staging"
    )


def _totals(spark: SparkSession, results: str) -> tuple[int, int, int]:
    """Count the messages sent and the requests they took; and the messages that were not sent."""
    names = ("sent", "requests", "refused")
    if (few := read_few(spark, results, names)) is not None:
        sent, requests, refused = (pc.sum(few[name]).as_py() or 0 for name in names)
    else:
        tasks = read_dataset(spark, results, RESULT).where(F.col(ORDINAL).isNull()).select(*names).collect()
        sent, requests, refused = (sum(task[name] for task in tasks) for name in names)
    return sent, requests, refused


def _refused(results: DataFrame, numbered: DataFrame) -> DataFrame:
    """The messages that were not sent, as rows of ``rejects.SCHEMA``."""
    found = results.where(F.col(ORDINAL).isNotNull()).select(ORDINAL, "reason", "detail")
    return numbered.join(found, ORDINAL).select(F.col(BODY).alias("value"), "reason", "detail")


WAITS: Final = (1, 4)
"""Seconds until rejects are written once more, at most."""


def write_rejects(
    spark: SparkSession, left: DataFrame | None, folder: str, *, wait: Callable[[float], object] = time.sleep
) -> dict[str, int]:
    """Write rejects, the same whenever they are read, where another run may write them at the same time."""
    wanted = {} if left is None else rejects.count_by_reason(left)
    for longest in (*WAITS, None):
        try:
            if left is None:
                return rejects.write_few_rejects(spark, [], folder, write_empty=True)
            rejects.write_rejects(left, folder, wanted)
            trouble = "they are not all there"
        except (Py4JJavaError, PySparkException) as error:
            trouble = refused_storage(error) or root_cause(error)
        if _is_there(spark, folder, wanted):
            return wanted
        if longest is not None:
            wait(random.uniform(0, longest))  # noqa: S311  so that two runs do not meet again
    raise ServiceUnavailable(
        f"rejects cannot be written to {folder}: {trouble}. If another run of this job writes there, wait for"
        " its end; then start this one again"
    )


def _is_there(spark: SparkSession, folder: str, wanted: Mapping[str, int]) -> bool:
    try:
        return rejects.count_by_reason(read_dataset(spark, folder, rejects.SCHEMA)) == wanted
    except (Py4JJavaError, PySparkException):
        return False  # somebody is writing
