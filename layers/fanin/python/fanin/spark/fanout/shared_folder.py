"""What the runs of one fan-out write into its folder, so that two of them at once do each other no harm.

Spark cannot write a dataset twice at the same time: the run that commits first deletes what the other one has
written. So each run writes its results under a name of its own, and a note says whose count. Rejects have one
place, which people name. Each run looks afterwards whether they are whole there.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from fanin.errors import InvalidRequest, ServiceUnavailable
from fanin.spark.runtime import rejects
from fanin.spark.runtime.failures import root_cause
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.refused_storage import refused_storage

WAITS: Final = (1, 4)
"""Seconds until rejects are written once more, at most."""


class Sent(StrEnum):
    """How many messages of a batch were sent, as far as the folder knows."""

    NONE = "none"
    SOME = "some"
    """A run may have sent some, and none has noted that it sent all."""
    ALL = "all"


class SentMessages:
    """What is known of the messages of one batch.

    Args:
        files: the folder of the fan-out.
        batch_id: its batch.
    """

    def __init__(self, files: Folder, batch_id: int) -> None:
        self._files = files
        self._name = f"sent-{batch_id}"
        self._began = f"sending-{batch_id}"

    def begin(self) -> None:
        """Note that messages may be sent from now on.

        Call it before the first is, and read the state of the batch afterwards: nothing may be sent if that
        has ended. Then whoever finds the batch ended, and afterwards no such note, knows that none was sent.
        """
        self._files.write(self._began, "messages may be sent\n")

    def began(self) -> bool:
        """Whether messages may have been sent."""
        # A release before this one wrote no note, and its results under the plain name.
        return self._files.there(self._began) or self._files.there(self._name)

    def sent(self) -> Sent:
        """How many messages were sent.

        Raises:
            InvalidRequest: as for ``results``.
        """
        if self.results() is not None:
            return Sent.ALL
        return Sent.SOME if self.began() else Sent.NONE

    def new(self) -> str:
        """A name for the results of a run."""
        return f"{self._name}-{uuid.uuid4().hex}"

    def finish(self, results: str) -> None:
        """Note that results are whole; those of the first run that says so count."""
        self._files.write(f"{self._name}.json", json.dumps({"results": results}), replace=False)

    def results(self) -> str | None:
        """The name of the results that count; None if no run has sent all messages.

        Raises:
            InvalidRequest: the note that names them is damaged; says what to do.
        """
        note = f"{self._name}.json"
        if (text := self._files.read(note)) is None:
            return self._name if self._files.finished(self._name) else None
        try:
            return str(json.loads(text)["results"])
        except (ValueError, LookupError, TypeError):
            raise InvalidRequest(
                f"{self._files.at(note)} is damaged, so nobody can tell which results count: put it back from"
                " a copy, or move this one file away and start again. Unless the batch is closed, that sends"
                " all rows again, as the same items"
            ) from None


def write_rejects(
    spark: SparkSession,
    left: DataFrame | None,
    folder: str,
    *,
    wait: Callable[[float], object] = time.sleep,
) -> dict[str, int]:
    """Write rejects where another run may write the same at the same time.

    Args:
        spark: the session.
        left: rows of ``rejects.SCHEMA``, the same whenever they are read; None if there are none.
        folder: where to write them.
        wait: waits some seconds.

    Returns:
        Reason → number of rows.

    Raises:
        ServiceUnavailable: they cannot be written as they should be.
    """
    wanted = {} if left is None else rejects.count_by_reason(left)
    for longest in (*WAITS, None):
        try:
            if left is None:
                return rejects.write_none(spark, folder)
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
        return rejects.count_by_reason(spark.read.schema(rejects.SCHEMA).parquet(folder)) == wanted
    except (Py4JJavaError, PySparkException):
        return False  # somebody is writing
