"""How failed rows are taken, and what their batch is like; that they are sent is tested on Spark."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from fanin.adapters.memory.world import FixedClock
from fanin.domain.acks import Failure
from fanin.domain.batch import Batch, OnFailure, OpenBatch
from fanin.errors import BatchGone, InvalidRequest
from fanin.spark.fanout import failed_rows
from fanin.spark.fanout.driver import FanOut, _opened
from fanin.spark.fanout.earlier_batch import EarlierBatch, retrying
from fanin.spark.fanout.failed_rows import FailedRows, take, take_failed_rows, take_task
from fanin.spark.fanout.staging import Staging
from tests.unit.spark.conftest import MemoryStack

STAGING = Staging("/staging", "rows-1", StructType(), {0: 3})


def ended(stack: MemoryStack, **request: object) -> Batch:
    """A batch of ten items of which two have failed, and which was cancelled."""
    ledger = stack.ledger()
    batch_id = ledger.open(OpenBatch(**request)).batch_id  # type: ignore[arg-type]
    group = ledger.add(batch_id, 10)
    ledger.fail([Failure(group[2], "no such customer"), Failure(group[7], "no such customer")])
    ledger.cancel(batch_id)
    return ledger.refresh([batch_id])[batch_id]


@pytest.mark.parametrize("on_failure", list(OnFailure))
def test_each_row_is_taken_by_one_redrive_and_again_by_the_same(
    stack: MemoryStack, on_failure: OnFailure
) -> None:
    batch, parts = ended(stack, on_failure=on_failure), stack.ledger().ports.parts

    assert take(parts, batch, "dataset/a", [2, 5]) == {2, 5}
    assert take(parts, batch, "dataset/b", [2, 7]) == {7}
    assert take(parts, batch, "dataset/a", [2, 5, 7]) == {2, 5}
    assert take(parts, batch, "dataset/a", []) == set()


def test_what_a_live_batch_had_sent_again_is_taken_once_more_after_its_end(stack: MemoryStack) -> None:
    # Given a held failure that was sent again under its own id, and not done when its batch ended
    ledger = stack.ledger()
    batch_id = ledger.open(OpenBatch(on_failure=OnFailure.HOLD)).batch_id
    group = ledger.add(batch_id, 10)
    ledger.fail([Failure(group[2], "no such customer")])
    parts, batch = ledger.ports.parts, ledger.refresh([batch_id])[batch_id]
    failed_at = parts.notes(batch_id, [2])[2].failed_at
    parts.mark_redriven(batch_id, "live", {2: failed_at}, again=True, expires_at=batch.expires_at)
    ledger.cancel(batch_id)
    batch = ledger.refresh([batch_id])[batch_id]

    # Then one redrive takes it, and no other
    assert take(parts, batch, "dataset/a", [2]) == {2}
    assert take(parts, batch, "dataset/b", [2]) == set()
    assert take(parts, batch, "dataset/a", [2]) == {2}


def test_a_task_gives_the_rows_that_it_took(stack: MemoryStack) -> None:
    batch = ended(stack)
    take(stack.ledger().ports.parts, batch, "dataset/other", [7])
    page = pa.RecordBatch.from_pydict({"retry_of_ordinal": [2, 7], "body": ["two", "seven"]})

    task = take_task(stack, batch, "dataset/mine")  # type: ignore[arg-type]

    for _attempt in range(2):
        (given,) = task([page])
        assert given.to_pylist() == [{"retry_of_ordinal": 2, "body": "two"}]


def test_rows_that_are_taken_become_items_even_if_their_batch_was_ended_before(stack: MemoryStack) -> None:
    # Given batches that somebody ended, one after the other, before a driver came to add the rows
    first = ended(stack)
    plan = FanOut(
        FailedRows(first.batch_id, "/first"),
        "https://queue",
        "/staging",
        request=retrying(OpenBatch(), EarlierBatch.of(first)),
    )
    empty = Staging("/staging", "rows-1", StructType(), {})
    ended_before = set()
    for _time in range(6):
        taken_away, _ = _opened(stack, plan, empty)  # type: ignore[arg-type]
        stack.ledger().cancel(taken_away.batch_id)
        ended_before.add(taken_away.batch_id)
    assert len(ended_before) == 6

    # When the driver comes, and another one after it, then the rows are items of another batch
    one, two = (_opened(stack, plan, STAGING) for _ in range(2))  # type: ignore[arg-type]
    assert one[0].batch_id == two[0].batch_id
    assert one[0].batch_id not in ended_before
    assert one[1] == two[1] is not None

    # When that one is ended with its items, then it keeps them
    stack.ledger().cancel(one[0].batch_id)
    assert _opened(stack, plan, STAGING)[0].batch_id == one[0].batch_id  # type: ignore[arg-type]

    # But if nothing was sent of it, then the rows are items of another batch
    sent = lambda batch_id: batch_id != one[0].batch_id  # noqa: E731
    another = _opened(stack, plan, STAGING, began=sent)  # type: ignore[arg-type]
    assert another[0].batch_id not in {one[0].batch_id, *ended_before}
    assert another[1] is not None


def test_rows_whose_deadline_is_over_go_out_under_another_key(stack: MemoryStack) -> None:
    # Given rows of a redrive, of which none was sent until the deadline
    first, clock = ended(stack), stack.memory.clock
    assert isinstance(clock, FixedClock)
    rows = FailedRows(first.batch_id, "/first")
    request = retrying(OpenBatch(deadline=clock.now() + 60_000), EarlierBatch.of(first))
    plan = FanOut(rows, "https://queue", "/staging", request=request)
    batch, _ = _opened(stack, plan, STAGING)  # type: ignore[arg-type]
    clock.advance(61_000)
    stack.ledger().cancel(batch.batch_id)

    # Then another batch needs another deadline; and with one it needs another key
    none = lambda _batch_id: False  # noqa: E731
    with pytest.raises(InvalidRequest, match="the deadline must lie in the future"):
        _opened(stack, plan, STAGING, began=none)  # type: ignore[arg-type]
    later = replace(plan, request=replace(request, deadline=clock.now() + 60_000), key="later")
    assert _opened(stack, later, STAGING, began=none)[1] is not None  # type: ignore[arg-type]


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
            more["then"]("rows-new", 2)
            self.there[folder] = Staging(folder, "rows-new", StructType(), {0: 2}, more.get("notes") or {})
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


def retried(stack: MemoryStack, first: Batch) -> failed_rows.Retried:
    rows = FailedRows(first.batch_id, "/first")
    return take_failed_rows(None, stack, rows, "/again", {})  # type: ignore[arg-type]


def test_rows_that_are_staged_are_sent_though_their_batch_is_gone(
    stack: MemoryStack, first: Batch, stagings: Stagings
) -> None:
    staged = retried(stack, first)
    stack.ledger().remove(first.batch_id)
    assert retried(stack, first) == staged
    assert (staged.staging.rows, staged.already, staged.earlier) == (2, 0, EarlierBatch.of(first))


def test_a_staging_without_notes_is_of_an_earlier_release_and_its_batch_is_read(
    stack: MemoryStack, first: Batch, stagings: Stagings
) -> None:
    # Given rows that a release staged which did not note what the new batch takes over
    stagings.there |= {
        folder: Staging(folder, "rows-old", StructType(), {0: 2}) for folder in ("/again", "/again/chosen")
    }

    assert retried(stack, first).earlier == EarlierBatch.of(first)


@pytest.mark.parametrize("folder", ["/again/chosen", "/again"])
def test_a_batch_that_is_removed_while_its_rows_are_chosen_or_taken_is_told(
    stack: MemoryStack, first: Batch, stagings: Stagings, folder: str
) -> None:
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
