"""Queues in memory on a clock that stands still until a test moves it."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.memory import Accesses, FixedClock, SeededRandom
from fanin.adapters.memory.sqs import InMemorySqs, Queue, QueueStore

NOW = 1_790_000_000_000


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def store(clock: FixedClock) -> QueueStore:
    return QueueStore(clock, SeededRandom())


@pytest.fixture
def accesses() -> Accesses:
    return Accesses()


@pytest.fixture
def sqs(store: QueueStore, accesses: Accesses) -> InMemorySqs:
    return InMemorySqs(store, accesses)


@pytest.fixture
def queue(store: QueueStore) -> Queue:
    return store.create("jobs", {}, {})


@pytest.fixture
def fifo(store: QueueStore) -> Queue:
    return store.create("jobs.fifo", {}, {})


def code(caught: pytest.ExceptionInfo[ClientError]) -> Any:
    """The code of the error, as a caller of boto3 reads it."""
    return caught.value.response["Error"]["Code"]
