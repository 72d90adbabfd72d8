"""The queues of one service: found by URL and by ARN, made once, with dead letters that must be there."""

import json

import pytest

from fanin.adapters.memory.sqs import Queue, QueueStore
from tests.unit.adapters.memory.sqs.conftest import NOW


def redrive(arn: str, most: object = 3) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": most})}


def test_a_queue_has_what_sqs_gives_a_new_one(store: QueueStore) -> None:
    queue = store.create("jobs", {"VisibilityTimeout": "7"}, {"team": "shop"})

    assert queue.url == "memory://sqs/000000000000/jobs"
    assert queue.arn == "arn:aws:sqs:memory:000000000000:jobs"
    assert (queue.created_at, queue.tags) == (NOW, {"team": "shop"})
    assert (queue.seconds("VisibilityTimeout"), queue.seconds("MessageRetentionPeriod")) == (7, 345_600)


def test_a_queue_of_that_name_is_given_as_it_is(store: QueueStore, queue: Queue) -> None:
    queue.send("a", {})

    again = store.create("jobs", {"VisibilityTimeout": "7"}, {"team": "shop"})

    assert again is queue
    assert (again.seconds("VisibilityTimeout"), again.tags) == (30, {})
    assert [held.body for held in again.receive(1, None)] == ["a"]


def test_a_queue_is_found_by_its_url_and_its_arn_until_it_is_deleted(store: QueueStore, queue: Queue) -> None:
    assert store.find(queue.url) is queue
    assert store.by_arn(queue.arn) is queue

    queue.send("a", {})
    store.delete(queue.url)

    assert store.find(queue.url) is None
    with pytest.raises(KeyError):
        store.by_arn(queue.arn)
    assert store.create("jobs", {}, {}).receive(1, None) == []


@pytest.mark.parametrize("most", [3, "3"])
def test_dead_letters_go_where_the_redrive_policy_says(store: QueueStore, queue: Queue, most: object) -> None:
    work = store.create("work", redrive(queue.arn, most), {})

    assert (work.dead_letters, work.max_receives) == (queue, 3)


@pytest.mark.parametrize("policy", ["", "{}"])
def test_an_empty_redrive_policy_ends_it_and_other_attributes_leave_it(
    store: QueueStore, queue: Queue, policy: str
) -> None:
    work = store.create("work", redrive(queue.arn), {})
    store.change(work, {"VisibilityTimeout": "7"})
    assert work.dead_letters is queue

    store.change(work, {"RedrivePolicy": policy})
    assert work.dead_letters is None


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ({"RedrivePolicy": "not JSON"}, ValueError),
        (redrive("arn:aws:sqs:memory:000000000000:none"), KeyError),
        (redrive("arn:aws:sqs:memory:000000000000:jobs", "many"), ValueError),
        (redrive("arn:aws:sqs:memory:000000000000:jobs", 0), ValueError),
        (redrive("arn:aws:sqs:memory:000000000000:jobs", 1001), ValueError),
        ({"RedrivePolicy": '{"deadLetterTargetArn": "arn:aws:sqs:memory:000000000000:jobs"}'}, KeyError),
    ],
)
def test_a_queue_with_a_redrive_policy_that_cannot_be_is_neither_made_nor_changed(
    store: QueueStore, queue: Queue, policy: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        store.create("work", policy, {})
    assert store.find("memory://sqs/000000000000/work") is None

    with pytest.raises(error):
        store.change(queue, {"VisibilityTimeout": "7", **policy})
    assert (queue.dead_letters, queue.seconds("VisibilityTimeout")) == (None, 30)
