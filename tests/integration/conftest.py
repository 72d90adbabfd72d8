"""The stores under test: in memory, on the second store of ``tests/oracle``, and on the local stack that
FANIN_TEST_ENDPOINT names.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3
import pytest
from botocore.config import Config

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.adapters.dynamodb.batches import DynamoBatches
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.parts import DynamoParts
from fanin.adapters.dynamodb.records import DynamoRecords
from fanin.adapters.dynamodb.rows import word_id
from fanin.adapters.dynamodb.words import DynamoWords
from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ports.batches import BatchStore
from fanin.app.ports.parts import PartStore
from fanin.app.ports.records import Records
from fanin.app.ports.words import WordKey, WordStore
from fanin.domain.tree import Tree

MEMORY = "memory"
EMULATOR = pytest.param("emulator", marks=pytest.mark.emulator)
SECOND = pytest.param("second", marks=pytest.mark.oracle)


@dataclass(frozen=True)
class Stores:
    batches: BatchStore
    words: WordStore
    parts: PartStore
    records: Records
    directory: Records
    clock: FixedClock


@dataclass(frozen=True)
class Dynamo(Stores):
    connection: Connection
    prefix: str

    def row(self, table: str, **key: Any) -> dict[str, Any]:
        """The stored row as it is, with types."""
        answer = self.connection.client.get_item(TableName=f"{self.prefix}-{table}", Key=key)
        return answer.get("Item", {})

    def word_row(self, key: WordKey) -> dict[str, Any]:
        return self.row("words", word_id={"S": word_id(key)})


@pytest.fixture(params=[MEMORY, SECOND, EMULATOR])
def stores(request: pytest.FixtureRequest) -> Iterator[Stores]:
    """Every implementation of the ports."""
    with opened(request.param) as world:
        yield world


@pytest.fixture(params=[SECOND, EMULATOR])
def dynamo(request: pytest.FixtureRequest) -> Iterator[Dynamo]:
    """The implementations on DynamoDB."""
    with opened(request.param) as world:
        yield world


@contextmanager
def opened(kind: str, tree: Tree | None = None) -> Iterator[Any]:
    """Stores of one kind, on tables of their own."""
    if kind == MEMORY:
        clock = FixedClock()
        memory = Memory(tree=tree, clock=clock)
        yield Stores(memory.batches, memory.words, memory.parts, memory.records, memory.directory, clock)
    elif kind == "second":
        yield on_dynamodb(os.environ["FANIN_SECOND_ENDPOINT"], tree)
    elif endpoint := os.environ.get("FANIN_TEST_ENDPOINT"):
        yield on_dynamodb(endpoint, tree)
    else:
        pytest.skip("FANIN_TEST_ENDPOINT names no local stack")


def on_dynamodb(endpoint: str, tree: Tree | None, clock: FixedClock | None = None) -> Dynamo:
    prefix = f"test-{uuid4().hex[:12]}"
    credentials = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}  # of no account
    connection = Connection(
        lambda: boto3.client(
            "dynamodb",
            region_name="eu-west-1",
            endpoint_url=endpoint,
            config=Config(ignore_configured_endpoint_urls=True),
            **credentials,
        ),
        threads=16,
        backoff=Backoff(base=0.001),
    )
    create_tables(connection, prefix)
    return on_tables(connection, prefix, clock or FixedClock(), tree)


def on_tables(connection: Connection, prefix: str, clock: FixedClock, tree: Tree | None = None) -> Dynamo:
    """Stores on tables that exist."""
    return Dynamo(
        batches=DynamoBatches(f"{prefix}-batches", f"{prefix}-parts", connection),
        words=DynamoWords(f"{prefix}-words", connection, tree),
        parts=DynamoParts(f"{prefix}-parts", connection),
        records=DynamoRecords.of_batches(f"{prefix}-parts", connection, clock),
        directory=DynamoRecords.of_directory(f"{prefix}-directory", connection, clock),
        clock=clock,
        connection=connection,
        prefix=prefix,
    )


def create_tables(connection: Connection, prefix: str) -> None:
    """The four tables, as the stack makes them, less what the stores do not see."""
    create = connection.client.create_table
    on_demand: dict[str, Any] = {"BillingMode": "PAY_PER_REQUEST"}
    create(
        TableName=f"{prefix}-batches",
        KeySchema=[{"AttributeName": names.BATCH_ID, "KeyType": "HASH"}],
        AttributeDefinitions=[
            {"AttributeName": names.BATCH_ID, "AttributeType": "N"},
            {"AttributeName": names.STATE_SHARD, "AttributeType": "S"},
            {"AttributeName": names.DUE_AT, "AttributeType": "N"},
            {"AttributeName": names.USER_SHARD, "AttributeType": "S"},
            {"AttributeName": names.ATTENTION, "AttributeType": "S"},
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": names.INDEX_BY_STATE_SHARD,
                "KeySchema": [
                    {"AttributeName": names.STATE_SHARD, "KeyType": "HASH"},
                    {"AttributeName": names.DUE_AT, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": [names.TOUCHED_AT]},
            },
            {
                "IndexName": names.INDEX_BY_USER_KEY,
                "KeySchema": [
                    {"AttributeName": names.USER_SHARD, "KeyType": "HASH"},
                    {"AttributeName": names.BATCH_ID, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
            {
                "IndexName": names.INDEX_BY_ATTENTION,
                "KeySchema": [
                    {"AttributeName": names.ATTENTION, "KeyType": "HASH"},
                    {"AttributeName": names.BATCH_ID, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
        ],
        **on_demand,
    )
    create(
        TableName=f"{prefix}-words",
        KeySchema=[{"AttributeName": names.WORD_ID, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": names.WORD_ID, "AttributeType": "S"}],
        **on_demand,
    )
    create(
        TableName=f"{prefix}-parts",
        KeySchema=[
            {"AttributeName": names.BATCH_ID, "KeyType": "HASH"},
            {"AttributeName": names.PART, "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": names.BATCH_ID, "AttributeType": "N"},
            {"AttributeName": names.PART, "AttributeType": "S"},
        ],
        **on_demand,
    )
    create(
        TableName=f"{prefix}-directory",
        KeySchema=[
            {"AttributeName": names.TOPIC, "KeyType": "HASH"},
            {"AttributeName": names.NAME, "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": names.TOPIC, "AttributeType": "S"},
            {"AttributeName": names.NAME, "AttributeType": "S"},
        ],
        **on_demand,
    )
