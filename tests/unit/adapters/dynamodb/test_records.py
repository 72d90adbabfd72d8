"""Records on DynamoDB, beyond the contract of all stores: keys, conditions and images of the stream."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from fanin.adapters.dynamodb import Connection, DynamoRecords
from fanin.adapters.dynamodb.records import decode
from fanin.adapters.memory import FixedClock
from fanin.app.ports.records import FOREVER, Record

CLOCK = FixedClock(1_790_000_000_123)
ROW = {
    "topic": {"S": "topic/cars"},
    "name": {"S": "a"},
    "value": {"S": '{"n":[1,null]}'},
    "version": {"N": "3"},
    "expires_at": {"N": "1800000000"},
}


@pytest.fixture
def client() -> Any:
    return boto3.client("dynamodb")


@pytest.fixture
def directory(client: Any) -> DynamoRecords:
    return DynamoRecords.of_directory("directory", Connection(lambda: client), CLOCK)


def test_an_image_of_the_stream_is_a_record() -> None:
    assert decode(ROW, "name") == Record("a", {"n": [1, None]}, 3, 1_800_000_000)


def test_namespaces_of_batches_are_numbers_and_of_the_directory_text(
    client: Any, aws: Stubber, directory: DynamoRecords
) -> None:
    batches = DynamoRecords.of_batches("parts", Connection(lambda: client), CLOCK)
    for table, key in (
        ("parts", {"batch_id": {"N": "71"}, "part": {"S": "plan"}}),
        ("directory", {"topic": {"S": "71"}, "name": {"S": "plan"}}),
    ):
        wanted = {table: {"Keys": [key], "ConsistentRead": True}}
        aws.add_response("batch_get_item", {"Responses": {table: []}}, {"RequestItems": wanted})

    assert batches.read("71", ["plan", "plan"]) == {}
    assert directory.read("71", ["plan"]) == {}


@pytest.mark.parametrize(
    ("if_version", "condition"),
    [
        (None, None),
        (0, "attribute_not_exists(#version) OR #expires <= :now"),
        (3, "#version = :seen AND #expires > :now"),
    ],
)
def test_a_write_has_the_condition_of_its_version(
    client: Any, directory: DynamoRecords, if_version: int | None, condition: str | None
) -> None:
    asked: list[dict[str, Any]] = []
    client.meta.events.register(
        "provide-client-params.dynamodb.UpdateItem", lambda params, **_: asked.append(params)
    )
    with Stubber(client) as aws:
        aws.add_response("update_item", {"Attributes": ROW})
        written = directory.put("topic/cars", "a", {}, expires_at=FOREVER, if_version=if_version)

    assert written == (decode(ROW, "name"), True)
    assert asked[0].get("ConditionExpression") == condition
    now = asked[0]["ExpressionAttributeValues"].get(":now")
    assert now == (None if condition is None else {"N": "1790000000"})


def test_a_refused_write_gives_the_record_that_is_there(aws: Stubber, directory: DynamoRecords) -> None:
    aws.add_client_error("update_item", "ConditionalCheckFailedException", modeled_fields={"Item": ROW})

    assert directory.put("topic/cars", "a", {}, expires_at=1, if_version=1) == (decode(ROW, "name"), False)


def test_a_refused_write_over_an_expired_record_gives_none(aws: Stubber, directory: DynamoRecords) -> None:
    expired = {**ROW, "expires_at": {"N": "1790000000"}}
    aws.add_client_error("update_item", "ConditionalCheckFailedException", modeled_fields={"Item": expired})

    assert directory.put("topic/cars", "a", {}, expires_at=1, if_version=1) == (None, False)


@pytest.mark.parametrize("expires_at", [4_102_444_800, 2**40, FOREVER])
def test_records_that_never_expire_are_read_whatever_version_wrote_them(
    aws: Stubber, directory: DynamoRecords, expires_at: int
) -> None:
    row = {**ROW, "expires_at": {"N": str(expires_at)}}
    aws.add_response("batch_get_item", {"Responses": {"directory": [row]}})

    assert directory.read("topic/cars", ["a"])["a"].expires_at == expires_at
