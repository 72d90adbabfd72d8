"""All services over HTTPS: each route is reached by a call; names, members, and answers that are lost."""

import inspect
import json
from typing import Any

import pytest

from fanin import names
from fanin.app import api
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsBuffers, HttpsServices
from fanin.client.https.transport import unsigned
from fanin.domain.batch import ChangeLimits, OnFailure, OpenBatch, State
from fanin.domain.claim_checks import ClaimCheckRequest
from fanin.domain.diagnosis import Retry, SentItems
from fanin.domain.directory import PutEvent, PutRoute, Register
from fanin.domain.frames import OpenFrame, Ticket
from fanin.domain.ids import ItemKey
from fanin.domain.marks import Failure
from fanin.domain.redrives import OrdinalRange, Redrive, Selection
from fanin.domain.scatter import Recipient, Reply, Scatter
from fanin.entry.http.table import ROUTES
from fanin.errors import FaninError, InvalidRequest, OutcomeUnknown, ServiceUnavailable, Throttled
from fanin.names import API_ROOT
from fanin.wire import patterns as wire
from fanin.wire.problems import DOCUMENT
from tests.unit.client.https.conftest import URL, Gateway, Script, https, ok, problem

QUEUE = "https://sqs/q"


def route_of(method: str, path: str) -> str:
    (operation,) = [
        route.operation
        for route in ROUTES
        if route.method == method and route.matches(API_ROOT + path.partition("?")[0])
    ]
    return operation


def use_batches(fanin: HttpsServices) -> None:
    """Make every call about batches and their failures."""
    batch = fanin.ledger.open(OpenBatch())
    group = fanin.ledger.add(batch.batch_id, 3)
    fanin.ledger.mark([group[0]]).whole()
    fanin.ledger.mark([Failure(group[1], "r")]).whole()
    fanin.ledger.status(batch.batch_id)
    fanin.ledger.missing(batch.batch_id)
    fanin.ledger.picture(batch.batch_id)
    fanin.ledger.release(fanin.ledger.open(OpenBatch(on_failure=OnFailure.HOLD)).batch_id, Selection(("x",)))
    fanin.ledger.failures(batch.batch_id)
    fanin.ledger.failure(batch.batch_id, 1)
    fanin.ledger.errors(batch.batch_id)
    fanin.ledger.verify(batch.batch_id)
    fanin.ledger.list(State.OPEN)
    fanin.diagnostics.note_sent(batch.batch_id, SentItems(QUEUE, 0, 3))
    fanin.diagnostics.note_retries([Retry(group[2], 2, "no")])
    fanin.diagnostics.why(batch.batch_id)
    fanin.diagnostics.attention()
    fanin.ledger.counts()
    fanin.ledger.change(batch.batch_id, ChangeLimits(stall_after=60))
    fanin.ledger.close(batch.batch_id)
    fanin.ledger.cancel(batch.batch_id)
    fanin.ledger.targets(batch.batch_id)
    fanin.ledger.redeliver(batch.batch_id)
    fanin.redrives.redrive(batch.batch_id, Redrive(("x",), (OrdinalRange(0, 5),), QUEUE, dry_run=True))
    fanin.redrives.redrives(batch.batch_id, limit=5)
    keyed = fanin.ledger.open(OpenBatch()).batch_id
    fanin.ledger.add_keys(keyed, [ItemKey("a")])
    fanin.ledger.find_key(keyed, key_of_item="a")
    fanin.ledger.results(fanin.ledger.open(OpenBatch(results=True)).batch_id)
    fanin.ledger.remove(batch.batch_id)
    fanin.ledger.expire(State.OPEN, idle_since=0)


def use_everything(fanin: HttpsServices) -> None:
    """Make every call there is."""
    use_batches(fanin)
    started = fanin.scatters.start(Scatter("x", (Recipient("a", QUEUE),), quorum=1), key="week 47")
    fanin.scatters.status(started.batch.batch_id)
    fanin.scatters.replies(started.batch.batch_id, limit=7)
    fanin.scatters.missing_recipients(started.batch.batch_id)
    fanin.scatters.failed_recipients(started.batch.batch_id)
    group = fanin.ledger.add(fanin.ledger.open(OpenBatch()).batch_id, 1)
    for call in (
        lambda: fanin.scatters.reply([Reply(group[0], 1)]),
        lambda: fanin.scatters.claim(ClaimCheckRequest(group[0], 5)),
    ):
        with pytest.raises(FaninError):  # a batch that is no scatter takes no replies
            call()

    frame = fanin.frames.open(OpenFrame(1, source="orders", ttl=90, user_key="k"))
    fanin.frames.status(frame.frame_id)
    fanin.frames.claim([Ticket(frame.frame_id, 0)], lease=5)

    fanin.buffers.define("jobs", 9, queue=QUEUE)
    fanin.buffers.list()
    fanin.buffers.put("jobs", ["a"])
    work = fanin.buffers.take("jobs", wait=0)
    fanin.buffers.done("jobs", [one.receipt for one in work])
    fanin.buffers.status("jobs")
    fanin.buffers.delete("jobs")

    fanin.directory.register(Register("cars", "a", QUEUE, {"colour": "red"}, 60))
    fanin.directory.get("cars", "a")
    fanin.directory.page("cars", attributes={"colour": "red"})
    fanin.directory.deregister("cars", "a")
    fanin.routing.put(PutRoute("orders", {"source": ["shop"]}, "cars"))
    fanin.routing.get("orders")
    fanin.routing.page()
    fanin.routing.publish(PutEvent("shop", "Placed", {}))
    fanin.routing.delete("orders")


