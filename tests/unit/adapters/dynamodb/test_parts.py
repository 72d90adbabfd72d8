"""What DynamoDB is asked for notes of failed items, and what its answers mean."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.stub import Stubber

from fanin.adapters import cursors
from fanin.adapters.dynamodb import Connection, DynamoParts
from fanin.app.ports.parts import FailureRow
from fanin.domain.ids import MAX_ITEMS
from fanin.errors import InvalidRequest, Throttled
from tests.unit.adapters.dynamodb.conftest import plainly

Asked = list[dict[str, Any]]
LATER = 1_800_000_000


@pytest.fixture
def parts(connection: Connection) -> DynamoParts:
    return DynamoParts("parts", connection)


def key(part: str) -> dict[str, Any]:
    return {"batch_id": {"N": "8"}, "part": {"S": part}}


def row(ordinal: int, reason: str = "why") -> dict[str, Any]:
    return {
        **key(f"failure/{ordinal:013}"),
        "item": {"S": f"8:g:{ordinal}"},
        "reason": {"S": reason},
        "expires_at": {"N": str(LATER)},
    }


def note(ordinal: int, reason: str = "why") -> FailureRow:
    return FailureRow(ordinal, f"8:g:{ordinal}", reason)


def test_notes_are_written_without_a_condition_the_last_of_each_item(
    parts: DynamoParts, aws: Stubber, asked: Asked
) -> None:
    # Given two notes of one item, and one of another whose attempts are known
    for _ in range(2):
        aws.add_response("update_item", {})
    tried = note(70)._replace(attempts=5)

    # When they are written
    parts.put_failures(8, [note(3, "first"), tried, note(3, "second")], expires_at=LATER)

    # Then each is an update that leaves nothing of an earlier note, by which IAM can limit the attributes
    first, second = sorted(asked, key=lambda request: request["Key"]["part"]["S"])
    assert first["Key"] == key("failure/0000000000003")
    assert "ConditionExpression" not in first
    assert plainly(first)[0] == (
        f"SET item = 8:g:3, reason = second, expires_at = {LATER}"
        " REMOVE attempts, failed_at, source, kept, totals"
    )
    assert plainly(second)[0] == (
        f"SET item = 8:g:70, reason = why, attempts = 5, expires_at = {LATER}"
        " REMOVE failed_at, source, kept, totals"
    )


def test_no_notes_are_no_request(parts: DynamoParts, aws: Stubber) -> None:
    parts.put_failures(8, iter(()), expires_at=LATER)


@pytest.mark.parametrize("ordinal", [0, 9, 10, MAX_ITEMS - 1])
def test_a_note_is_found_by_digits_that_sort_as_numbers_do(
    parts: DynamoParts, aws: Stubber, asked: Asked, ordinal: int
) -> None:
    aws.add_response("update_item", {})
    aws.add_response("query", {"Items": [row(ordinal)]})

    parts.put_failures(8, [note(ordinal)], expires_at=LATER)

    assert len(asked[0]["Key"]["part"]["S"]) == len("failure/") + 13
    assert parts.failures(8) == ([note(ordinal)], None)


def test_notes_are_listed_as_the_last_writes_left_them(parts: DynamoParts, aws: Stubber) -> None:
    aws.add_response(
        "query",
        {"Items": [row(3), row(70, "")]},
        {
            "TableName": "parts",
            "KeyConditionExpression": "batch_id = :batch AND begins_with(part, :failure)",
            "ExpressionAttributeValues": {":batch": {"N": "8"}, ":failure": {"S": "failure/"}},
            "ConsistentRead": True,
            "Limit": 25,
        },
    )

    assert parts.failures(8, limit=25) == ([note(3), note(70, "")], None)


def test_a_page_goes_on_after_the_key_at_which_the_last_one_ended(
    parts: DynamoParts, aws: Stubber, asked: Asked
) -> None:
    # Given a page that ends at a key, as DynamoDB says also when nothing is behind it
    end = key("failure/0000000000003")
    aws.add_response("query", {"Items": [row(3)], "LastEvaluatedKey": end})
    aws.add_response("query", {"Items": []})

    # When its cursor is used
    rows, cursor = parts.failures(8, limit=1)
    rest = parts.failures(8, cursor=cursor, limit=1)

    # Then the listing goes on after that key, and ends
    assert (rows, rest) == ([note(3)], ([], None))
    assert "ExclusiveStartKey" not in asked[0]
    assert asked[1]["ExclusiveStartKey"] == end


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        cursors.encode("failures of 9", 3),
        cursors.encode("failures of 8", 3, 4),
        cursors.encode_name("failures of 8", "failure/0000000000003"),
    ],
)
def test_a_cursor_that_this_listing_did_not_give_asks_nothing(
    parts: DynamoParts, aws: Stubber, cursor: str
) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        parts.failures(8, cursor=cursor)


def test_reasons_are_read_by_key_each_once(parts: DynamoParts, aws: Stubber) -> None:
    wanted = {"Keys": [key("failure/0000000000003"), key("failure/0000000000070")], "ConsistentRead": True}
    aws.add_response(
        "batch_get_item", {"Responses": {"parts": [row(70, "too late")]}}, {"RequestItems": {"parts": wanted}}
    )

    assert parts.reasons(8, [70, 3, 70]) == {70: "too late"}


def test_a_throttled_listing_says_so(parts: DynamoParts, aws: Stubber) -> None:
    aws.add_client_error("query", "ProvisionedThroughputExceededException")

    with pytest.raises(Throttled):
        parts.failures(8)
