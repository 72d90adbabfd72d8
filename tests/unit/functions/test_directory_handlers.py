"""The functions of the directory and of routing, from the event of their source to their effects."""

import json
from typing import Any

import pytest

from fanin import names
from fanin.adapters.dynamodb.rows import attribute
from fanin.adapters.memory import Memory
from fanin.app.ports.records import Record
from fanin.app.services import Services
from fanin.domain.directory import PutRoute, Register
from fanin.entry import bus, wiring
from tests.unit.entry.conftest import CONTEXT
from tests.unit.functions.conftest import Queue, load, metrics

EVENT = {"id": "e-1", "source": "shop", "detail-type": "Placed", "detail": {"kind": "order"}}


@pytest.fixture
def services(memory: Memory, monkeypatch) -> Services:
    services = Services(memory.ports())
    monkeypatch.setattr(wiring, "services", lambda: services)
    monkeypatch.setattr(wiring, "ports", lambda: services.ledger.ports)
    memory.channels.queues["q1"] = []
    return services


@pytest.fixture
def unrouted(monkeypatch) -> Queue:
    queue = Queue()
    monkeypatch.setattr(wiring, "unrouted_queue", lambda: queue)
    return queue


def image(record: Record) -> dict[str, Any]:
    return {
        "name": attribute(record.name),
        "value": attribute(json.dumps(record.value)),
        "version": attribute(record.version),
        "expires_at": attribute(record.expires_at),
    }


def streamed(room: str, old: Record | None, new: Record | None) -> dict[str, Any]:
    images = {"OldImage": old and image(old), "NewImage": new and image(new)}
    keys = {"topic": attribute(room), "name": attribute((new or old).name)}
    told = {key: value for key, value in images.items() if value}
    return {"eventID": "e", "eventSource": "aws:dynamodb", "dynamodb": {"Keys": keys, **told}}


def test_directory(services, memory, retries, capsys):
    # Given stream records of a registration, a heartbeat, a route, rows of other kinds, and a malformed
    # record
    for _ in range(2):
        services.directory.register(Register("cars", "a", "q1"))
    services.routing.put(PutRoute("orders", {"source": ["shop"]}, "cars"))
    memory.rules.patterns.clear()
    records = [streamed(*change) for change in memory.directory.changes]
    poison = {"eventID": "bad", "eventSource": "aws:dynamodb", "dynamodb": {}}
    # When the function gets it
    answer = load("directory").handler({"Records": [*records, poison]}, CONTEXT)
    # Then there is one event, the rule exists, and the malformed record is parked
    assert answer == {"batchItemFailures": []}
    assert [event.detail_type for event in memory.events.published] == [names.INSTANCE_REGISTERED]
    assert memory.rules.patterns == {"orders": {"source": ["shop"]}}
    assert retries.sent == [poison]
    assert metrics(capsys) == {names.METRIC_PARKED: [1.0]}


def test_registrar_that_could_not_check_everything_fails_at_its_end(services, memory, capsys):
    # Given a row that nobody can read, before one whose lease is over
    services.directory.register(Register("cars", "b", "q1", lease=60))
    memory.directory.put("topic/cars", "a", {}, expires_at=2**40)
    memory.clock.advance(120_000)

    with pytest.raises(bus.Unchecked, match="1 registrations or topics"):
        load("registrar").handler({"source": "aws.events", "detail-type": "Scheduled Event"}, CONTEXT)

    assert not list(services.directory.members("cars"))
    assert metrics(capsys) == {names.METRIC_DROPPED: [1.0]}


def test_registrar_hears_of_instances(services, retries, capsys):
    # Given a new instance, one whose queue lacks the channel tag, and one without a name
    details = [
        {"topic": "cars", "name": "a", "channel": "q1"},
        {"topic": "cars", "name": "b", "channel": "elsewhere"},
        {"topic": "cars"},
    ]
    events = [{"detail-type": names.INSTANCE_CREATED, "detail": detail} for detail in details]
    # When their events arrive
    for event in events:
        load("registrar").handler(event, CONTEXT)
    # Then the first is registered, and the others are parked and counted
    assert [one.name for one in services.directory.members("cars")] == ["a"]
    assert retries.sent == events[1:]
    assert metrics(capsys)[names.METRIC_PARKED] == [1.0]
    # And another event removes it
    load("registrar").handler({"detail-type": names.INSTANCE_DESTROYED, "detail": details[0]}, CONTEXT)
    assert not list(services.directory.members("cars"))


def test_router(services, memory, unrouted, capsys):
    # Given a route to a topic with one registration
    services.directory.register(Register("cars", "a", "q1"))
    services.routing.put(PutRoute("orders", {"source": ["shop"]}, "cars"))
    handler = load("router").handler
    # When the rule of the route brings an event, and the rule of all events the same one
    handler({"route": "orders", "event": EVENT}, CONTEXT)
    assert metrics(capsys) == {names.METRIC_ROUTED: [1.0]}
    handler(EVENT, CONTEXT)
    # Then it is sent once
    assert len(memory.channels.queues["q1"]) == 1
    assert not unrouted.sent
    # And an event that matches no route, or that no queue takes, is kept unchanged
    stray = {**EVENT, "source": "other"}
    handler(stray, CONTEXT)
    memory.channels.queues.clear()
    handler({"route": "orders", "event": EVENT}, CONTEXT)
    assert unrouted.sent == [stray, EVENT]
    assert metrics(capsys) == {names.METRIC_UNROUTED: [1.0], names.METRIC_REFUSED: [1.0]}


def test_router_without_a_queue_for_the_unrouted(services, monkeypatch, capsys):
    monkeypatch.setattr(wiring, "unrouted_queue", lambda: None)
    load("router").handler(EVENT, CONTEXT)
    assert metrics(capsys) == {names.METRIC_UNROUTED: [1.0]}
