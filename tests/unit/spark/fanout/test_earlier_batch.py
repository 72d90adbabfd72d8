"""Which batches have rows to send again, and what the batch that retries one is like."""

import json
from dataclasses import replace

import pytest

from fanin.domain.batch import Batch, Mode, OnFailure, OpenBatch, State
from fanin.domain.failures import Keep
from fanin.domain.marks import Failure
from fanin.errors import BatchGone, IdempotencyKeyReused, InvalidRequest
from fanin.spark.fanout.failed_rows import EarlierBatch, ended_batch, retrying
from fanin.spark.fanout.opening import open_retry
from tests.unit.spark.conftest import MemoryStack


def ended(stack: MemoryStack, request: OpenBatch) -> Batch:
    """A batch with an item that has failed, and which was cancelled."""
    ledger = stack.ledger()
    batch_id = ledger.open(request).batch_id
    ledger.mark([Failure(ledger.add(batch_id, 10)[2], "no such customer")]).whole()
    return ledger.cancel(batch_id)


def test_what_the_request_leaves_open_is_as_in_the_earlier_batch(stack):
    batch = ended(
        stack, OpenBatch("orders", keep=Keep.REASON, totals=("rows",), metadata={"run": "7", "by": "me"})
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


def test_a_batch_that_goes_on_or_has_no_items_is_refused(stack):
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
    assert ended_batch(ended(stack, OpenBatch())).state is State.CANCELLED


def never(_batch_id: int) -> bool:
    return False


def test_a_batch_whose_earlier_batch_was_removed_is_opened_without_it(stack):
    # Given a redrive whose rows are taken, and whose earlier batch is removed then
    ledger, first = stack.ledger(), ended(stack, OpenBatch("orders"))
    request = retrying(OpenBatch(), EarlierBatch.of(first))
    ledger.remove(first.batch_id)
    # When drivers come one after the other, then they open one batch, which retries none
    one, two = (open_retry(ledger, request, "again", never) for _ in range(2))
    assert (one.batch_id, one.retry_of, one.user_key) == (two.batch_id, None, "orders")
    # And another fan-out cannot have the key; and once the batch is removed too, nobody opens another
    with pytest.raises(IdempotencyKeyReused):
        open_retry(ledger, replace(request, user_key="other"), "again", never)
    ledger.cancel(one.batch_id)
    ledger.remove(one.batch_id)
    with pytest.raises(BatchGone):
        open_retry(ledger, request, "again", never)


def test_a_batch_that_is_complete_is_not_opened_again_though_its_results_are_lost(stack):
    ledger, first = stack.ledger(), ended(stack, OpenBatch())
    request = retrying(OpenBatch(), EarlierBatch.of(first))
    batch = open_retry(ledger, request, "again", never)
    ledger.mark([ledger.add(batch.batch_id, 1)[0]]).whole()
    assert ledger.close(batch.batch_id).state is State.COMPLETE

    assert open_retry(ledger, request, "again", never).batch_id == batch.batch_id
