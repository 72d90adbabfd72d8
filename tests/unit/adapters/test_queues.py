"""Queues of buffers in memory, on SQS in memory, and on moto: received, hidden, removed, made, deleted."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from fanin import names
from fanin.adapters.channels import SqsChannels
from fanin.adapters.memory import Accesses, FixedClock, Memory, SeededRandom
from fanin.adapters.memory.sqs import InMemorySqs, QueueStore
from fanin.adapters.queues import SqsQueues
from fanin.app.ports.queues import Channels, Outgoing, Queues
from fanin.errors import ChannelRefused, NotConfigured


class World:
    def __init__(self, queues: Queues, channels: Channels) -> None:
        self.queues = queues
        self.channels = channels
        self.url = queues.create("jobs", 7)

    def send(self, *bodies: str) -> None:
        messages = [Outgoing(self.url, body, {names.ITEM_ATTRIBUTE: f"item of {body}"}) for body in bodies]
        assert self.channels.send(messages) == [None] * len(bodies)

    def receive(self, **options: Any) -> Any:
        return self.queues.receive(self.url, **{"most": 10, "wait": 0, "visibility_timeout": None, **options})


@pytest.fixture(params=["memory", "sqs in memory", "sqs"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "memory":
        memory = Memory()
        yield World(memory.queues, memory.channels)
    elif request.param == "sqs in memory":
        client = InMemorySqs(QueueStore(FixedClock(), SeededRandom()), Accesses())
        yield World(SqsQueues(lambda: "fanin-buffer-", lambda: client), SqsChannels(lambda: client))
    else:
        with mock_aws():
            client = boto3.client("sqs")
            yield World(SqsQueues(lambda: "fanin-buffer-", lambda: client), SqsChannels(lambda: client))


def test_a_message_is_received_with_its_item_and_its_time(world):
    world.send("a ☂")
    (received,) = world.receive()
    assert (received.body, received.attributes) == ("a ☂", {names.ITEM_ATTRIBUTE: "item of a ☂"})
    assert received.sent_at > 1_700_000_000_000
    assert received.handle


def test_a_received_message_is_hidden_until_it_is_removed(world):
    world.send("a", "b")
    first = world.receive(visibility_timeout=600)
    assert sorted(one.body for one in first) == ["a", "b"]
    assert world.receive() == []
    assert world.queues.state(world.url).in_flight == 2

    world.queues.remove(world.url, [one.handle for one in first])
    world.queues.remove(world.url, [one.handle for one in first])

    assert world.queues.state(world.url).in_flight == 0


def test_no_more_are_received_than_were_asked_for(world):
    world.send(*"abcde")
    assert len(world.receive(most=3)) == 3


def test_many_handles_are_removed_in_groups(world):
    world.send(*"abcdefghijklm")
    handles = [one.handle for one in world.receive() + world.receive()]
    assert len(handles) == 13
    world.queues.remove(world.url, handles)
    assert world.queues.state(world.url).in_flight == 0


def test_a_queue_is_made_once_and_deleted_once(world):
    assert world.queues.create("jobs", 7) == world.url
    assert world.channels.resolve(world.url) == world.url  # it carries the tag
    world.queues.delete(world.url)
    world.queues.delete(world.url)
    for call in (world.receive, lambda: world.queues.state(world.url)):
        with pytest.raises(ChannelRefused):
            call()


@pytest.fixture
def sqs() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("sqs")


def test_a_queue_made_for_a_buffer_has_its_prefix_is_encrypted_and_keeps_messages_long(sqs):
    url = SqsQueues(lambda: "shop-buffer-", lambda: sqs).create("jobs", 7)
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert url.endswith("/shop-buffer-jobs-00000000000007")
    assert attributes["MessageRetentionPeriod"] == "864000"
    assert SqsQueues(lambda: "shop-buffer-", lambda: sqs).state(url).retention == 864_000


def test_a_queue_made_for_a_buffer_is_encrypted_with_the_key_that_the_deployment_has(sqs):
    key = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    asked: list[dict[str, Any]] = []
    sqs.meta.events.register(
        "provide-client-params.sqs.CreateQueue", lambda params, **_: asked.append(params)
    )
    SqsQueues(lambda: "p-", lambda: sqs, key=lambda: key).create("jobs", 7)
    (attributes,) = (params["Attributes"] for params in asked)
    assert attributes["KmsMasterKeyId"] == key
    # SQS refuses a queue with both kinds of encryption
    assert "SqsManagedSseEnabled" not in attributes


def test_a_queue_made_for_a_buffer_gives_up_messages_that_are_received_too_often(sqs):
    # Given a queue for dead letters
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    # When
    url = SqsQueues(lambda: "p-", lambda: sqs, dead_letters=lambda: arn).create("jobs", 7)
    # Then
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert json.loads(attributes["RedrivePolicy"]) == {"deadLetterTargetArn": arn, "maxReceiveCount": 10}


@pytest.mark.parametrize("repeated", [False, True])
def test_a_queue_made_for_a_buffer_refuses_plain_http(sqs, *, repeated):
    if repeated:  # the answer to the first request was lost
        days = {"MessageRetentionPeriod": "864000"}
        sqs.create_queue(QueueName="p-jobs-00000000000007", Attributes=days)
    url = SqsQueues(lambda: "p-", lambda: sqs).create("jobs", 7)
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    (statement,) = json.loads(attributes["Policy"])["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "sqs:*")
    assert statement["Resource"] == attributes["QueueArn"]
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_a_queue_on_an_emulator_takes_the_plain_http_that_made_it():
    client = boto3.client("sqs", endpoint_url="http://127.0.0.1:4566")
    with Stubber(client) as stubber:  # which has no answer for any other call
        stubber.add_response("create_queue", {"QueueUrl": "http://127.0.0.1:4566/0/p-jobs"})
        assert SqsQueues(lambda: "p-", lambda: client).create("jobs", 7).endswith("p-jobs")


def test_without_a_prefix_no_queue_is_made(sqs):
    def missing() -> str:
        raise NotConfigured("FANIN_BUFFER_PREFIX")

    with pytest.raises(NotConfigured, match="FANIN_BUFFER_PREFIX"):
        SqsQueues(missing, lambda: sqs).create("jobs", 7)


@pytest.mark.parametrize("prefix", ["f-buffer-", "f" * 40 + "-buffer-"])
def test_buffers_have_queues_of_their_own_whatever_their_names_and_births(sqs, prefix):
    # Given names that differ only at their ends, and the largest id of a batch
    queues = SqsQueues(lambda: prefix, lambda: sqs)
    buffers = [("x" * 47 + "a", 2**53 - 1), ("x" * 47 + "b", 2**53 - 2), ("x", 1), ("x", 2)]

    urls = [queues.create(name, born) for name, born in buffers]

    found = [url.rpartition("/")[2] for url in urls]
    assert len(set(found)) == 4
    assert all(name.startswith(prefix + "x") and len(name) <= 80 for name in found)


def test_a_prefix_that_leaves_no_room_is_refused(sqs):
    with pytest.raises(NotConfigured, match=r"FANIN_BUFFER_PREFIX has 58 characters.* at most 57"):
        SqsQueues(lambda: "f" * 58, lambda: sqs).create("jobs", 7)
    SqsQueues(lambda: "f" * 57, lambda: sqs).create("jobs", 7)