def test_every_route_is_reached_by_a_call(over_https, gateway, memory):
    """A route that is added to the API and not to the library fails here."""
    memory.channels.queues[QUEUE] = []
    use_everything(over_https)
    ours = {
        route.operation
        for route in ROUTES
        if route.path.startswith(f"{API_ROOT}/") and route.answer is not DOCUMENT
    }
    assert {route_of(method, path) for method, path in gateway.asked} == ours


class Noted:
    """Services that note each call with all of its arguments, and its answer.

    Args:
        services: the services.
    """

    def __init__(self, services: Any) -> None:
        self.calls: list[tuple[str, str, dict[str, Any], str]] = []
        self._services = services

    def __getattr__(self, name: str) -> Any:
        service, protocol = getattr(self._services, name), vars(api)[name.title()]

        def noting(call: str) -> Any:
            signature = inspect.signature(getattr(protocol, call))

            def made(*args: Any, **options: Any) -> Any:
                bound = signature.bind(None, *args, **options)
                bound.apply_defaults()
                given = {
                    name: tuple(value) if isinstance(value, list) else value
                    for name, value in bound.arguments.items()
                    if name not in ("self", "key", "caller")
                }
                answer = getattr(service, call)(*args, **options)
                told = repr(tuple(answer) if isinstance(answer, list) else answer)
                # The bookkeeping of a batch stays in the service.
                self.calls.append((name, call, given, "" if "Batch(" in told else told))
                return answer

            return made

        return type("Service", (), {"__getattr__": lambda _, call: noting(call)})()


def test_arguments_and_answers_cross_the_wire_as_they_are(memory, direct):
    memory.channels.queues[QUEUE] = []
    there = Noted(direct)
    here = Noted(https(Gateway(there)))

    use_everything(here)

    asked = [call for call in here.calls if call[1] != "take"]  # which the client does on its own
    assert len(asked) > 40
    assert asked == [call for call in there.calls if call[1] not in ("take", "poll")]


def test_no_request_is_made_before_a_call():
    script = Script()
    services = https(script)
    assert isinstance(services.buffers, HttpsBuffers)
    made = {type(getattr(services, name)) for name in ("ledger", "frames", "directory", "routing")}
    assert (len(made), script.requests) == (4, [])


@pytest.mark.parametrize("name", ["", "..", "a/../jobs?x", "a?x", "\ud800", "é"])
def test_what_is_no_name_is_refused_in_words(services, name):
    for call in (
        services.routing.get,
        services.routing.delete,
        services.buffers.status,
        services.buffers.take,
    ):
        with pytest.raises(InvalidRequest):
            call(name)


def test_what_cannot_be_sent_in_a_query_is_refused_in_words(over_https):
    with pytest.raises(InvalidRequest, match="half of a surrogate pair"):
        over_https.ledger.list(user_key="\ud800")


def test_members_are_read_a_page_at_a_time(over_https, gateway, memory, monkeypatch):
    memory.channels.queues["q1"] = []
    monkeypatch.setattr("fanin.app.api.patterns.MAX_PAGE", 2)
    for name in ("a", "b", "c", "d"):
        over_https.directory.register(Register("cars", name, "q1", {"even": str(name in "bd")}))
    gateway.requests.clear()

    members = [one.name for one in over_https.directory.members("cars")]

    assert members == ["a", "b", "c", "d"]
    assert len(gateway.requests) >= 2
    assert all("limit=2" in path for _, path in gateway.asked)
    assert [one.name for one in over_https.directory.members("cars", {"even": "True"})] == ["b", "d"]


def test_an_event_whose_answer_was_lost_is_not_sent_again(over_https, gateway, memory):
    gateway.lost = 1
    with pytest.raises(OutcomeUnknown):
        over_https.routing.publish(PutEvent("shop", "Placed", {}))
    assert (len(gateway.requests), len(memory.events.published)) == (1, 1)


@pytest.mark.parametrize(("name", "part"), [("ü b", "%C3%BC%20b"), ("a%2Fb", "a%252Fb")])
def test_a_name_is_one_part_of_the_path(over_https, gateway, name, part):
    with pytest.raises(InvalidRequest):
        over_https.directory.get("cars", name)
    assert gateway.asked == [("GET", f"/directory/cars/{part}")]


@pytest.mark.parametrize("key", [None, "week 47"])
def test_a_start_is_repeated_under_the_same_key_when_its_answer_is_lost(direct, key):
    answer = wire.SCATTERED.encode(direct.scatters.start(Scatter("x", topic="t")))
    script = Script(ServiceUnavailable("lost"), ok(json.loads(json.dumps(answer))))

    https(script).scatters.start(Scatter("x", topic="t"), key=key)

    first, second = (request.headers[names.IDEMPOTENCY_HEADER] for request in script.requests)
    assert first == second
    assert first == "week%2047" if key else len(first) >= 8


def test_a_failed_attempt_is_noted_by_one_request_since_a_consumer_waits_for_it(waits):
    # Given a service that throttles, as when very many attempts at one batch fail at once
    script = Script(*[problem(503, "throttled", retry_after=20)] * 6)
    api = HttpsApi(URL, sign=unsigned, transport=script, backoff=waits.backoff)
    # When a consumer notes one of them
    with pytest.raises(Throttled):
        HttpsServices(api).diagnostics.note_retries([Retry("7:1:0", 2, "no", "work")])
    # Then it goes on at once: its function may have little time left
    assert len(script.requests) == 1
    assert waits.seconds == []
