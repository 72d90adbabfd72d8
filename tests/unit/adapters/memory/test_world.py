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


def test_every_event_gets_an_id_of_the_bus() -> None:
    memory = Memory()
    event = Event("8.complete", "Batch Completed", {}, 5)

    assert len({memory.events.publish(event) for _ in range(3)}) == 3


def test_the_ports_are_those_of_this_world() -> None:
    memory = Memory(tree=Tree(width=2))
    ports = memory.ports(Defaults(lifetime=77))

    ports.words.clear([Clear(WordKey(7, 0, 0), 0b11, 1)])

    assert memory.words.finished == [WordKey(7, 0, 0)]
    assert (ports.defaults.lifetime, ports.tree) == (77, memory.tree)
    shared = {field.name for field in fields(Ports)} - {"defaults"}
    assert all(getattr(ports, name) is getattr(memory, name) for name in shared)


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
