"""Scatter-gather on the deployed stack, with policies enforced: queues, functions, alarms, the bucket."""

import urllib.request
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from fanin import names
from fanin.app.ledger.service import LedgerService
from fanin.app.scatters.service import ScatterService
from fanin.client.messages import ReceivedMessage, read_message
from fanin.domain.directory import Register
from fanin.domain.scatter import Scatter
from fanin.entry.settings import Settings
from fanin.entry.wiring import connect
from fanin.errors import CorrelationIdAlive
from tests.e2e.deployment import Deployment, eventually


def received(deployment: Deployment, url: str) -> list[ReceivedMessage]:
    return eventually(lambda: [read_message(message) for message in deployment.receive(url)])


class NotedJobs:
    """Notes the jobs that are left to the worker."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.sent: list[Any] = []

    def send(self, jobs: Iterable[Any]) -> None:
        some = [*jobs]
        self.sent += some
        self._inner.send(some)


def put(claim: Any, payload: bytes) -> None:
    request = urllib.request.Request(claim.url, payload, dict(claim.headers), method="PUT")
    urllib.request.urlopen(request).close()


def test_a_fleet_replies_by_queue_by_https_and_by_claim_check(deployment, tracker, channel, subscriber):
    # Given three cars of a topic
    topic = f"fleet-{uuid.uuid4()}"
    urls = [channel() for _ in range(3)]
    for i, url in enumerate(urls):
        tracker.directory.register(Register(topic, f"car-{i}", url))
    scattered = tracker.scatters.start(topic, {"week": 47}, type="report", user_key="weekly")
    batch_id = scattered.batch.batch_id
    assert (scattered.batch.items, scattered.ready) == (3, False)
    with pytest.raises(CorrelationIdAlive):
        tracker.scatters.start(topic, "x", correlation_id=scattered.correlation_id)
    # When they get the message and reply, each in its own way
    (one,), (two,), (three,) = (received(deployment, url) for url in urls)
    assert one.json() == {"week": 47}
    assert one.attributes[names.ATTRIBUTE_CORRELATION] == scattered.correlation_id
    assert tracker.scatters.reply(one, {"km": 1}).first
    tracker.scatters.reply_later(two, {"km": 2})
    video = b"x" * 300_000
    claim = tracker.scatters.claim(three, len(video), "video/mp4")
    put(claim, video)
    assert tracker.scatters.reply(three, claim=claim.key).first
    # Then there is one event, and all replies are there
    event = subscriber.only_event_of(batch_id)
    assert event["detail-type"] == "Gather Ready"
    detail = event["detail"]
    assert (detail["received"], detail["missing"], detail["user_key"]) == (3, [], "weekly")
    assert detail["correlation_id"] == scattered.correlation_id
    replies = list(tracker.scatters.replies(batch_id))
    assert [(reply.name, reply.payload) for reply in replies[:2]] == [
        ("car-0", {"km": 1}),
        ("car-1", {"km": 2}),
    ]
    with urllib.request.urlopen(replies[2].url) as download:
        assert download.read() == video
    # And its correlation id is free again
    assert tracker.scatters.start([], "x", correlation_id=scattered.correlation_id).ready


@pytest.mark.usefixtures("local_environment")
def test_a_topic_that_is_too_large_for_a_start_is_listed_by_the_worker(
    deployment, tracker, channel, subscriber
):
    # Given a start that leaves all three of a topic to the worker's role, and is repeated
    topic = f"fleet-{uuid.uuid4()}"
    urls = [channel() for _ in range(3)]
    for i, url in enumerate(urls):
        tracker.directory.register(Register(topic, f"car-{i}", url))
    request = Scatter("report!", topic=topic)
    ports = connect(Settings.from_env())
    jobs = NotedJobs(ports.jobs)
    service = ScatterService(LedgerService(replace(ports, jobs=jobs)), at_once=0)
    first, again = (service.start(request, key=topic) for _ in range(2))
    assert jobs.sent[0]["chunk"] is None  # lists them first
    assert first.batch.batch_id == again.batch.batch_id
    # When they reply to what they get
    for i, url in enumerate(urls):
        messages = received(deployment, url)
        assert len({message.item for message in messages}) == 1
        assert tracker.scatters.reply(messages[0], {"km": i})
    # Then the event counts all of them
    detail = subscriber.only_event_of(first.batch.batch_id)["detail"]
    assert (detail["recipients"], detail["received"], detail["missing"]) == (3, 3, [])
