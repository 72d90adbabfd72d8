"""Calls the ledger's ``verify`` for batches; it reads the current tables, and can repair them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from fanin.errors import FaninError
from fanin.spark.runtime.arrow import ddl
from fanin.spark.runtime.service import Service

SCHEMA: Final = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("state", pa.string()),
        ("pending", pa.int64()),
        ("found", pa.int64()),
        ("first", pa.string()),
        ("repaired", pa.bool_()),
        ("error", pa.string()),
    ]
)


def verify(batches: DataFrame, service: Service, *, repair: bool, tasks: int) -> DataFrame:
    """Verify batches, each in one task; a task may run twice.

    Returns:
        batch_id.
        state: of the batch afterwards; null if it is gone.
        pending: items that were not done when they were read.
        found: number of disagreements; ``first`` is the first of them, in words.
        repaired: whether all of them were repaired.
        error: the code of the error that ended the verification, for example batch-gone or throttled.
    """
    task = verify_task(service, repair=repair)
    return batches.select("batch_id").repartition(tasks, "batch_id").mapInArrow(task, ddl(SCHEMA))


def verify_task(
    service: Service, *, repair: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function of a task that verifies.

    Returns:
        A function that takes ``batch_id`` and gives rows of ``SCHEMA``.
    """

    def run(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for page in pages:
            for batch_id in page.column(0).to_pylist():
                yield pa.RecordBatch.from_pylist([_verified(service, batch_id, repair=repair)], schema=SCHEMA)

    return run


def _verified(service: Service, batch_id: int, *, repair: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"batch_id": batch_id, "pending": 0, "found": 0, "repaired": False}
    cursor, unrepaired = None, 0
    try:
        while True:
            verdict = service.ledger().verify(batch_id, cursor=cursor, repair=repair)
            row["state"] = verdict.batch.state.value
            row["pending"] += verdict.pending
            row["found"] += len(verdict.disagreements)
            row["first"] = row.get("first") or next(iter(verdict.disagreements), None)
            unrepaired += bool(verdict.disagreements) and not verdict.repaired
            cursor = verdict.cursor
            if cursor is None:
                break
    except FaninError as error:
        row["error"] = error.code
    else:
        row["repaired"] = row["found"] > 0 and not unrepaired
    return row
