"""No request reads many rows: every route that reads is tried on a batch of a billion items."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from fanin.adapters.memory import Memory
from fanin.app.buffers.records import NAMESPACE as BUFFERS
from fanin.app.directory.routing import NAMESPACE as ROUTES_OF_EVENTS
from fanin.app.directory.service import TOPIC_PREFIX
from fanin.app.ports.parts import FailureRow
from fanin.app.services import Services
from fanin.domain import limits
from fanin.domain.batch import Batch, OnFailure, OpenBatch, State
from fanin.domain.frames import OpenFrame
from fanin.domain.ids import issue
from fanin.domain.marks import WEIGHT, Failure
from fanin.domain.scatter import Recipient, Scatter
from fanin.entry.http.application import application
from fanin.entry.http.route import HttpRoute
from fanin.entry.http.table import ROUTES
from fanin.names import API_ROOT
from tests.unit.entry.conftest import Answer, Client

BILLION = 10**9
APART = 97 * 64
"""So far apart are failed items: each in a word of its own, and most of these below words of their own."""
FAILED = 3_000
AT_ONCE = limits.MAX_MARKS // WEIGHT
"""Failures in a request."""
QUEUE = "https://sqs/cars"

MORE = {"getScatter": 2 * limits.MAX_RECIPIENTS // 64}
"""Routes that may read more: a scatter has at most 100,000 recipients, and counts them exactly."""

OPENED: Mapping[str, Mapping[str, Any]] = {
    "missing items": {},
    "failed items": {"on_failure": OnFailure.DONE},
    "held items": {"on_failure": OnFailure.HOLD},
    "totals": {"totals": ("rows",)},
}


@dataclass
class Service:
    """The service in memory, which counts rows as DynamoDB does: also each row of a listing."""

    memory: Memory
    listed: int = 0

    def __post_init__(self) -> None:
        for store, name, rows_of in (
            (self.memory.parts, "failures", lambda found: found[0]),
            (self.memory.parts, "notes_between", lambda found: found),
            (self.memory.parts, "sent", lambda found: found[0]),
            (self.memory.parts, "retries_from", lambda found: found),
            (self.memory.batches, "page", lambda found: found.batches),  # the entries of the index
            (self.memory.batches, "page_of_user_key", lambda found: found.batches),
            (self.memory.records, "page", lambda found: found.records),
            (self.memory.directory, "page", lambda found: found.records),
        ):
            setattr(store, name, self._counting(getattr(store, name), rows_of))

    def _counting(self, read: Callable[..., Any], rows_of: Callable[[Any], Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            found = read(*args, **options)
            self.listed += max(0, len(rows_of(found)) - 1)
            return found

        return counted

    @property
    def services(self) -> Services:
        """A process that has cached nothing yet."""
        return Services(self.memory.ports())

    @property
    def rows(self) -> int:
        return self.memory.accesses.reads.total() + self.listed

    def batch(self, **options: Any) -> Batch:
        """A batch of a billion, with failed or held items far apart; of its other items, none is done."""
        ledger = self.services.ledger
        batch = ledger.open(OpenBatch(results=True, **options))
        ledger.add(batch.batch_id, BILLION)
        batch = ledger.close(batch.batch_id)
        if "on_failure" in options:
            block = issue(batch.batch_id, 0, BILLION, batch.salt)
            failures = [Failure(f"{block.prefix}:{n * APART}", f"no price {n}") for n in range(FAILED)]
            for at in range(0, FAILED, AT_ONCE):
                ledger.mark(failures[at : at + AT_ONCE]).whole()
        return batch


@pytest.fixture(scope="module", params=OPENED)
def fan_out(request: pytest.FixtureRequest) -> tuple[Service, Batch]:
    service = Service(Memory())
    return service, service.batch(**OPENED[request.param])


def asked(
    service: Service, route: HttpRoute, path: str, body: Any = None, **query: Any
) -> tuple[Answer, int]:
    """The answer to a request, and how many rows it has read."""
    call, before = Client(application(lambda: service.services)), service.rows
    answer = call(route.method, path, body, **query)
    return answer, service.rows - before


OF_A_BATCH = [
    route
    for route in ROUTES
    if route.path.startswith(f"{API_ROOT}/batches/{{batch_id}}")
    and (route.method == "GET" or route.action)
    and route.operation not in {"closeBatch", "cancelBatch", "removeBatch"}  # one write, and one word a level
    and route.operation != "redriveBatch"  # its dry run counts every failure, for 20 seconds at most
]
BODIES: Mapping[str, Any] = {"releaseItems": {}, "changeLimits": {"stall_after": 60}}
MOST: Mapping[str, Mapping[str, Any]] = {
    "getBatch": {"exact": "true"},
    "verifyBatch": {"repair": "false"},
    "findKey": {"key_of_item": "a"},
}


@pytest.mark.parametrize("route", OF_A_BATCH, ids=lambda route: route.operation)
def test_a_request_reads_few_rows_of_a_batch(fan_out, route):
    service, batch = fan_out
    path = route.path.format(batch_id=batch.batch_id, ordinal=APART)
    pages = {"limit": limits.MAX_PAGE} if "limit" in route.optional else {}

    answer, rows = asked(
        service, route, path, BODIES.get(route.operation), **MOST.get(route.operation, {}), **pages
    )

    refused = {"getFailure": 404, "findKey": 404, "releaseItems": 400, "redeliverTargets": 400}
    assert answer.status in {200, refused.get(route.operation)}
    assert rows <= limits.MAX_ROWS
    assert len(answer.text) < 1_000_000


@pytest.mark.parametrize("state", ["open", "cancelled", "closed"])
@pytest.mark.parametrize("operation", ["listBatches", "expireBatches"])
def test_a_request_reads_few_rows_of_many_batches(state, operation):
    # Given more batches than one call can look at, each with a billion items
    service = Service(Memory())
    for _ in range(400):
        batch = service.services.ledger.open(OpenBatch(on_failure=OnFailure.HOLD))
        service.services.ledger.add(batch.batch_id, BILLION)
        {"open": lambda _: None, "closed": service.services.ledger.close}.get(
            state, service.services.ledger.cancel
        )(batch.batch_id)
    route = next(route for route in ROUTES if route.operation == operation)
    query = {"listBatches": {"limit": 1_000}, "expireBatches": {"idle_since": "2100-01-01T00:00:00Z"}}[
        operation
    ]
    # When the pages are read to the end
    pages: list[int] = []
    cursor: dict[str, str] = {}
    count = 0
    while True:
        answer, rows = asked(service, route, route.path, state=state, **query, **cursor)
        pages.append(rows)
        found = answer.json["batches"]
        count += found if isinstance(found, int) else len(found)
        if answer.json["cursor"] is None:
            break
        cursor = {"cursor": answer.json["cursor"]}
    # Then none of them has read more rows than any call may, and all batches were found
    assert len(pages) > 1
    assert max(pages) <= limits.MAX_ROWS
    assert count == 400
    assert (
        state != "closed"
        or operation == "listBatches"
        or service.services.ledger.list(State.ORPHANED).batches
    )


def test_a_listing_of_what_needs_attention_reads_what_is_wrong_and_few_rows():
    # Given a hundred batches with trouble, and four times as many without
    service = Service(Memory())
    ledger = service.services.ledger
    for number in range(500):
        group = ledger.add(ledger.open(OpenBatch(on_failure=OnFailure.HOLD)).batch_id, BILLION)
        if number % 5 == 0:
            ledger.mark([Failure(f"{group.prefix}:{n * 10**6}", "no") for n in range(50)]).whole()
    route = next(route for route in ROUTES if route.operation == "listAttention")
    cursor: dict[str, str] = {}
    found, counts = 0, {}
    # When all that needs attention is listed
    while True:
        answer, rows = asked(service, route, route.path, limit=1_000, **cursor)
        assert rows <= limits.MAX_ROWS
        found += len(answer.json["batches"])
        counts = answer.json["counts"]
        if answer.json["cursor"] is None:
            break
        cursor = {"cursor": answer.json["cursor"]}

    assert (found, counts) == (100, {"held": 100})


SCATTERS = [route for route in ROUTES if route.path.startswith(f"{API_ROOT}/scatters/")]


@pytest.fixture(scope="module")
def scattered() -> tuple[Service, Batch]:
    """A scatter as large as one can be, in which few have replied and some have failed."""
    service = Service(Memory())
    service.memory.channels.queues[QUEUE] = []
    services = service.services
    scatter = Scatter("x", [Recipient(f"car {n}", QUEUE) for n in range(limits.MAX_RECIPIENTS)])
    batch = services.scatters.start(scatter).batch
    block = issue(batch.batch_id, 0, batch.items, batch.salt)
    services.ledger.mark([Failure(f"{block.prefix}:{n}", "no") for n in range(0, 99_000, 1_000)]).whole()
    return service, batch


@pytest.mark.parametrize("route", SCATTERS, ids=lambda route: route.operation)
def test_a_request_reads_few_rows_of_a_scatter(scattered, route):
    service, batch = scattered
    pages = {"limit": limits.MAX_REPLIES} if "limit" in route.optional else {}
    answer, rows = asked(service, route, route.path.format(batch_id=batch.batch_id), **pages)

    assert answer.status == 200
    assert rows <= MORE.get(route.operation, limits.MAX_ROWS)


@pytest.mark.parametrize("totals", [(), ("rows",)])
def test_a_request_reads_few_rows_of_a_frame(totals):
    service = Service(Memory())
    frame = service.services.frames.open(OpenFrame(size=BILLION, totals=totals))
    route = next(route for route in ROUTES if route.operation == "getFrame")

    answer, rows = asked(service, route, route.path.format(frame_id=frame.frame_id), limit=1_000)

    assert answer.json["cursor"] is not None
    assert rows <= limits.MAX_ROWS


def test_a_listing_of_records_has_at_most_so_many_rows():
    service = Service(Memory())
    for n in range(limits.MAX_ROWS + 100):
        for namespace in (TOPIC_PREFIX + "cars", BUFFERS, ROUTES_OF_EVENTS):
            service.memory.directory.put(namespace, f"{n}", {}, expires_at=2**40)
    for route in ROUTES:
        if route.operation in {"listTopic", "listBuffers", "listRoutes"}:
            answer, rows = asked(service, route, route.path.format(topic="cars"), limit=1_000)
            assert answer.status == 200
            assert rows <= limits.MAX_ROWS


def test_every_route_that_reads_is_tried_here():
    tried = {"listBatches", "listAttention", "getFrame", "listTopic", "listBuffers", "listRoutes"}
    tried |= {route.operation for route in (*OF_A_BATCH, *SCATTERS)}
    one_row = {"countBatches", "getBuffer", "getRegistration", "getRoute", "getDocument", "getV1Document"}
    of_carlyle = {route.operation for route in ROUTES if not route.path.startswith((API_ROOT, "/openapi"))}
    assert {route.operation for route in ROUTES if route.method == "GET"} <= tried | one_row | of_carlyle


def test_notes_without_failures_do_not_add_rows():
    """A note whose item was marked done first is read, and does not count: pages stay short, and end."""
    service = Service(Memory())
    batch = service.batch()
    notes = [FailureRow(n * APART, f"{n}", "no", failed_at=1) for n in range(2_000)]
    service.memory.parts.put_failures(batch.batch_id, notes, expires_at=batch.expires_at)
    route = next(route for route in ROUTES if route.operation == "listErrors")
    cursor: dict[str, str] = {}
    calls = 0
    while True:
        answer, rows = asked(service, route, route.path.format(batch_id=batch.batch_id), **cursor)
        calls += 1
        assert rows <= limits.MAX_ROWS
        assert answer.json["errors"] == []
        if answer.json["cursor"] is None:
            break
        cursor = {"cursor": answer.json["cursor"]}
    assert 2_000 // 250 <= calls <= 2_000 // 100
