"""A change in DynamoDB's expressions: names by alias, values by placeholder, conditions joined."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.adapters.dynamodb.batches import Change
from fanin.domain.batch import State

KEY = {"batch_id": {"N": "8"}}


def request(change: Change) -> dict[str, Any]:
    return change.request("batches", KEY)


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


def test_one_attribute_may_be_tested_set_and_added_to_with_values_of_their_own() -> None:
    asked = request(Change(["#items = :items"], {"items": 1}, sets={"items": 2}, adds={"items": 3}))

    assert asked["ExpressionAttributeNames"] == {"#items": "items"}
    assert asked["ExpressionAttributeValues"] == {
        ":items": {"N": "1"},
        ":set_items": {"N": "2"},
        ":add_items": {"N": "3"},
    }


def test_a_name_that_begins_with_another_keeps_its_own_alias() -> None:
    asked = request(Change(["#due = :due"], {"due": 1}, sets={"due_at": 2}))

    assert asked["ExpressionAttributeNames"] == {"#due": "due", "#due_at": "due_at"}


@pytest.mark.parametrize(
    ("change", "update"),
    [
        (Change(["#a = :a"], {"a": 1}, sets={"b": 2}), "SET #b = :set_b"),
        (Change(["#a = :a"], {"a": 1}, adds={"b": 2}), "ADD #b :add_b"),
    ],
)
def test_a_part_that_there_is_nothing_for_is_left_out(change: Change, update: str) -> None:
    assert request(change)["UpdateExpression"] == update


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        (True, {"BOOL": True}),
        (2**53, {"N": "9007199254740992"}),
        ("", {"S": ""}),
        (State.OPEN, {"S": "open"}),
        (b"\0", {"B": b"\0"}),
        ({"kind": "trip"}, {"M": {"kind": {"S": "trip"}}}),
    ],
)
def test_a_value_is_sent_with_its_type(value: Any, typed: dict[str, Any]) -> None:
    asked = request(Change(["#a = :a"], {"a": value}, sets={"b": value}))

    assert asked["ExpressionAttributeValues"] == {":a": typed, ":set_b": typed}
