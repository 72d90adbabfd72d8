"""One face, two implementations: over ports and over HTTPS, ``Fanin`` has the same calls.

A call that is added to a Protocol of ``fanin.app.api`` and forgotten on one side fails here.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app import api
from fanin.app.api import Fanin
from fanin.app.diagnosis.service import stall_event
from fanin.app.ports import Defaults
from fanin.app.ports.queues import Figures, QueueReport
from fanin.app.services import Services
from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import unsigned
from fanin.domain.batch import OpenBatch
from fanin.domain.diagnosis import SentItems
from fanin.domain.directory import Register
from fanin.domain.frames import OpenFrame
from tests.unit.app.conftest import parameters

OVER = {
    "ports": lambda: Services(Memory().ports()),
    "https": lambda: HttpsServices(HttpsApi("https://api.example.com", sign=unsigned)),
}
FACES = {
    name: get_type_hints(face.fget)["return"]
    for name, face in vars(Fanin).items()
    if isinstance(face, property)
}


def calls(protocol: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, call in vars(protocol).items():
        if inspect.isfunction(call) and not name.startswith("_"):
            yield name, call


CALLS = [
    pytest.param(service, name, call, id=f"{service}.{name}")
    for service, protocol in FACES.items()
    for name, call in calls(protocol)
]


def test_there_are_eight_services():
    services = "ledger diagnostics redrives scatters frames buffers directory routing"
    assert set(FACES) == set(services.split())
    protocols = {
        protocol
        for protocol in vars(api).values()
        if inspect.isclass(protocol) and protocol.__module__.startswith(api.__name__)
    }
    assert protocols == {Fanin, *FACES.values()}
    assert len(CALLS) > 30


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize(("service", "name", "call"), CALLS)
def test_both_sides_have_every_call_with_the_same_parameters(over, service, name, call):
    implementation = getattr(getattr(OVER[over](), service), name)
    assert parameters(implementation) == parameters(call)


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("service", FACES)
def test_a_service_is_made_once(over, service):
    services = OVER[over]()
    assert getattr(services, service) is getattr(services, service)


def test_https_has_no_call_that_the_protocols_lack():
    """What only HTTPS can do cannot be tried in memory."""
    services = OVER["https"]()
    for service, protocol in FACES.items():
        assert {name for name, _ in calls(type(getattr(services, service)))} <= {
            name for name, _ in calls(protocol)
        }


class TestFollowDirectory:
    """What follows from a change of the directory table, of which the stream tells."""

    def test_a_route_that_was_stored_gets_its_rule(self):
        # Given the row of a route, whose writer died before it made the rule
        memory = Memory()
        value = {"pattern": {"source": ["shop"]}, "topic": "desk", "policy": "all"}
        row, _ = memory.directory.put(
            "routes", "orders", {**value, "attributes": {}, "since": 0}, expires_at=2**40
        )

        Services(memory.ports()).follow_directory("routes", "orders", None, row)

        assert memory.rules.patterns == {"orders": {"source": ["shop"]}}
        assert memory.events.published == []

    def test_a_registration_that_was_stored_is_announced_under_its_topic(self):
        memory = Memory()
        memory.channels.queues["q1"] = []
        services = Services(memory.ports())
        services.directory.register(Register("cars", "a", "q1"))
        row = memory.directory.read("topic/cars", ["a"])["a"]

        services.follow_directory("topic/cars", "a", None, row)

        (event,) = memory.events.published
        assert (event.detail_type, event.detail["topic"]) == (names.INSTANCE_REGISTERED, "cars")
        assert memory.rules.patterns == {}

    @pytest.mark.parametrize("namespace", ["topics", "registrar", "correlation", "/buffers"])
    def test_from_any_other_row_nothing_follows(self, namespace):
        memory = Memory()
        row, _ = memory.directory.put(namespace, "a", {}, expires_at=2**40)

        Services(memory.ports()).follow_directory(namespace, "a", None, row)

        assert (memory.events.published, memory.rules.patterns) == ([], {})


def test_the_patterns_stand_on_one_ledger_of_the_ports():
    memory = Memory()
    services = Services(memory.ports())
    frame = services.frames.open(OpenFrame(2))
    assert services.ledger.status(frame.frame_id).batch.items == 2


def test_no_two_deployments_send_an_event_of_the_same_id():
    # Given a batch that ended, one that stalled, and an instance, in a deployment with a place of its own
    memory = Memory()
    memory.channels.queues["q"] = []
    ports = memory.ports(Defaults(event_prefix="123/eu/shop/"))
    services = Services(ports)
    ended, stalled = (services.ledger.open(OpenBatch()).batch_id for _ in range(2))
    services.ledger.add(stalled, 1)
    services.diagnostics.note_sent(stalled, SentItems("https://sqs/1/q", 0, 1))
    quiet = Figures(3, 0, 0, retention=345_600)
    memory.inspection.reports["https://sqs/1/q"] = QueueReport("", figures=quiet, consumers=(), troubles=())
    services.ledger.cancel(ended)
    services.directory.register(Register("cars", "one", "q"))

    read = ports.batches.read([ended, stalled])
    services.ledger.announce(read[ended])
    stall = stall_event(ports, read[stalled])
    for namespace, old, new in memory.directory.changes:
        if namespace == "topic/cars":
            services.directory.announce("cars", old, new)
    # Then their ids begin with the place
    assert stall is not None
    ids = [event.id for event in (*memory.events.published, stall)]
    assert [one.rpartition("/")[0] for one in ids] == ["123/eu/shop", "123/eu/shop/cars", "123/eu/shop"]
