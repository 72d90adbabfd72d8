"""The directory, the registrar and the router on the deployed stack, with policies enforced."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fanin import names
from fanin.domain.directory import PutEvent, PutRoute, Register
from fanin.errors import NotRegistered
from tests.e2e.deployment import Deployment, eventually


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4()}"


@pytest.fixture
def told(stack, deployment: Deployment) -> Iterator[Callable[[str], list[dict[str, Any]]]]:
    """What the bus told of the instances of a topic, in order."""
    sqs, events = stack.client("sqs"), stack.client("events")
    name = f"told-{uuid.uuid4()}"
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {"source": [names.EVENT_SOURCE], "detail-type": [{"prefix": "Instance "}]}
    events.put_rule(Name=name, EventBusName=stack.bus, EventPattern=json.dumps(pattern))
    events.put_targets(Rule=name, EventBusName=stack.bus, Targets=[{"Id": "queue", "Arn": arn}])
    seen: list[dict[str, Any]] = []

    def of(topic: str) -> list[dict[str, Any]]:
        while messages := deployment.receive(url):
            seen.extend(json.loads(message["Body"]) for message in messages)
        return [event for event in seen if event["detail"]["topic"] == topic]

    yield of
    events.remove_targets(Rule=name, EventBusName=stack.bus, Ids=["queue"])
    events.delete_rule(Name=name, EventBusName=stack.bus)


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["detail-type"] for event in events]


def test_a_registration_lives_and_the_bus_is_told(tracker, channel, topic, told):
    # Given a registration that is kept alive twice, moves and leaves
    first, second = channel(), channel()
    directory = tracker.directory
    for url in (first, first, first, second):
        directory.register(Register(topic, "one", url, {"colour": "red"}))
    assert [one.channel for one in directory.members(topic, {"colour": "red"})] == [second]
    assert not list(directory.members(topic, {"colour": "blue"}))
    assert directory.deregister(topic, "one")
    assert not directory.deregister(topic, "one")
    with pytest.raises(NotRegistered):
        directory.get(topic, "one")
    # Then the bus is told of each change once, and of no heartbeat
    events = eventually(lambda: told(topic) if len(told(topic)) >= 3 else None)
    assert kinds(events) == ["Instance Registered", "Instance Moved", "Instance Deregistered"]
    assert events[-1]["detail"]["reason"] == "deregistered"


def test_the_registrar_follows_instances_and_drops_the_dead(deployment, tracker, channel, topic, told):
    # Given an instance that an event registers
    url = channel()
    created = {
        "EventBusName": deployment.stack.bus,
        "Source": "fleet",
        "DetailType": names.INSTANCE_CREATED,
        "Detail": json.dumps({"topic": topic, "name": "one", "channel": url}),
    }
    deployment.stack.client("events").put_events(Entries=[created])
    eventually(lambda: list(tracker.directory.members(topic)))
    # When its queue is deleted, and the registrar comes by
    deployment.stack.client("sqs").delete_queue(QueueUrl=url)
    deployment.invoke("registrar")
    # Then it is dropped, and the bus is told why
    assert not list(tracker.directory.members(topic))
    events = eventually(lambda: told(topic) if len(told(topic)) >= 2 else None)
    assert kinds(events) == ["Instance Registered", "Instance Deregistered"]
    assert events[-1]["detail"]["reason"] == "queue gone"


def test_an_event_that_nobody_gets_is_counted_and_kept(deployment, tracker, channel, topic):
    # Given a route to a topic with one registration, and one to a topic of nobody
    since, clerk = time.time() - 1, channel()
    tracker.directory.register(Register(topic, "one", clerk))
    for kind, to in (("Sold", topic), ("Returned", f"nobody-{uuid.uuid4()}")):
        pattern = {"source": [topic], "detail-type": [kind]}
        tracker.routing.put(PutRoute(f"{kind.lower()}-{uuid.uuid4().hex[:8]}", pattern, to))
    deployment.renew("router")  # one that has run remembers the routes for a while
    # When an event comes for each, and one that no route wants
    for kind in ("Sold", "Returned", "Unheard"):
        tracker.routing.publish(PutEvent(topic, kind, {"kind": kind}))
    # Then the clerk has the first, and the queue for unrouted events has the others, unchanged
    kept: list[dict[str, Any]] = []

    def both() -> bool:
        received = deployment.receive(deployment.stack.outputs["UnroutedUrl"])
        events = (json.loads(message["Body"]) for message in received)
        kept.extend(event for event in events if event["source"] == topic)
        return len({event["id"] for event in kept}) >= 2

    eventually(both)
    assert {event["detail-type"] for event in kept} == {"Returned", "Unheard"}
    assert all(event["detail"]["kind"] == event["detail-type"] for event in kept)
    (message,) = eventually(lambda: deployment.receive(clerk))
    assert json.loads(message["Body"])["detail-type"] == "Sold"
    eventually(lambda: deployment.metrics("router", since).get(names.METRIC_UNROUTED, 0) >= 2)
