"""Scatters from the outside: over HTTPS against scripted answers, and for people."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.scatters.service import ScatterService
from fanin.app.services import Services
from fanin.client.https.api import HttpsApi
from fanin.client.https.scatters import HttpsScatters
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import unsigned
from fanin.client.messages import ReceivedMessage
from fanin.client.scatters import ScatterCalls
from fanin.domain.acks import Failure
from fanin.domain.scatter import (
    ClaimCheckRequest,
    FailedRecipient,
    MissingRecipient,
    Recipient,
    Reply,
    Scatter,
)
from fanin.errors import CorrelationIdAlive, InvalidRequest, ServiceUnavailable
from fanin.wire import scatters as wire
from tests.unit.client.https.test_ledger import URL, Script, ok, problem

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
    return ScatterCalls(scatters, lambda: sqs)  # type: ignore[arg-type,return-value]


def api(script: Script) -> HttpsApi:
    return HttpsApi(URL, sign=unsigned, transport=script, attempts=3, backoff=Backoff(sleep=lambda _: None))


def message(memory: Memory, scatters: ScatterService, **attributes: str) -> ReceivedMessage:
    """The message that the one recipient gets."""
    (job,) = memory.jobs.waiting
    scatters.send(job["batch_id"], job["chunk"], job["wave"])
    (sent,) = memory.channels.queues[QUEUE]
    item = sent.attributes[names.ITEM_ATTRIBUTE]
    return ReceivedMessage("m", sent.body, item, {**sent.attributes, **attributes}, None, 1, {})


def test_every_call_crosses_the_wire_and_back(memory: Memory, scatters: ScatterService) -> None:
    # Given what the service would answer
    started = scatters.start(Scatter("x", [Recipient("car", QUEUE)], quorum=0.5, metadata={"a": "b"}))
    batch_id, got = started.batch.batch_id, message(memory, scatters)
    claim = scatters.claim(ClaimCheckRequest(got.item or "", 5))
    receipts = scatters.reply([Reply(got.item or "", {"km": 1})])
    page = scatters.replies(batch_id)
    answers = [
        wire.SCATTERED.encode(started),
        wire.SCATTERED.encode(scatters.status(batch_id)),
        wire.CLAIM_CHECK.encode(claim),
        wire.REPLY_RECEIPTS.encode(receipts),
        wire.GATHERED.encode(page),
    ]
    script = Script(*(ok(json.loads(json.dumps(answer))) for answer in answers))
    client = HttpsScatters(api(script))
    # Then the client gives the same
    again = client.start(Scatter("x", topic="t"))
    assert (again.correlation_id, again.quorum, again.missing) == (started.correlation_id, 1, 1)
    assert client.status(batch_id).received == 1
    assert client.claim(ClaimCheckRequest(got.item or "", 5)) == claim
    assert client.reply([Reply(got.item or "", {"km": 1})]) == receipts
    assert client.replies(batch_id, limit=7) == page
    # And it asked for them by the API's paths
    assert [(r.method, r.url.removeprefix(f"{URL}/v1")) for r in script.requests] == [
        ("POST", "/scatters"),
        ("GET", f"/scatters/{batch_id}"),
        ("POST", "/claim-checks"),
        ("POST", "/replies"),
        ("GET", f"/scatters/{batch_id}/replies?limit=7"),
    ]


def test_a_request_reads_back_as_it_was_written() -> None:
    for request in (
        Scatter("x", (Recipient("a", QUEUE),), type="t", attributes={"k": "v"}, correlation_id="mine"),
        Scatter("x", topic="t", where={"k": "v"}, timeout=5, max_retries=0, quorum=3, user_key="u"),
    ):
        assert wire.SCATTER.decode(json.loads(json.dumps(wire.SCATTER.encode(request)))) == request


@pytest.mark.parametrize("key", [None, "week 47"])
def test_a_start_is_repeated_under_the_same_key_when_its_answer_is_lost(
    scatters: ScatterService, key: str | None
) -> None:
    answer = wire.SCATTERED.encode(scatters.start(Scatter("x", topic="t")))
    script = Script(ServiceUnavailable("lost"), ok(json.loads(json.dumps(answer))))

    HttpsScatters(api(script)).start(Scatter("x", topic="t"), key=key)

    first, second = (request.headers[names.IDEMPOTENCY_HEADER] for request in script.requests)
    assert first == second == (key or first)
    assert len(first) >= 8 or key


def test_a_key_of_people_reaches_the_service(calls: ScatterCalls) -> None:
    first, second = (calls.start([QUEUE], "x", key="mine") for _ in range(2))
    assert first.batch.batch_id == second.batch.batch_id


def test_a_living_correlation_id_is_told_as_such() -> None:
    with pytest.raises(CorrelationIdAlive):
        HttpsScatters(api(Script(problem(409, "correlation-id-alive")))).start(Scatter("x", topic="t"))


def test_people_write_objects_and_spans(
    calls: ScatterCalls, memory: Memory, scatters: ScatterService
) -> None:
    started = calls.start([QUEUE], {"week": 47}, timeout=timedelta(minutes=1), quorum=1)

    got = message(memory, scatters)
    assert got.json() == {"week": 47}
    assert started.batch.deadline == started.batch.created_at + 60_000
    assert calls.reply(got, {"km": 1}).first
    again = calls.reply(got, {"km": 2})
    assert (again.first, again.different) == (False, True)
    assert calls.status(started.batch.batch_id).ready
    assert [reply.payload for reply in calls.replies(started.batch.batch_id)] == [{"km": 1}]


def test_a_reply_through_the_queue_is_the_body_of_a_request(
    calls: ScatterCalls, memory: Memory, scatters: ScatterService, sqs: Sqs
) -> None:
    calls.start([QUEUE], "x")
    got = message(memory, scatters, **{names.ATTRIBUTE_REPLY_TO: "https://sqs/replies"})

    calls.reply_later(got, {"km": 1})

    (sent,) = sqs.sent
    assert sent["QueueUrl"] == "https://sqs/replies"
    assert wire.REPLIES.decode(json.loads(sent["MessageBody"])) == (Reply(got.item or "", {"km": 1}),)


def test_a_message_of_no_scatter_cannot_be_answered(calls: ScatterCalls) -> None:
    other = ReceivedMessage("m", "x", None, {}, None, 1, {})
    with pytest.raises(InvalidRequest, match="no item id"):
        calls.reply(other)
    with pytest.raises(InvalidRequest, match="names no queue"):
        calls.reply_later(other)


def test_scatters_are_reached_as_their_ledger_is() -> None:
    assert isinstance(HttpsServices(api(Script())).scatters, HttpsScatters)
    assert isinstance(Services(Memory().ports()).scatters, ScatterService)


def test_missing_and_failed_recipients_are_read_page_by_page(
    memory: Memory, scatters: ScatterService, calls: ScatterCalls
) -> None:
    # Given a scatter to 250 recipients of whom some failed
    batch_id = calls.start([Recipient(f"{n}", QUEUE) for n in range(250)], "x").batch.batch_id
    for job in list(memory.jobs.waiting):
        scatters.send(job["batch_id"], job["chunk"], job["wave"])
    items = [message.attributes[names.ITEM_ATTRIBUTE] for message in memory.channels.queues[QUEUE]]
    LedgerService(memory.ports()).fail([Failure(items[n], f"reason {n}") for n in range(0, 250, 2)])

    missing, failed = list(calls.missing_recipients(batch_id)), list(calls.failed_recipients(batch_id))

    assert missing == [MissingRecipient(n, f"{n}") for n in range(1, 250, 2)]
    assert failed == [FailedRecipient(n, f"{n}", f"reason {n}") for n in range(0, 250, 2)]
