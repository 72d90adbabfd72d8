"""How failed rows are taken, and what their batch is like; that they are sent is tested on Spark."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from fanin.domain.acks import Failure
from fanin.domain.batch import Batch, Mode, OnFailure, OpenBatch, State
from fanin.domain.failures import Keep
from fanin.errors import InvalidRequest
from fanin.spark.fanout.driver import FanOut, _opened
from fanin.spark.fanout.failed_rows import EarlierBatch, FailedRows, ended_batch, retrying, take, take_task
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

    task = take_task(stack, batch.batch_id, "dataset/mine")  # type: ignore[arg-type]

    for _attempt in range(2):
        (given,) = task([page])
        assert given.to_pylist() == [{"retry_of_ordinal": 2, "body": "two"}]


def test_what_the_request_leaves_open_is_as_in_the_earlier_batch(stack: MemoryStack) -> None:
    batch = ended(
        stack, user_key="orders", keep=Keep.REASON, totals=("rows",), metadata={"run": "7", "by": "me"}
    )

    request = retrying(OpenBatch(metadata={"run": "8"}), EarlierBatch.of(batch))
    assert request == OpenBatch(
        user_key="orders",
        keep=Keep.REASON,
        totals=("rows",),
        metadata={"run": "8", "by": "me"},
        retry_of=batch.batch_id,
    )
    assert retrying(OpenBatch(user_key="mine", totals=("cents",)), EarlierBatch.of(batch)).user_key == "mine"
    with pytest.raises(InvalidRequest, match="leave retry_of out"):
        retrying(OpenBatch(retry_of=batch.batch_id + 1), EarlierBatch.of(batch))

    # And it survives the note of the staging
    assert EarlierBatch(**json.loads(json.dumps(EarlierBatch.of(batch)._asdict()))) == EarlierBatch.of(batch)


def test_a_batch_that_goes_on_or_has_no_items_is_refused(stack: MemoryStack) -> None:
    ledger = stack.ledger()
    held = ledger.open(OpenBatch(on_failure=OnFailure.HOLD))
    with pytest.raises(InvalidRequest, match=f"fanin redrive {held.batch_id}` sends what it holds"):
        ended_batch(held)
    closed = ledger.open(OpenBatch())
    ledger.add(closed.batch_id, 1)
    with pytest.raises(
        InvalidRequest, match="is closed; its failed rows can be sent again when it has ended"
    ):
        ended_batch(ledger.close(closed.batch_id))
    with pytest.raises(InvalidRequest, match="plain and exact"):
        ended_batch(ledger.open(OpenBatch(mode=Mode.ESTIMATED)))
    assert ended_batch(ended(stack)).state is State.CANCELLED


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
