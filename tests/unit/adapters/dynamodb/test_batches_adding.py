"""Additions to a batch: sent once, or under a key, since a repeat would add again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.stub import Stubber

from fanin.adapters.dynamodb import Connection, DynamoBatches
from fanin.adapters.dynamodb.rows import encode
from fanin.app.ports.batches import Activity
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import Batch
from fanin.errors import OutcomeUnknown
from tests.unit.adapters.dynamodb.conftest import BATCH, Silent, plainly

Asked = list[dict[str, Any]]
KEY = {"batch_id": {"N": "11"}}
ACTIVITY = Activity(70, 90)
TOUCHED = "touched_at = 70, due_at = 90"


def add(batches: DynamoBatches, batch: Batch = BATCH) -> int | None:
    return batches.allocate_once(batch, 4, IdempotencyKey.of("a/b"), activity=ACTIVITY)


def used(aws: Stubber, *, key: bool, count: int = 4, first: int = 2) -> None:
    row = {"first": {"N": str(first)}, "count": {"N": str(count)}}
    failed, held = {"Code": "ConditionalCheckFailed", "Item": row}, {"Code": "None"}
    aws.add_client_error(
        "transact_write_items",
        "TransactionCanceledException",
        modeled_fields={"CancellationReasons": [failed, failed] if key else [held, failed]},
    )


@pytest.mark.parametrize(
    ("limit", "update", "fits"),
    [
        (None, "ADD items 4", "attribute_not_exists(limit)"),
        (9, "ADD items 4, pending_bound 4", "attribute_exists(limit) AND pending_bound <= 5"),
    ],
)
def test_an_addition_and_the_row_of_its_key_are_one_transaction(
    batches: DynamoBatches, aws: Stubber, asked: Asked, *, limit: int | None, update: str, fits: str
) -> None:
    aws.add_response("transact_write_items", {})

    assert add(batches, replace(BATCH, limit=limit)) == 6

    put, addition = asked[0]["TransactItems"]
    assert put == {
        "Put": {
            "TableName": "parts",
            "Item": {
                **KEY,
                "part": {"S": f"add/{IdempotencyKey.of('a/b').name}"},
                "first": {"N": "6"},
                "count": {"N": "4"},
                "expires_at": {"N": "1800000000"},
            },
            "ConditionExpression": "attribute_not_exists(part)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }
    assert plainly(addition["Update"]) == (
        f"SET {TOUCHED} {update}",
        f"(state = open) AND (items <= 1099511627772) AND ({fits}) AND (items = 6)",
    )


def test_a_throttled_addition_is_tried_again_since_it_added_nothing(
    batches: DynamoBatches, aws: Stubber, waits: list[float]
) -> None:
    aws.add_client_error("update_item", "ThrottlingException")
    aws.add_response("update_item", {"Attributes": encode(BATCH)})

    assert batches.allocate(11, 4, activity=None, room=None) == BATCH
    assert waits == [0.02]


def test_an_addition_without_a_key_is_sent_once_and_says_so(silent: Silent) -> None:
    batches = DynamoBatches("batches", "parts", Connection())

    with pytest.raises(OutcomeUnknown, match="idempotency key"):
        batches.allocate(7, 10, activity=None, room=None)

    assert silent.calls == ["UpdateItem"]


def test_a_count_is_sent_once_and_says_what_may_have_happened(silent: Silent) -> None:
    batches = DynamoBatches("batches", "parts", Connection())

    with pytest.raises(OutcomeUnknown, match="items may have been counted; compare the batch's status"):
        batches.count(7, 10, activity=None)

    assert silent.calls == ["UpdateItem"]
