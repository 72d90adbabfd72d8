"""Scatters for people: objects, spans of time, and replies to the messages that came."""

import json
from datetime import timedelta
from typing import Any

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.scatters.service import ScatterService
from fanin.client.messages import ReceivedMessage
from fanin.client.scatters import ScatterCalls
from fanin.domain.marks import Failure
from fanin.domain.scatter import FailedRecipient, MissingRecipient, Recipient, Reply, Scatter
from fanin.domain.targets import Target, TargetType
from fanin.errors import InvalidRequest
from fanin.wire import patterns as wire

QUEUE = "https://sqs/car"


class Sqs:
    """A client that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, str]] = []

    def send_message(self, **message: str) -> None:
        self.sent.append(message)


@pytest.fixture
def memory() -> Memory:
    memory = Memory()
    memory.channels.queues[QUEUE] = []
    return memory


@pytest.fixture
def scatters(memory: Memory) -> ScatterService:
    return ScatterService(LedgerService(memory.ports()))


@pytest.fixture
def sqs() -> Sqs:
    return Sqs()


@pytest.fixture
def calls(scatters: ScatterService, sqs: Sqs) -> ScatterCalls:
    return ScatterCalls(scatters, lambda: sqs)


def message(memory: Memory, scatters: ScatterService, **attributes: str) -> ReceivedMessage:
    """The message that the one recipient gets."""
    (job,) = memory.jobs.waiting
    scatters.send(job["batch_id"], job["chunk"], job["wave"])
    (sent,) = memory.channels.queues[QUEUE]
    item = sent.attributes[names.ITEM_ATTRIBUTE]
    return ReceivedMessage("m", sent.body, item, {**sent.attributes, **attributes}, None, 1, {})


def test_what_is_given_to_start_reaches_the_service():
    started: list[tuple[Scatter, str | None]] = []

    class Service:
        def start(self, scatter: Scatter, *, key: str | None) -> None:
            started.append((scatter, key))

    calls = ScatterCalls(Service(), lambda: None)
    as_it_is: dict[str, Any] = {
        "where": {"colour": "red"},
        "type": "Report",
        "attributes": {"urgent": "yes"},
        "correlation_id": "mine",
        "max_retries": 2,
        "quorum": 0.5,
        "user_key": "week-47",
        "metadata": {"a": "b"},
    }
    target = {"type": "sqs", "queue_url": QUEUE}
    minute = timedelta(minutes=1)

    calls.start("cars", {"week": 47}, timeout=minute, on_end=[target], totals=["km"], key="k", **as_it_is)
    calls.start([QUEUE, Recipient("x", "https://sqs/x")], "now")

    (with_all, key), (plain, no_key) = started
    assert (key, no_key) == ("k", None)
    on_end = (Target(TargetType.SQS, queue_url=QUEUE),)
    assert with_all == Scatter(
        '{"week": 47}', topic="cars", timeout=60, on_end=on_end, totals=("km",), **as_it_is
    )
    assert plain == Scatter("now", [Recipient("", QUEUE), Recipient("x", "https://sqs/x")])


def test_people_write_objects_and_spans(calls, memory, scatters):
    started = calls.start([QUEUE], {"week": 47}, timeout=timedelta(minutes=1), quorum=1)

    got = message(memory, scatters)
    assert got.json() == {"week": 47}
    assert started.batch.deadline == started.batch.created_at + 60_000
    assert calls.reply(got, {"km": 1}).first
    again = calls.reply(got, {"km": 2})
    assert (again.first, again.different) == (False, True)
    assert calls.status(started.batch.batch_id).ready
    assert [reply.payload for reply in calls.replies(started.batch.batch_id)] == [{"km": 1}]


def test_a_reply_through_the_queue_is_the_body_of_a_request(calls, memory, scatters, sqs):
    calls.start([QUEUE], "x")
    got = message(memory, scatters, **{names.ATTRIBUTE_REPLY_TO: "https://sqs/replies"})

    calls.reply_later(got, {"km": 1})

    (sent,) = sqs.sent
    assert sent["QueueUrl"] == "https://sqs/replies"
    assert wire.REPLIES.decode(json.loads(sent["MessageBody"])) == (Reply(got.item or "", {"km": 1}),)


@pytest.mark.parametrize("payload", [{1, 2}, float("nan")])
def test_a_payload_that_json_does_not_have_is_refused(calls, payload):
    with pytest.raises(InvalidRequest, match="payload cannot be written as JSON"):
        calls.reply("1:g:0", payload)


def test_a_message_of_no_scatter_cannot_be_answered(calls):
    other = ReceivedMessage("m", "x", None, {}, None, 1, {})
    with pytest.raises(InvalidRequest, match="no item id"):
        calls.reply(other)
    with pytest.raises(InvalidRequest, match="names no queue"):
        calls.reply_later(other)


def test_missing_and_failed_recipients_are_read_page_by_page(memory, scatters, calls):
    # Given a scatter to 250 recipients of whom some failed
    batch_id = calls.start([Recipient(f"{n}", QUEUE) for n in range(250)], "x").batch.batch_id
    for job in list(memory.jobs.waiting):
        scatters.send(job["batch_id"], job["chunk"], job["wave"])
    items = [message.attributes[names.ITEM_ATTRIBUTE] for message in memory.channels.queues[QUEUE]]
    LedgerService(memory.ports()).mark([Failure(items[n], f"reason {n}") for n in range(0, 250, 2)])

    missing, failed = list(calls.missing_recipients(batch_id)), list(calls.failed_recipients(batch_id))

    assert missing == [MissingRecipient(n, f"{n}") for n in range(1, 250, 2)]
    assert failed == [FailedRecipient(n, f"{n}", f"reason {n}") for n in range(0, 250, 2)]
