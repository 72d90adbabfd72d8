"""Scatters over HTTPS: against scripted answers, and as they are directly."""

import json

import pytest

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.app.scatters.service import ScatterService
from fanin.app.services import Services
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import unsigned
from fanin.domain.scatter import Scatter
from fanin.errors import ServiceUnavailable
from fanin.wire import patterns as wire
from tests.unit.client.https.conftest import URL, Script, ok

QUEUE = "https://sqs/car"


@pytest.fixture(autouse=True)
def queue(memory: Memory) -> None:
    memory.channels.queues[QUEUE] = []


@pytest.fixture
def scatters(direct: Services) -> ScatterService:
    return direct.scatters


def api(script: Script) -> HttpsApi:
    return HttpsApi(URL, sign=unsigned, transport=script, attempts=3, backoff=Backoff(sleep=lambda _: None))


@pytest.mark.parametrize("key", [None, "week 47"])
def test_a_start_is_repeated_under_the_same_key_when_its_answer_is_lost(scatters, key):
    answer = wire.SCATTERED.encode(scatters.start(Scatter("x", topic="t")))
    script = Script(ServiceUnavailable("lost"), ok(json.loads(json.dumps(answer))))

    HttpsServices(api(script)).scatters.start(Scatter("x", topic="t"), key=key)

    first, second = (request.headers[names.IDEMPOTENCY_HEADER] for request in script.requests)
    assert first == second == ((key and "week%2047") or first)
    assert len(first) >= 8 or key
