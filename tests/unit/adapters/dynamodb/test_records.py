"""What DynamoDB is asked for records: versions, times to live, and pages by name."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from fanin.adapters import cursors
from fanin.adapters.dynamodb import Connection, DynamoRecords
from fanin.adapters.dynamodb.records import decode
from fanin.adapters.memory import FixedClock
from fanin.app.ports.records import Record, RecordPage
from fanin.errors import InvalidRequest
from tests.unit.adapters.dynamodb.conftest import refused

Asked = list[dict[str, Any]]
NOW = 1_790_000_000
LATER = 1_800_000_000
KEY = {"topic": {"S": "fleet"}, "name": {"S": "a"}}
ALIASES = {"#value": "value", "#expires": "expires_at", "#version": "version"}


@pytest.fixture
def directory(connection: Connection) -> DynamoRecords:
    return DynamoRecords.of_directory("directory", connection, FixedClock(NOW * 1000))


def row(name: str = "a", version: int = 1, expires_at: int = LATER) -> dict[str, Any]:
    return {
        "topic": {"S": "fleet"},
        "name": {"S": name},
        "value": {"S": '{"n":1}'},
        "version": {"N": str(version)},
        "expires_at": {"N": str(expires_at)},
    }


def record(name: str = "a", version: int = 1) -> Record:
    return Record(name, {"n": 1}, version, LATER)


def test_a_record_of_a_batch_is_found_by_number_and_one_of_a_topic_by_text(
    connection: Connection, directory: DynamoRecords, aws: Stubber, asked: Asked
) -> None:
    records = DynamoRecords.of_batches("parts", connection, FixedClock())
    aws.add_response("batch_get_item", {"Responses": {}})
    aws.add_response("batch_get_item", {"Responses": {}})

    records.read("71", ["reply/1"])
    directory.read("71", ["reply/1"])

    assert [request["RequestItems"] for request in asked] == [
        {"parts": {"Keys": [{"batch_id": {"N": "71"}, "part": {"S": "reply/1"}}], "ConsistentRead": True}},
        {"directory": {"Keys": [{"topic": {"S": "71"}, "name": {"S": "reply/1"}}], "ConsistentRead": True}},
    ]


def test_each_name_is_asked_for_once_and_what_has_expired_is_left_out(
    directory: DynamoRecords, aws: Stubber, asked: Asked
) -> None:
    aws.add_response("batch_get_item", {"Responses": {"directory": [row("b", expires_at=NOW), row("a")]}})

    assert directory.read("fleet", ["a", "b", "a"]) == {"a": record("a")}
    assert [key["name"]["S"] for key in asked[0]["RequestItems"]["directory"]["Keys"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("if_version", "condition", "values"),
    [
        (None, None, {}),
        (0, "attribute_not_exists(#version) OR #expires <= :now", {":now": {"N": str(NOW)}}),
        (3, "#version = :seen AND #expires > :now", {":now": {"N": str(NOW)}, ":seen": {"N": "3"}}),
    ],
)
def test_a_put_raises_the_version_on_the_condition_that_it_was_the_one_seen(
    directory: DynamoRecords,
    aws: Stubber,
    *,
    if_version: int | None,
    condition: str | None,
    values: dict[str, Any],
) -> None:
    request = {
        "TableName": "directory",
        "Key": KEY,
        "UpdateExpression": "SET #value = :value, #expires = :expires,"
        " #version = if_not_exists(#version, :start) + :one",
        "ExpressionAttributeNames": ALIASES,
        "ExpressionAttributeValues": {
            ":value": {"S": '{"n":1}'},
            ":expires": {"N": str(LATER)},
            ":start": {"N": str(NOW * 1000)},
            ":one": {"N": "1"},
            **values,
        },
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        **({"ConditionExpression": condition} if condition else {}),
    }
    aws.add_response("update_item", {"Attributes": row(version=4)}, request)

    answer = directory.put("fleet", "a", {"n": 1}, expires_at=LATER, if_version=if_version)

    assert answer == (record(version=4), True)


@pytest.mark.parametrize(
    ("old", "seen"), [(row(version=7), record(version=7)), (row(expires_at=NOW), None), (None, None)]
)
def test_a_refused_put_tells_the_record_that_is_there_unless_it_has_expired(
    directory: DynamoRecords, aws: Stubber, old: dict[str, Any] | None, seen: Record | None
) -> None:
    aws.add_client_error("update_item", **refused(old))

    assert directory.put("fleet", "a", {}, expires_at=LATER, if_version=3) == (seen, False)


def test_records_put_in_bulk_are_of_version_1(directory: DynamoRecords, aws: Stubber) -> None:
    rows = [{"PutRequest": {"Item": row(name)}} for name in ("a", "b")]
    aws.add_response("batch_write_item", {}, {"RequestItems": {"directory": rows}})

    directory.put_all("fleet", {"a": {"n": 1}, "b": {"n": 1}}, expires_at=LATER)


@pytest.mark.parametrize(
    ("if_version", "more", "alias", "value"),
    [(None, "", {}, {}), (3, " AND #version = :seen", {"#version": "version"}, {":seen": {"N": "3"}})],
)
def test_only_what_lives_is_deleted(
    directory: DynamoRecords,
    aws: Stubber,
    *,
    if_version: int | None,
    more: str,
    alias: dict[str, str],
    value: dict[str, Any],
) -> None:
    request = {
        "TableName": "directory",
        "Key": KEY,
        "ConditionExpression": f"#expires > :now{more}",
        "ExpressionAttributeNames": {"#expires": "expires_at", **alias},
        "ExpressionAttributeValues": {":now": {"N": str(NOW)}, **value},
    }
    aws.add_response("delete_item", {}, request)
    aws.add_client_error("delete_item", "ConditionalCheckFailedException", expected_params=request)

    assert directory.delete("fleet", "a", if_version=if_version) is True
    assert directory.delete("fleet", "a", if_version=if_version) is False


def test_a_delete_that_fails_otherwise_is_an_error(directory: DynamoRecords, aws: Stubber) -> None:
    aws.add_client_error("delete_item", "ValidationException")

    with pytest.raises(ClientError, match="ValidationException"):
        directory.delete("fleet", "a")


@pytest.mark.parametrize(
    ("prefix", "more", "alias", "value"),
    [
        ("", "", {}, {}),
        ("it", " AND begins_with(#name, :prefix)", {"#name": "name"}, {":prefix": {"S": "it"}}),
    ],
)
def test_a_page_names_only_what_its_condition_uses(
    directory: DynamoRecords, aws: Stubber, *, prefix: str, more: str, alias: Any, value: Any
) -> None:
    # DynamoDB refuses a request with a name or a value that no expression uses.
    request = {
        "TableName": "directory",
        "KeyConditionExpression": f"#namespace = :namespace{more}",
        "ExpressionAttributeNames": {"#namespace": "topic", **alias},
        "ExpressionAttributeValues": {":namespace": {"S": "fleet"}, **value},
        "ConsistentRead": True,
        "Limit": 7,
    }
    aws.add_response("query", {"Items": [row("item")]}, request)

    assert directory.page("fleet", prefix=prefix, limit=7) == RecordPage([record("item")], None)


def test_a_page_of_nothing_but_expired_records_still_goes_on(
    directory: DynamoRecords, aws: Stubber, asked: Asked
) -> None:
    aws.add_response("query", {"Items": [row(expires_at=NOW)], "LastEvaluatedKey": KEY})
    aws.add_response("query", {"Items": [row("b")]})

    empty = directory.page("fleet", limit=1)
    rest = directory.page("fleet", cursor=empty.cursor, limit=1)

    assert (empty.records, rest) == ([], RecordPage([record("b")], None))
    assert asked[1]["ExclusiveStartKey"] == KEY


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        cursors.encode("directory fleet item/", 3),
        cursors.encode_name("directory fleet ", "item/3"),
        cursors.encode_name("directory trucks item/", "item/3"),
        cursors.encode_name("directory fleet item/", "outside"),
    ],
)
def test_a_cursor_that_this_listing_did_not_give_asks_nothing(
    directory: DynamoRecords, aws: Stubber, cursor: str
) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        directory.page("fleet", prefix="item/", cursor=cursor)


def test_a_stream_image_decodes_to_the_record() -> None:
    image = {key: value for key, value in row("☂", version=9).items() if key != "topic"}

    assert decode(image, "name") == record("☂", version=9)
