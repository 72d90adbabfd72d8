"""What a client does, counted in rows."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from fanin.adapters.dynamodb.metering import Meter

KEY = {"k": {"S": "a"}}


@pytest.fixture
def client() -> Any:
    return boto3.client("dynamodb")


def test_rows_are_counted_by_operation(client: Any, aws: Stubber) -> None:
    # Given a meter on a client
    meter = Meter(client)
    aws.add_response("get_item", {})
    aws.add_response("batch_get_item", {"Responses": {"t": []}, "UnprocessedKeys": {}})
    aws.add_response("query", {"Items": [], "ScannedCount": 7})
    aws.add_response("put_item", {})
    aws.add_response("batch_write_item", {"UnprocessedItems": {}})
    aws.add_response("transact_write_items", {})

    # When it reads and writes
    client.get_item(TableName="t", Key=KEY)
    client.batch_get_item(RequestItems={"t": {"Keys": [KEY, {"k": {"S": "b"}}]}})
    client.query(TableName="t", KeyConditionExpression="k = :k")
    client.put_item(TableName="t", Item=KEY)
    client.batch_write_item(RequestItems={"t": [{"PutRequest": {"Item": KEY}}] * 3})
    client.transact_write_items(TransactItems=[{"Put": {"TableName": "t", "Item": KEY}}] * 2)

    # Then rows are counted, whether found or not, and requests apart
    assert meter.reads == {"GetItem": 1, "BatchGetItem": 2, "Query": 7}
    assert meter.writes == {"PutItem": 1, "BatchWriteItem": 3, "TransactWriteItems": 2}
    assert meter.requests.total() == 6
    assert not meter.refused


def test_a_refused_write_counts_as_written_and_as_refused(client: Any, aws: Stubber) -> None:
    meter = Meter(client)
    aws.add_client_error("put_item", "ConditionalCheckFailedException")
    aws.add_client_error("put_item", "ThrottlingException")

    for _ in range(2):
        with pytest.raises(ClientError):
            client.put_item(TableName="t", Item=KEY)

    assert (meter.writes["PutItem"], meter.refused["PutItem"]) == (2, 1)


def test_counting_starts_again(client: Any, aws: Stubber) -> None:
    meter = Meter(client)
    aws.add_response("put_item", {})
    client.put_item(TableName="t", Item=KEY)

    meter.reset()

    assert not (meter.requests | meter.reads | meter.writes | meter.refused)
