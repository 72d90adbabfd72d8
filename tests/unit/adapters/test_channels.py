"""Queues of others, on moto: only those that carry the tag, and what cannot be sent is told."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.adapters.channels import SqsChannels, SqsQueue
from fanin.app.ports.queues import Offered, Outgoing
from fanin.domain.failures import MessageAttribute
from fanin.errors import ChannelRefused, InvalidRequest, NotConfigured, RequestTooLarge, Throttled

MISSING = "https://sqs.eu-west-1.amazonaws.com/123456789012/missing"


def channels(client: Any) -> SqsChannels:
    return SqsChannels(lambda: client, backoff=Backoff(tries=2, sleep=lambda _: None))


@pytest.fixture
def sqs() -> Iterator[Any]:
    with mock_aws():
        yield boto3.client("sqs")


def tagged(sqs: Any, name: str = "vehicle-1") -> str:
    return sqs.create_queue(QueueName=name, tags={names.CHANNEL_TAG: ""})["QueueUrl"]


def received(sqs: Any, url: str) -> list[Any]:
    found: list[Any] = []
    while messages := sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    ).get("Messages"):
        found += messages
    return found


def test_a_tagged_queue_is_found_by_url_and_by_arn(sqs):
    url = tagged(sqs)
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]

    assert channels(sqs).resolve(url) == url
    assert channels(sqs).resolve(arn) == url


def test_a_queue_without_the_tag_or_none_at_all_is_refused(sqs):
    bare = sqs.create_queue(QueueName="bare")["QueueUrl"]

    for channel in (bare, MISSING, "arn:aws:sqs:eu-west-1:123456789012:missing"):
        with pytest.raises(ChannelRefused, match=names.CHANNEL_TAG):
            channels(sqs).resolve(channel)


def test_a_fifo_queue_is_refused_since_nothing_can_be_sent_to_it(sqs):
    attributes = {"FifoQueue": "true"}
    made = sqs.create_queue(QueueName="q.fifo", Attributes=attributes, tags={names.CHANNEL_TAG: ""})

    with pytest.raises(ChannelRefused, match="is a FIFO queue, which cannot be a channel"):
        channels(sqs).resolve(made["QueueUrl"])


def test_a_queue_whose_tag_is_not_seen_yet_is_looked_at_once_more():
    # Given a queue that was made just now
    client, waits = boto3.client("sqs"), []
    with Stubber(client) as stubber:
        stubber.add_client_error("list_queue_tags", "AWS.SimpleQueueService.NonExistentQueue")
        stubber.add_response("list_queue_tags", {"Tags": {names.CHANNEL_TAG: ""}})

        assert SqsChannels(lambda: client, backoff=Backoff(sleep=waits.append)).resolve(MISSING) == MISSING
        assert waits == [1.0]
        # When somebody looks at a queue that was found before, Then one refusal is enough
        stubber.add_response("list_queue_tags", {})
        with pytest.raises(ChannelRefused):
            channels(client).resolve(MISSING, new=False)
        stubber.assert_no_pending_responses()


def test_a_queue_that_cannot_be_looked_at_is_neither_there_nor_gone():
    client = boto3.client("sqs")
    with Stubber(client) as stubber:
        stubber.add_client_error("list_queue_tags", "InvalidParameterValue")
        with pytest.raises(InvalidRequest, match="InvalidParameterValue"):
            channels(client).resolve(MISSING)
        stubber.add_client_error("list_queue_tags", "ThrottlingException")
        with pytest.raises(Throttled):
            channels(client).resolve(MISSING)


def test_messages_go_to_their_queues_with_their_attributes(sqs):
    # Given messages for two queues, more than one request takes, some of them large
    one, two = tagged(sqs, "one"), tagged(sqs, "two")
    messages = [
        Outgoing(one if n % 2 else two, f"{n}" + "x" * (60_000 if n < 8 else 0), {"kind": "trip", "none": ""})
        for n in range(30)
    ]
    # When they are sent
    refused = channels(sqs).send(messages)
    # Then each is there, and an empty attribute is left out
    assert refused == [None] * 30
    assert sorted(m["Body"] for m in received(sqs, one)) == sorted(m.body for m in messages[1::2])
    arrived = received(sqs, two)
    assert sorted(m["Body"] for m in arrived) == sorted(m.body for m in messages[::2])
    assert [list(m["MessageAttributes"]) for m in arrived] == [["kind"]] * 15


def test_what_a_queue_will_never_take_is_told_and_holds_up_nobody(sqs):
    url = tagged(sqs)

    refused = channels(sqs).send([Outgoing(MISSING, "a", {}), Outgoing(url, "b", {})])

    assert refused[0] is not None
    assert "NonExistentQueue" in refused[0]
    assert refused[1] is None
    assert [m["Body"] for m in received(sqs, url)] == ["b"]


def answers(*failures: dict[str, Any]) -> Any:
    """A client whose requests fail for some messages, one answer after the other."""
    client = boto3.client("sqs")
    stubber = Stubber(client)
    for failed in failures:
        stubber.add_response("send_message_batch", {"Successful": [], "Failed": [failed]})
    stubber.activate()
    return client


def test_a_queue_that_keeps_failing_is_throttled():
    busy = {"Id": "0", "SenderFault": False, "Code": "InternalError"}

    with pytest.raises(Throttled, match="1 messages"):
        channels(answers(busy, busy)).send([Outgoing(MISSING, "a", {})])


def test_a_message_refused_for_good_is_not_sent_again():
    bad = {"Id": "0", "SenderFault": True, "Code": "InvalidMessageContents", "Message": "bad"}

    assert channels(answers(bad)).send([Outgoing(MISSING, "a", {})]) == ["bad"]


def test_only_what_was_not_taken_is_sent_again():
    client = boto3.client("sqs")
    taken = {"MessageId": "m", "MD5OfMessageBody": "x"}
    with Stubber(client) as stubber:
        stubber.add_response(
            "send_message_batch",
            {
                "Successful": [{"Id": "0", **taken}],
                "Failed": [{"Id": "1", "SenderFault": False, "Code": "InternalError"}],
            },
        )
        again = {"Id": "1", "MessageBody": "b", "MessageAttributes": {}}
        stubber.add_response(
            "send_message_batch",
            {"Successful": [{"Id": "1", **taken}], "Failed": []},
            {"QueueUrl": MISSING, "Entries": [again]},
        )

        assert channels(client).send([Outgoing(MISSING, "a", {}), Outgoing(MISSING, "b", {})]) == [None, None]
        stubber.assert_no_pending_responses()


@pytest.mark.parametrize(
    "code",
    [
        "AccessDenied",
        "AWS.SimpleQueueService.NonExistentQueue",
        "KMS.AccessDeniedException",
        "NobodyHasListedThis",
    ],
)
def test_a_queue_that_refuses_for_any_reason_of_its_own_is_refused_for_each_of_its_messages(code):
    client = boto3.client("sqs")
    with Stubber(client) as stubber:
        stubber.add_client_error("send_message_batch", code)

        refused = channels(client).send([Outgoing(MISSING, body, {}) for body in "ab"])

    assert refused == [f"the queue refuses messages ({code})"] * 2


@pytest.mark.parametrize(
    ("code", "status", "tries"),
    [
        ("ThrottlingException", 400, 2),
        ("KMS.ThrottlingException", 400, 2),
        ("InternalError", 500, 1),
        ("ExpiredToken", 403, 1),
        ("InvalidClientTokenId", 403, 1),
    ],
)
def test_what_is_temporary_or_about_this_process_lets_messages_wait(code, status, tries):
    client = boto3.client("sqs")
    with Stubber(client) as stubber:
        for _ in range(tries):
            stubber.add_client_error("send_message_batch", code, http_status_code=status)

        offered = channels(client).offer([Outgoing(MISSING, body, {}) for body in "ab"])

        stubber.assert_no_pending_responses()
    assert offered.refused == {}
    assert offered.waiting.keys() == {0, 1}


def test_an_entry_that_is_throttled_waits_whosever_fault_that_is_said_to_be():
    busy = {"Id": "0", "SenderFault": True, "Code": "RequestThrottled", "Message": "slower"}

    assert channels(answers(busy, busy)).offer([Outgoing(MISSING, "a", {})]).waiting == {0: "slower"}


def test_a_message_of_which_the_answer_says_nothing_was_not_sent():
    client = boto3.client("sqs")
    with Stubber(client) as stubber:
        for _ in range(2):
            stubber.add_response("send_message_batch", {"Successful": [], "Failed": []})

        assert channels(client).offer([Outgoing(MISSING, "a", {})]).waiting.keys() == {0}


def test_what_nobody_foresaw_at_one_queue_spares_the_others(sqs):
    url = tagged(sqs)
    send = sqs.send_message_batch

    def fail(QueueUrl: str, Entries: Any) -> Any:  # noqa: N803
        if QueueUrl == MISSING:
            raise ValueError("surprise")
        return send(QueueUrl=QueueUrl, Entries=Entries)

    sqs.send_message_batch = fail

    offered = channels(sqs).offer([Outgoing(MISSING, "a", {}), Outgoing(url, "b", {})])

    assert (offered.refused, offered.waiting) == ({}, {0: "surprise"})
    assert [m["Body"] for m in received(sqs, url)] == ["b"]


def test_a_request_is_measured_in_bytes_as_sqs_does(sqs):
    """Three bytes a character: two such messages are over 256 KB together, though not in characters."""
    url = tagged(sqs)
    messages = [Outgoing(url, "€" * 40_000, {"kind": "€" * 10_000}) for _ in range(2)]

    assert channels(sqs).offer(messages) == Offered({}, {})


def redriven(sqs: Any, name: str) -> str:
    attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
    return sqs.create_queue(QueueName=name, Attributes=attributes, tags={names.TRACKED_TAG: ""})["QueueUrl"]


def test_a_queue_with_the_tag_for_redrives_takes_messages_again_and_no_others(sqs):
    url, plain = redriven(sqs, "work.fifo"), redriven(sqs, "work")

    assert channels(sqs).resolve(url, again=True) == url
    with pytest.raises(ChannelRefused, match=names.CHANNEL_TAG):
        channels(sqs).resolve(plain)
    with pytest.raises(ChannelRefused, match=names.TRACKED_TAG):
        channels(sqs).resolve(MISSING, again=True)


def test_a_fifo_queue_gets_groups_in_order_and_drops_repeats(sqs):
    url = redriven(sqs, "work.fifo")
    messages = [Outgoing(url, f"{n}", {}, "g", f"once-{n}") for n in range(25)]

    for _ in range(2):
        assert channels(sqs).offer(messages) == Offered({}, {})

    answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])
    assert [message["Body"] for message in answer["Messages"]] == [f"{n}" for n in range(10)]
    assert {message["Attributes"]["MessageGroupId"] for message in answer["Messages"]} == {"g"}
    state = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert (
        int(state["ApproximateNumberOfMessages"]) + int(state["ApproximateNumberOfMessagesNotVisible"]) == 25
    )


def test_attributes_keep_their_types(sqs):
    url = tagged(sqs)
    attributes = {"a": "text", "b": MessageAttribute("Binary", b"\x00"), "c": MessageAttribute("Number", "7")}

    channels(sqs).offer([Outgoing(url, "x", attributes)])

    (message,) = received(sqs, url)
    found = message["MessageAttributes"]
    assert found["a"]["StringValue"] == "text"
    assert found["b"]["BinaryValue"] == b"\x00"
    assert (found["c"]["DataType"], found["c"]["StringValue"]) == ("Number", "7")


def test_one_message_at_fault_spares_those_of_its_request(sqs):
    # Given a message with an attribute of a type that SQS does not have, which fails its whole request
    url = tagged(sqs)
    bad = Outgoing(url, "bad", {"a": MessageAttribute("Odd", "x")})

    offered = channels(sqs).offer([Outgoing(url, "one", {}), bad, Outgoing(url, "two", {})])

    assert (set(offered.refused), dict(offered.waiting)) == ({1}, {})
    assert sorted(message["Body"] for message in received(sqs, url)) == ["one", "two"]


def own(client: Any, url: str = MISSING) -> SqsQueue:
    """A queue of the service."""
    return SqsQueue(lambda: url, lambda: client, backoff=Backoff(tries=2, sleep=lambda _: None))


class TestOwnQueue:
    @pytest.mark.parametrize("count", [0, 1, 23])
    def test_every_object_arrives(self, sqs, count):
        url = tagged(sqs)

        own(sqs, url).send({"number": number, "text": "☂"} for number in range(count))

        found = sorted(json.loads(message["Body"])["number"] for message in received(sqs, url))
        assert found == list(range(count))

    def test_an_object_over_the_limit_is_refused(self, sqs):
        with pytest.raises(RequestTooLarge, match="split"):
            own(sqs, tagged(sqs)).send([{"pad": "x" * 262_144}])

    def test_a_large_object_that_is_not_ascii_is_sent(self, sqs):
        """ASCII escapes would make it three times as large, over the limit."""
        url = tagged(sqs)

        own(sqs, url).send([{"text": "é" * 100_000}])

        assert [json.loads(message["Body"]) for message in received(sqs, url)] == [{"text": "é" * 100_000}]

    def test_an_object_that_the_queue_will_never_take_is_an_error(self):
        bad = {"Id": "0", "SenderFault": True, "Code": "InvalidMessageContents", "Message": "bad"}

        with pytest.raises(RequestTooLarge, match="bad"):
            own(answers(bad)).send([{"n": 1}])

    def test_a_queue_that_is_not_there_is_a_matter_of_settings(self, sqs):
        with pytest.raises(NotConfigured):
            own(sqs).send([{"n": 1}])
