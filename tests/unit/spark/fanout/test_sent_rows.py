"""Which folders have no rows that were sent; those that have are read on Spark."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StructType

from fanin.domain.batch import OpenBatch
from fanin.errors import BatchNotFound, InvalidRequest
from fanin.spark.fanout import failed_rows as module
from fanin.spark.fanout.failed_rows import sent_rows
from fanin.spark.fanout.opening import STAGING
from fanin.spark.fanout.staging import Staging
from tests.unit.spark.conftest import MemoryStack

ROWS = Staging("/staging", "rows-1", StructType(), {0: 3})


def read(
    stack: MemoryStack, monkeypatch: pytest.MonkeyPatch, staging: Staging | None, batch_id: int | None
) -> None:
    """Read the rows of a folder that has this staging, and the note of this batch."""
    monkeypatch.setattr(module, "find_staging", lambda *_: staging)
    monkeypatch.setattr(module, "noted_batch", lambda _: batch_id)
    monkeypatch.setattr(module, "Folder", lambda *_: None)
    sent_rows(None, stack, "/staging")  # type: ignore[arg-type]


def test_a_folder_of_no_fan_out_is_refused(stack: MemoryStack, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidRequest, match=r"^/staging holds no finished staging: name the folder"):
        read(stack, monkeypatch, None, 7)


def test_a_fan_out_that_opened_no_batch_is_to_run_again(
    stack: MemoryStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidRequest, match=r"has staged rows, and no batch: .*run it again$"):
        read(stack, monkeypatch, ROWS, None)
    with pytest.raises(BatchNotFound):
        read(stack, monkeypatch, ROWS, 243988644675881)


@pytest.mark.parametrize("attempt", ["rows-1", "rows-2"], ids=["without items", "of another staging"])
def test_rows_that_are_no_items_are_refused_and_do_not_become_any(
    stack: MemoryStack, monkeypatch: pytest.MonkeyPatch, attempt: str
) -> None:
    # Given a batch that has no items yet, or those of other rows
    batch = stack.ledger().open(OpenBatch(metadata={STAGING: attempt}))
    if attempt != ROWS.attempt:
        stack.ledger().add(batch.batch_id, 3)
    before = stack.tracker().status(batch.batch_id).batch.items

    with pytest.raises(InvalidRequest, match=rf"are not items of batch {batch.batch_id}; run the fan-out"):
        read(stack, monkeypatch, ROWS, batch.batch_id)

    assert stack.tracker().status(batch.batch_id).batch.items == before
