"""Scatters over HTTPS, against scripted answers."""

from __future__ import annotations

import json

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
from fanin.domain.scatter import (
    ClaimCheckRequest,
    Recipient,
    Reply,
    Scatter,
)
from fanin.errors import CorrelationIdAlive, ServiceUnavailable
from fanin.wire import scatters as wire
from tests.unit.client.https.test_ledger import URL, Script, ok, problem
from tests.unit.client.test_scatters import QUEUE, message


@pytest.fixture
def memory() -> Memory:
    memory = Memory()
    memory.channels.queues[QUEUE] = []
    return memory


@pytest.fixture
def scatters(memory: Memory) -> ScatterService:
    return ScatterService(LedgerService(memory.ports()))


def api(script: Script) -> HttpsApi:
    return HttpsApi(URL, sign=unsigned, transport=script, attempts=3, backoff=Backoff(sleep=lambda _: None))


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


def test_a_living_correlation_id_is_told_as_such() -> None:
    with pytest.raises(CorrelationIdAlive):
        HttpsScatters(api(Script(problem(409, "correlation-id-alive")))).start(Scatter("x", topic="t"))


def test_scatters_are_reached_as_their_ledger_is() -> None:
    assert isinstance(HttpsServices(api(Script())).scatters, HttpsScatters)
    assert isinstance(Services(Memory().ports()).scatters, ScatterService)
