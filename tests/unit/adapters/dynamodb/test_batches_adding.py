"""Additions to a batch: sent once, or under a key, since a repeat would add again."""

import pytest

from fanin.adapters.dynamodb.batches import DynamoBatches
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.rows import encode
from fanin.app.ports.batches import Activity
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import Batch
from fanin.errors import OutcomeUnknown
from tests.unit.adapters.dynamodb.conftest import BATCH

ACTIVITY = Activity(70, 90)


def add(batches: DynamoBatches, batch: Batch = BATCH) -> int | None:
    return batches.allocate_once(batch, 4, IdempotencyKey.of("a/b"), activity=ACTIVITY)


def test_a_throttled_addition_is_tried_again_since_it_added_nothing(batches, aws, waits):
    aws.add_client_error("update_item", "ThrottlingException")
    aws.add_response("update_item", {"Attributes": encode(BATCH)})

    assert batches.allocate(11, 4, activity=None, room=None) == BATCH
    assert waits == [0.02]


def test_an_addition_without_a_key_is_sent_once_and_says_so(silent):
    batches = DynamoBatches("batches", "parts", Connection())

    with pytest.raises(OutcomeUnknown, match="idempotency key"):
        batches.allocate(7, 10, activity=None, room=None)

    assert silent.calls == ["UpdateItem"]


def test_a_count_is_sent_once_and_says_what_may_have_happened(silent):
    batches = DynamoBatches("batches", "parts", Connection())

    with pytest.raises(OutcomeUnknown, match="items may have been counted; compare the batch's status"):
        batches.count(7, 10, activity=None)

    assert silent.calls == ["UpdateItem"]
