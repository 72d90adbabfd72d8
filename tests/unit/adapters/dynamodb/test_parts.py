"""Notes of failed items on DynamoDB, beyond the contract of all stores: keys."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from fanin.adapters.dynamodb import Connection, DynamoParts
from fanin.app.ports.batches import FailureRow
from fanin.domain.ids import MAX_ITEMS


@pytest.fixture
def client() -> Any:
    return boto3.client("dynamodb")


def row(ordinal: str, reason: str) -> dict[str, Any]:
    return {
        "PutRequest": {
            "Item": {
                "batch_id": {"N": "8"},
                "part": {"S": f"failure/{ordinal}"},
                "item": {"S": "i"},
                "reason": {"S": reason},
                "expires_at": {"N": "9"},
            }
        }
    }


def test_keys_sort_as_ordinals_do_and_a_key_stands_in_a_request_once(client: Any, aws: Stubber) -> None:
    # Given notes of the first and the last item a batch can have, one of them twice
    notes = [FailureRow(MAX_ITEMS - 1, "i", "a"), FailureRow(2, "i", "b"), FailureRow(2, "i", "c")]
    expected = [row("1099511627775", "a"), row("0000000000002", "c")]
    aws.add_response("batch_write_item", {"UnprocessedItems": {}}, {"RequestItems": {"parts": expected}})

    # When they are written, Then DynamoDB is asked for each key once, with its last reason
    DynamoParts("parts", Connection(lambda: client)).put_failures(8, notes, expires_at=9)


def test_a_page_starts_after_the_note_that_its_cursor_names(client: Any, aws: Stubber) -> None:
    parts = DynamoParts("parts", Connection(lambda: client))
    last = {"batch_id": {"N": "8"}, "part": {"S": "failure/0000000000041"}}
    item = {**last, "item": {"S": "i"}, "reason": {"S": "r"}}
    request: dict[str, Any] = {
        "TableName": "parts",
        "KeyConditionExpression": "batch_id = :batch AND begins_with(part, :failure)",
        "ExpressionAttributeValues": {":batch": {"N": "8"}, ":failure": {"S": "failure/"}},
        "ConsistentRead": True,
        "Limit": 1,
    }
    aws.add_response("query", {"Items": [item], "LastEvaluatedKey": last}, request)
    aws.add_response("query", {"Items": []}, {**request, "ExclusiveStartKey": last})

    rows, cursor = parts.failures(8, limit=1)
    assert rows == [FailureRow(41, "i", "r")]
    assert parts.failures(8, cursor=cursor, limit=1) == ([], None)
