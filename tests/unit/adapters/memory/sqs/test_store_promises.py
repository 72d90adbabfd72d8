"""All queues of one service."""

from __future__ import annotations

import json

import pytest

from fanin.adapters.memory import FixedClock, SeededRandom
from fanin.adapters.memory.sqs import QueueStore


@pytest.fixture
def store() -> QueueStore:
    return QueueStore(FixedClock(), SeededRandom())


def test_a_queue_is_found_by_its_url_and_its_arn(store: QueueStore) -> None:
    queue = store.create("rows", {"VisibilityTimeout": "7"}, {"a": "b"})
    assert store.find(queue.url) is store.by_arn(queue.arn) is queue
    assert store.create("rows", {}, {}) is queue
    assert (queue.seconds("VisibilityTimeout"), queue.tags) == (7, {"a": "b"})
    assert store.find("https://sqs/rows") is None
    with pytest.raises(KeyError):
        store.by_arn("arn:aws:sqs:memory:000000000000:others")


def test_a_queue_that_is_deleted_is_not_found(store: QueueStore) -> None:
    queue = store.create("rows", {}, {})
    store.delete(queue.url)
    assert store.find(queue.url) is None
    assert store.create("rows", {}, {}) is not queue


def test_a_redrive_policy_is_set_changed_and_taken_away(store: QueueStore) -> None:
    grave = store.create("grave", {}, {})
    policy = {"deadLetterTargetArn": grave.arn, "maxReceiveCount": 3}
    queue = store.create("rows", {"RedrivePolicy": json.dumps(policy)}, {})
    assert (queue.dead_letters, queue.max_receives) == (grave, 3)

    store.change(queue, {"VisibilityTimeout": "1"})
    assert queue.dead_letters is grave

    store.change(queue, {"RedrivePolicy": json.dumps(policy | {"maxReceiveCount": "5"})})
    assert queue.max_receives == 5

    store.change(queue, {"RedrivePolicy": ""})
    assert queue.dead_letters is None


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ("no json", ValueError),
        (json.dumps({"maxReceiveCount": 3}), KeyError),
        (json.dumps({"deadLetterTargetArn": "arn:aws:sqs:memory:0:gone", "maxReceiveCount": 3}), KeyError),
    ],
)
def test_a_queue_with_a_bad_redrive_policy_is_not_made(
    store: QueueStore, policy: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        store.create("rows", {"RedrivePolicy": policy}, {})
    with pytest.raises(KeyError):
        store.by_arn("rows")
