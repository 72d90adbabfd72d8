"""What DynamoDB is asked for records: versions, times to live, and pages by name."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.records import DynamoRecords, decode
from fanin.adapters.memory import FixedClock
from fanin.app.ports.records import Record

Asked = list[dict[str, Any]]
NOW = 1_790_000_000
LATER = 1_800_000_000


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


def test_a_record_of_a_batch_is_found_by_number_and_one_of_a_topic_by_text(connection, directory, aws, asked):
    records = DynamoRecords.of_batches("parts", connection, FixedClock())
    aws.add_response("batch_get_item", {"Responses": {}})
    aws.add_response("batch_get_item", {"Responses": {}})

    records.read("71", ["reply/1"])
    directory.read("71", ["reply/1"])

    assert [request["RequestItems"] for request in asked] == [
        {"parts": {"Keys": [{"batch_id": {"N": "71"}, "part": {"S": "reply/1"}}], "ConsistentRead": True}},
        {"directory": {"Keys": [{"topic": {"S": "71"}, "name": {"S": "reply/1"}}], "ConsistentRead": True}},
    ]


def test_a_delete_that_fails_otherwise_is_an_error(directory, aws):
    aws.add_client_error("delete_item", "ValidationException")

    with pytest.raises(ClientError, match="ValidationException"):
        directory.delete("fleet", "a")


def test_a_stream_image_decodes_to_the_record():
    image = {key: value for key, value in row("☂", version=9).items() if key != "topic"}

    assert decode(image, "name") == record("☂", version=9)
