"""Scatters over HTTPS: against scripted answers, and as they are directly."""

from __future__ import annotations

import json

import pytest

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.app.api import Fanin
from fanin.app.scatters.service import ScatterService
from fanin.app.services import Services
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import unsigned
from fanin.domain.claim_checks import ClaimCheckRequest
from fanin.domain.scatter import Recipient, Reply, Scatter
from fanin.errors import ServiceUnavailable
from fanin.wire import scatters as wire
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


def item_of(memory: Memory, scatters: ScatterService) -> str:
    """The item of the message that the one recipient gets."""
    (job,) = memory.jobs.waiting
    scatters.send(job["batch_id"], job["chunk"], job["wave"])
    (sent,) = memory.channels.queues[QUEUE]
    return sent.attributes[names.ITEM_ATTRIBUTE]


@pytest.mark.parametrize("key", [None, "week 47"])
def test_a_start_is_repeated_under_the_same_key_when_its_answer_is_lost(
    scatters: ScatterService, key: str | None
) -> None:
    answer = wire.SCATTERED.encode(scatters.start(Scatter("x", topic="t")))
    script = Script(ServiceUnavailable("lost"), ok(json.loads(json.dumps(answer))))

    HttpsServices(api(script)).scatters.start(Scatter("x", topic="t"), key=key)

    first, second = (request.headers[names.IDEMPOTENCY_HEADER] for request in script.requests)
    assert first == second == ((key and "week%2047") or first)
    assert len(first) >= 8 or key


def test_a_scatter_lives_the_same_life_over_the_api_and_on_the_stores(
    services: Fanin, memory: Memory, scatters: ScatterService
) -> None:
    # Given a scatter to one car
    started = services.scatters.start(Scatter("x", [Recipient("car", QUEUE)], quorum=1), key="week 47")
    batch_id = started.batch.batch_id
    assert (
        services.scatters.start(Scatter("x", [Recipient("car", QUEUE)], quorum=1), key="week 47") == started
    )

    # When it is given a place for a large reply, and then replies at once, twice
    item = item_of(memory, scatters)
    claim = services.scatters.claim(ClaimCheckRequest(item, 5))
    assert claim.key in claim.url
    replies = [Reply(item, {"km": 1, "note": None})]
    first, second = (services.scatters.reply(replies)[0] for _ in range(2))

    # Then the first counts
    assert (first.first, second.first, second.duplicate) == (True, False, True)
    assert (services.scatters.status(batch_id).received, services.scatters.status(batch_id).ready) == (
        1,
        True,
    )
    (reply,) = services.scatters.replies(batch_id, limit=7).replies
    assert (reply.ordinal, reply.name, reply.payload) == (0, "car", {"km": 1, "note": None})
