"""A client of queues in memory, and the same of queues on moto, to compare it with."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from fanin.adapters.memory import Accesses, FixedClock, SeededRandom
from fanin.adapters.memory.sqs import InMemorySqs, Queue, QueueStore

NO_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"
NOW = FixedClock().now()


class Time(FixedClock):
    """A clock on which whoever waits finds that nothing has come."""

    waited = 0.0

    def wait(self, seconds: float, ready: Any) -> None:
        self.waited += seconds
        self.advance(int(seconds * 1000))


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def memory(store: QueueStore, clock: Time) -> InMemorySqs:
    return InMemorySqs(store, Accesses(), clock.wait)


@pytest.fixture(params=["memory", "moto"])
def sqs(
    request: pytest.FixtureRequest, memory: InMemorySqs, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    if request.param == "memory":
        yield memory
        return
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        yield boto3.client("sqs", region_name="us-east-1")


@pytest.fixture
def url(sqs: Any) -> str:
    return sqs.create_queue(QueueName="work")["QueueUrl"]


def text(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return error.value.response["Error"]["Code"]


def bodies(answer: Any) -> list[str]:
    return [message["Body"] for message in answer.get("Messages", [])]


@pytest.fixture
def store(clock: Time) -> QueueStore:
    return QueueStore(clock, SeededRandom())


@pytest.fixture
def queue(store: QueueStore) -> Queue:
    return store.create("jobs", {}, {})


@pytest.fixture
def fifo(store: QueueStore) -> Queue:
    return store.create("jobs.fifo", {}, {})
