"""SQS on moto, and a way to make its answers worse."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from fanin import Tracker
from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Services


@pytest.fixture(scope="session")
def client() -> Any:
    """Made once, since that takes longer than most tests; what it talks to is new for each of them."""
    with pytest.MonkeyPatch.context() as environment, mock_aws():
        for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
            environment.delenv(name, raising=False)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "test")
        return boto3.client("sqs", region_name="us-east-1")


@pytest.fixture
def sqs(client: Any) -> Iterator[Any]:
    with mock_aws():
        yield client


@pytest.fixture
def queue(sqs: Any) -> str:
    return sqs.create_queue(QueueName="work")["QueueUrl"]


@pytest.fixture
def fifo_queue(sqs: Any) -> str:
    return sqs.create_queue(QueueName="work.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]


@pytest.fixture
def ack_queue(sqs: Any) -> str:
    return sqs.create_queue(QueueName="acks")["QueueUrl"]


class Recorder:
    """A ledger that passes on to another and counts the calls."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.calls: list[tuple[str, tuple, dict]] = []

    def __getattr__(self, name):
        method = getattr(self.ledger, name)

        def call(*args, **kwargs):
            self.calls.append((name, args, kwargs))
            return method(*args, **kwargs)

        return call


class Faulty:
    """A client whose named calls pass through a function that may answer in its place.

    Attributes:
        requests: (call, keyword arguments) of all calls, in order.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._instead: dict[str, Callable[[Callable[..., Any], dict[str, Any]], Any]] = {}
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def instead(self, name: str, answer: Callable[[Callable[..., Any], dict[str, Any]], Any]) -> None:
        self._instead[name] = answer

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._client, name)

        def call(**arguments: Any) -> Any:
            self.requests.append((name, arguments))
            answer = self._instead.get(name)
            return answer(real, arguments) if answer else real(**arguments)

        return call


@pytest.fixture
def ledger(memory: Memory) -> Recorder:
    return Recorder(LedgerService(memory.ports()))


@pytest.fixture
def faulty(sqs: Any) -> Faulty:
    return Faulty(sqs)


@pytest.fixture
def tracker(faulty: Faulty, ack_queue: str) -> Tracker:
    return Tracker(Services(Memory().ports()), lambda: faulty, ack_queue)


@pytest.fixture
def longest_waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The longest that each wait may be, in seconds; nobody waits."""
    found: list[float] = []

    def wait(backoff: Backoff, attempt: int, at_least: float | None = None) -> None:
        found.append(replace(backoff, fraction=lambda: 1.0).delay(attempt, at_least))

    monkeypatch.setattr(Backoff, "wait", wait)
    return found


def refusal(code: str, status: int = 400, text: str = "sorry") -> ClientError:
    """An error of SQS."""
    response = {"Error": {"Code": code, "Message": text}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "SendMessage")


def raising(error: Exception) -> Callable[..., Any]:
    """A call that raises."""

    def call(*_: Any, **__: Any) -> Any:
        raise error

    return call


def received(sqs: Any, queue_url: str) -> list[dict[str, Any]]:
    """All messages of a queue, as a consumer gets them."""
    found: list[dict[str, Any]] = []
    while True:
        answer = sqs.receive_message(
            QueueUrl=queue_url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
        )
        if not answer.get("Messages"):
            return found
        found += answer["Messages"]
