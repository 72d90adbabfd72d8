"""The note of an item's child: one row beside the rows of its batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.stub import Stubber

from fanin.adapters.dynamodb import DynamoBatches, children
from fanin.adapters.dynamodb.rows import encode
from fanin.app.ports.batches import Adoption, ItemPlace
from tests.unit.adapters.dynamodb.conftest import BATCH

ITEM = ItemPlace(7, 130)
NOTE = {
    "batch_id": {"N": "7"},
    "part": {"S": "child/130"},
    "child": {"N": "11"},
    "expires_at": {"N": "1800000000"},
}


def test_a_first_child_is_noted_where_there_is_none() -> None:
    assert children.note("parts", ITEM, BATCH, instead_of=None) == {
        "TableName": "parts",
        "Item": NOTE,
        "ConditionExpression": "attribute_not_exists(part)",
    }


def test_another_takes_the_place_of_the_one_that_was_seen() -> None:
    note = children.note("parts", ITEM, BATCH, instead_of=5)

    assert note["ConditionExpression"] == "attribute_not_exists(part) OR child = :instead_of"
    assert note["ExpressionAttributeValues"] == {":instead_of": {"N": "5"}}


def test_the_row_and_its_note_are_one_transaction(
    batches: DynamoBatches, aws: Stubber, asked: list[dict[str, Any]]
) -> None:
    aws.add_response("transact_write_items", {})

    assert batches.create_child(BATCH, ITEM) == Adoption(BATCH, 11)
    row, note = (write["Put"] for write in asked[0]["TransactItems"])
    assert (row["TableName"], row["Item"]) == ("batches", encode(BATCH))
    assert row["ConditionExpression"] == "attribute_not_exists(batch_id)"
    assert (note["TableName"], note["Item"]) == ("parts", NOTE)


@pytest.mark.parametrize(
    ("row", "note", "adoption"),
    [
        (BATCH, True, Adoption(BATCH, 11)),
        (replace(BATCH, items=9), False, Adoption(replace(BATCH, items=9), 11)),
        (replace(BATCH, salt=b"\1" * 16), False, Adoption(None, None)),
        (None, True, Adoption(None, 5)),
    ],
    ids=["our own", "our own, replaced since", "another's id", "another child"],
)
def test_a_refusal_tells_who_was_first(
    batches: DynamoBatches, aws: Stubber, row: Any, note: bool, adoption: Adoption
) -> None:
    refusals = [
        {"Code": "ConditionalCheckFailed", "Item": item} if item else {"Code": "None"}
        for item in (row and encode(row), NOTE | {"child": {"N": "5"}} if note else None)
    ]
    aws.add_client_error(
        "transact_write_items",
        "TransactionCanceledException",
        modeled_fields={"CancellationReasons": refusals},
    )

    assert batches.create_child(BATCH, ITEM) == adoption


def test_the_child_is_read_from_the_note(batches: DynamoBatches, aws: Stubber) -> None:
    aws.add_response("batch_get_item", {"Responses": {"parts": [NOTE]}})
    aws.add_response("batch_get_item", {"Responses": {}})

    assert [batches.child_of(ITEM) for _ in range(2)] == [11, None]
