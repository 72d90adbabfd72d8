"""Clock, randomness, alarms and the bus in memory, and all of it put together."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from fanin.adapters.memory import Memory, SeededRandom
from fanin.app.ports import Defaults, Ports
from fanin.app.ports.events import Event
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.tree import Tree
from fanin.errors import InvalidRequest


def test_alarms_ring_once_when_due() -> None:
    memory = Memory()
    memory.timers.set(3, 300)
    memory.timers.set(1, 100)
    memory.timers.set(2, 999)
    memory.timers.set(2, 200)
    memory.timers.set(4, 100)
    memory.timers.clear(4)
    memory.timers.clear(5)

    assert memory.timers.ring(99) == []
    assert memory.timers.ring(200) == [1, 2]
    assert memory.timers.ring(1000) == [3]


def test_randomness_is_that_of_its_seed() -> None:
    one, same, other = SeededRandom(1), SeededRandom(1), SeededRandom(2)

    draws = [(random.bits(12), random.bytes(16)) for random in (one, same, other)]

    assert draws[0] == draws[1] != draws[2]
    assert 0 <= draws[0][0] < 2**12
    assert len(draws[0][1]) == 16


def test_alarms_at_one_time_ring_in_the_order_of_their_batches() -> None:
    memory = Memory()
    for batch_id in (9, 2, 5):
        memory.timers.set(batch_id, 100)

    assert memory.timers.ring(100) == [2, 5, 9]


def test_the_next_alarm_is_the_earliest_that_is_still_set() -> None:
    memory = Memory()
    assert memory.timers.next_at() is None

    memory.timers.set(1, 100)
    memory.timers.set(2, 200)
    memory.timers.set(1, 300)
    assert memory.timers.next_at() == 200

    memory.timers.clear(2)
    assert memory.timers.next_at() == 300


def test_every_event_gets_an_id_of_the_bus() -> None:
    memory = Memory()
    event = Event("8.complete", "Batch Completed", {}, 5)

    assert len({memory.events.publish(event) for _ in range(3)}) == 3


def test_alarms_and_events_are_counted_as_handed_over() -> None:
    memory = Memory()
    memory.timers.set(1, 100)
    memory.timers.clear(1)
    memory.events.publish(Event("e", "t", {}, 5))

    assert memory.accesses.sends == {"timers.set": 1, "timers.clear": 1, "events.publish": 1}


def test_the_ports_are_those_of_this_world() -> None:
    memory = Memory(tree=Tree(width=2))
    ports = memory.ports(Defaults(lifetime=77))

    ports.words.clear([Clear(WordKey(7, 0, 0), 0b11, 1)])

    assert memory.words.finished == [WordKey(7, 0, 0)]
    assert (ports.defaults.lifetime, ports.tree) == (77, memory.tree)
    shared = {field.name for field in fields(Ports)} - {"defaults"}
    assert all(getattr(ports, name) is getattr(memory, name) for name in shared)


def test_worlds_share_nothing() -> None:
    one, other = Memory(), Memory()

    one.timers.set(1, 100)
    one.records.put("71", "a", {}, expires_at=one.clock.now())

    assert (other.timers.alarms, other.accesses.writes) == ({}, {})
    assert other.records.read("71", ["a"]) == {}


@pytest.mark.parametrize(
    "pattern", [{}, {"source": "shop"}, {"source": []}, {"detail": {"n": [{"soundex": "x"}]}}]
)
def test_the_memory_refuses_what_it_does_not_know(pattern: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        Memory().rules.put("orders", pattern)


def test_a_refused_pattern_leaves_the_rule_that_is_there() -> None:
    memory = Memory()
    memory.rules.put("orders", {"source": ["shop"]})

    with pytest.raises(InvalidRequest):
        memory.rules.put("orders", {"source": []})

    assert memory.rules.patterns == {"orders": {"source": ["shop"]}}
