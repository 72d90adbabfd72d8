"""Conditional changes, as DynamoDB's expressions."""

from __future__ import annotations

from fanin.adapters.dynamodb.changes import Change
from fanin.domain.batch import State


def test_a_change_names_every_attribute_by_alias() -> None:
    change = Change(
        when=["#state = :open", "attribute_not_exists(#limit) OR #x_1 <= :room"],
        values={"open": State.OPEN, "room": 3},
        sets={"state": State.CLOSED, "partial": False},
        adds={"items": 2, "acked": 1},
    )

    assert change.request("t", {"k": {"N": "1"}}) == {
        "TableName": "t",
        "Key": {"k": {"N": "1"}},
        "UpdateExpression": "SET #state = :set_state, #partial = :set_partial "
        "ADD #items :add_items, #acked :add_acked",
        "ConditionExpression": "(#state = :open) AND (attribute_not_exists(#limit) OR #x_1 <= :room)",
        "ExpressionAttributeNames": {
            f"#{name}": name for name in ("state", "partial", "items", "acked", "limit", "x_1")
        },
        "ExpressionAttributeValues": {
            ":open": {"S": "open"},
            ":room": {"N": "3"},
            ":set_state": {"S": "closed"},
            ":set_partial": {"BOOL": False},
            ":add_items": {"N": "2"},
            ":add_acked": {"N": "1"},
        },
    }
