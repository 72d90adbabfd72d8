"""What a client's calls are counted as: rows, not requests, whatever the answer was."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.stub import Stubber

from fanin.adapters.dynamodb.metering import Meter

KEY = {"k": {"S": "a"}}
UPDATE: dict[str, Any] = {"TableName": "t", "Key": KEY}
PUT = {"Put": {"TableName": "t", "Item": KEY}}


@pytest.fixture
def meter(client: Any) -> Meter:
    return Meter(client)


def counts(meter: Meter) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    return +meter.requests, +meter.reads, +meter.writes


@pytest.mark.parametrize(
    ("call", "request_", "rows"),
    [
        ("update_item", UPDATE, 1),
        ("put_item", {"TableName": "t", "Item": KEY}, 1),
        ("delete_item", UPDATE, 1),
        ("transact_write_items", {"TransactItems": [PUT, PUT]}, 2),
        (
            "batch_write_item",
            {
                "RequestItems": {
                    "t": [{"PutRequest": {"Item": KEY}}] * 3,
                    "u": [{"DeleteRequest": {"Key": KEY}}],
                }
            },
            4,
        ),
    ],
)
def test_a_write_counts_the_rows_that_it_names(client, aws, meter, *, call, request_, rows):
    operation = client.meta.method_to_api_mapping[call]
    aws.add_response(call, {})

    getattr(client, call)(**request_)

    assert counts(meter) == ({operation: 1}, {}, {operation: rows})


def test_a_read_counts_rows_that_are_not_there_too(client, aws, meter):
    aws.add_response("get_item", {})
    aws.add_response("batch_get_item", {"Responses": {}})

    client.get_item(**UPDATE)
    client.batch_get_item(RequestItems={"t": {"Keys": [KEY, {"k": {"S": "b"}}]}, "u": {"Keys": [KEY]}})

    assert counts(meter) == ({"GetItem": 1, "BatchGetItem": 1}, {"GetItem": 1, "BatchGetItem": 3}, {})


@pytest.mark.parametrize("call", ["query", "scan"])
def test_a_listing_counts_the_rows_that_it_went_through(client, aws, meter, call):
    operation = call.title()
    aws.add_response(call, {"Items": [KEY], "Count": 1, "ScannedCount": 17})

    getattr(client, call)(TableName="t")

    assert counts(meter) == ({operation: 1}, {operation: 17}, {})


@pytest.mark.parametrize(
    ("call", "code", "refused"),
    [
        ("update_item", "ConditionalCheckFailedException", {"UpdateItem": 1}),
        ("transact_write_items", "TransactionCanceledException", {"TransactWriteItems": 1}),
        ("update_item", "ThrottlingException", {}),
        ("update_item", "ValidationException", {}),
    ],
)
def test_only_a_failed_condition_is_a_refused_write(client, aws, meter, *, call, code, refused):
    aws.add_client_error(call, code)

    with pytest.raises(ClientError):
        getattr(client, call)(**(UPDATE if call == "update_item" else {"TransactItems": [PUT]}))

    assert +meter.refused == refused
    assert (meter.requests.total(), meter.writes.total()) == (1, 1)


def test_a_call_without_an_answer_may_have_written_its_row(client, meter):
    def lose(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url="u")

    client.meta.events.register("before-call.dynamodb", lose)

    with pytest.raises(EndpointConnectionError):
        client.update_item(**UPDATE)

    assert counts(meter) == ({}, {}, {"UpdateItem": 1})


def test_clients_are_counted_together_but_no_others(client, aws):
    once, other = boto3.client("dynamodb"), boto3.client("dynamodb")
    meter = Meter(client, once)
    aws.add_response("update_item", {})
    with Stubber(once) as second, Stubber(other) as third:
        second.add_response("update_item", {})
        third.add_response("update_item", {})
        for each in (client, once, other):
            each.update_item(**UPDATE)

    assert counts(meter) == ({"UpdateItem": 2}, {}, {"UpdateItem": 2})


def test_a_reset_starts_again_at_nothing(client, aws, meter):
    aws.add_client_error("update_item", "ConditionalCheckFailedException")
    aws.add_response("get_item", {})
    with pytest.raises(ClientError):
        client.update_item(**UPDATE)
    client.get_item(**UPDATE)

    meter.reset()

    assert not any((meter.requests, meter.reads, meter.writes, meter.refused))
    aws.add_response("get_item", {})
    client.get_item(**UPDATE)
    assert counts(meter) == ({"GetItem": 1}, {"GetItem": 1}, {})
