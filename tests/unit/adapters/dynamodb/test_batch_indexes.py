"""The note of an item's child: one row beside the rows of its batch."""

from __future__ import annotations

from typing import Any

from botocore.stub import Stubber

from fanin.adapters.dynamodb import DynamoBatches, batch_indexes
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


def test_another_takes_the_place_of_the_one_that_was_seen() -> None:
    note = batch_indexes.child_note("parts", ITEM, BATCH, instead_of=5)

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
