"""Which rows were sent, how failed ones are taken, and what their batch is like."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from fanin.app.ports.parts import Redriven
from fanin.domain.batch import Batch, OnFailure, OpenBatch
from fanin.domain.marks import Failure
from fanin.errors import BatchGone, BatchNotFound, InvalidRequest
from fanin.spark.fanout import failed_rows
from fanin.spark.fanout import failed_rows as module
from fanin.spark.fanout.failed_rows import (
    EarlierBatch,
    FailedRows,
    sent_rows,
    take,
    take_failed_rows,
    take_task,
)
from fanin.spark.fanout.opening import STAGING
from fanin.spark.fanout.staging import Staging
from tests.unit.spark.conftest import MemoryStack


def ended(stack: MemoryStack, **request: object) -> Batch:
    """A batch of ten items of which two have failed, and which was cancelled."""
    ledger = stack.ledger()
    batch_id = ledger.open(OpenBatch(**request)).batch_id
    group = ledger.add(batch_id, 10)
    ledger.mark([Failure(group[2], "no such customer"), Failure(group[7], "no such customer")]).whole()
    ledger.cancel(batch_id)
    return ledger.refresh([batch_id])[batch_id]


@pytest.mark.parametrize("on_failure", list(OnFailure))
def test_each_row_is_taken_by_one_redrive_and_again_by_the_same(stack, on_failure):
    batch, ports = ended(stack, on_failure=on_failure), stack.ledger().ports

    assert take(ports, batch, "dataset/a", [2, 5]) == {2, 5}
    assert take(ports, batch, "dataset/b", [2, 7]) == {7}
    assert take(ports, batch, "dataset/a", [2, 5, 7]) == {2, 5}
    assert take(ports, batch, "dataset/a", []) == set()


def test_what_a_live_batch_had_sent_again_is_taken_once_more_after_its_end(stack):
    # Given a held failure that was sent again under its own id, and not done when its batch ended
    ledger = stack.ledger()
    batch_id = ledger.open(OpenBatch(on_failure=OnFailure.HOLD)).batch_id
    group = ledger.add(batch_id, 10)
    ledger.mark([Failure(group[2], "no such customer")]).whole()
    ports, batch = ledger.ports, ledger.refresh([batch_id])[batch_id]
    mark = Redriven("live", ports.parts.notes(batch_id, [2])[2].failed_at, group[2])
    ports.parts.mark_redriven(batch_id, {2: mark}, {}, expires_at=batch.expires_at)
    ledger.cancel(batch_id)
    batch = ledger.refresh([batch_id])[batch_id]
    # Then one redrive takes it, and no other
    assert take(ports, batch, "dataset/a", [2]) == {2}
    assert take(ports, batch, "dataset/b", [2]) == set()
    assert take(ports, batch, "dataset/a", [2]) == {2}


def test_a_task_gives_the_rows_that_it_took(stack):
    batch = ended(stack)
    take(stack.ledger().ports, batch, "dataset/other", [7])
    page = pa.RecordBatch.from_pydict({"retry_of_ordinal": [2, 7], "body": ["two", "seven"]})

    task = take_task(stack, batch, "dataset/mine")

    for _attempt in range(2):
        (given,) = task([page])
        assert given.to_pylist() == [{"retry_of_ordinal": 2, "body": "two"}]


class Stagings:
    """Stands for Spark and the folders of a redrive: what is staged there, and by whom.

    Args:
        first: the batch that was fanned out, from ``/first``.

    Attributes:
        there: folder → its staging.
        meanwhile: folder → what happens while its rows are staged.
    """

    def __init__(self, first: Batch) -> None:
        sent = Staging("/first", first.metadata["staging"], StructType(), {0: 10})
        self.there = {"/first": sent}
        self.meanwhile: dict[str, Any] = {}

    def find_staging(self, _spark: object, folder: str, _source: object = None) -> Staging | None:
        return self.there.get(folder)

    def stage(self, _spark: object, folder: str, _source: object, make: Any, **more: Any) -> Staging:
        if folder not in self.there:
            make()
            self.meanwhile.get(folder, lambda: None)()
            made = Staging(folder, "rows-new", StructType(), {0: 2}, notes=more.get("notes") or {})
            more["then"](made)
            self.there[folder] = made
        return self.there[folder]


@pytest.fixture
def first(stack: MemoryStack) -> Batch:
    return ended(stack, metadata={"staging": "rows-first"})


@pytest.fixture
def stagings(first: Batch, monkeypatch: pytest.MonkeyPatch) -> Stagings:
    made = Stagings(first)
    frame = SimpleNamespace(select=lambda *_: SimpleNamespace(mapInArrow=lambda *_: None))
    monkeypatch.setattr(failed_rows, "find_staging", made.find_staging)
    monkeypatch.setattr(failed_rows, "stage", made.stage)
    monkeypatch.setattr(failed_rows, "_choose", lambda *_: frame)
    monkeypatch.setattr(Staging, "read", lambda *_: frame)
    return made


def retried(stack: MemoryStack, first: Batch) -> tuple[Staging, int]:
    rows = FailedRows(first.batch_id, "/first")
    return take_failed_rows(None, stack, rows, "/again", {})


def test_rows_that_are_staged_are_sent_though_their_batch_is_gone(stack, first, stagings):
    staged = retried(stack, first)
    stack.ledger().remove(first.batch_id)
    assert retried(stack, first) == staged
    staging, already = staged
    assert (staging.rows, already, EarlierBatch(**staging.notes)) == (2, 0, EarlierBatch.of(first))


@pytest.mark.parametrize("folder", ["/again/chosen", "/again"])
def test_a_batch_that_is_removed_while_its_rows_are_chosen_or_taken_is_told(stack, first, stagings, folder):
    # Given a batch that is removed while tasks read which rows have failed, or take them
    stagings.meanwhile[folder] = lambda: stack.ledger().remove(first.batch_id)
    # When a driver stages them, and another one after it, then neither counts what it found as all of them
    for _driver in range(2):
        with pytest.raises(BatchGone) as refused:
            retried(stack, first)
        assert folder not in stagings.there
        # And if some may be taken, it says where all of them are
        told = "--input /again/chosen/rows-new --format parquet --body body" in str(refused.value)
        assert told is (folder == "/again")


ROWS = Staging("/staging", "rows-1", StructType(), {0: 3})


def read(
    stack: MemoryStack, monkeypatch: pytest.MonkeyPatch, staging: Staging | None, batch_id: int | None
) -> None:
    """Read the rows of a folder that has this staging, and the note of this batch."""
    monkeypatch.setattr(module, "find_staging", lambda *_: staging)
    monkeypatch.setattr(module, "noted_batch", lambda _: batch_id)
    monkeypatch.setattr(module, "Folder", lambda *_: None)
    monkeypatch.setattr(module, "session", lambda _: None)
    sent_rows("/staging", stack)


def test_a_folder_of_no_fan_out_is_refused(stack, monkeypatch):
    with pytest.raises(InvalidRequest, match=r"^/staging holds no finished staging: name the folder"):
        read(stack, monkeypatch, None, 7)


def test_a_fan_out_that_opened_no_batch_is_to_run_again(stack, monkeypatch):
    with pytest.raises(InvalidRequest, match=r"has staged rows, and no batch: .*run it again$"):
        read(stack, monkeypatch, ROWS, None)
    with pytest.raises(BatchNotFound):
        read(stack, monkeypatch, ROWS, 243988644675881)


@pytest.mark.parametrize("attempt", ["rows-1", "rows-2"], ids=["without items", "of another staging"])
def test_rows_that_are_no_items_are_refused_and_do_not_become_any(stack, monkeypatch, attempt):
    # Given a batch that has no items yet, or those of other rows
    batch = stack.ledger().open(OpenBatch(metadata={STAGING: attempt}))
    if attempt != ROWS.attempt:
        stack.ledger().add(batch.batch_id, 3)
    before = stack.tracker().status(batch.batch_id).batch.items

    with pytest.raises(InvalidRequest, match=rf"are not items of batch {batch.batch_id}; run the fan-out"):
        read(stack, monkeypatch, ROWS, batch.batch_id)

    assert stack.tracker().status(batch.batch_id).batch.items == before
