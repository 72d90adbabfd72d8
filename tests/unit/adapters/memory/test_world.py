"""Clock, randomness, alarms and bus in memory."""

from __future__ import annotations

from dataclasses import fields

from fanin.adapters.memory import FixedClock, Memory, SeededRandom
from fanin.app.ports import Defaults
from fanin.app.ports.events import Event
from fanin.domain.tree import Tree


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


def test_the_bus_keeps_what_it_was_given() -> None:
    memory = Memory()
    event = Event("8.complete", "Batch Completed", {"a": 1}, 5)

    memory.events.publish(event)
    memory.events.publish(event)

    assert memory.events.published == [event, event]


def test_time_stands_until_told() -> None:
    clock = FixedClock(5)
    ports = Memory(clock=clock).ports()

    assert (ports.clock.now(), ports.clock.now()) == (5, 5)
    clock.advance(7)
    assert ports.clock.now() == 12


def test_randomness_is_that_of_its_seed() -> None:
    one, same, other = SeededRandom(1), SeededRandom(1), SeededRandom(2)

    draws = [(random.bits(12), random.bytes(16)) for random in (one, same, other)]

    assert draws[0] == draws[1] != draws[2]
    assert 0 <= draws[0][0] < 2**12
    assert len(draws[0][1]) == 16


def test_the_ports_are_those_of_one_world() -> None:
    memory = Memory(tree=Tree(4), random=SeededRandom(3))
    ports = memory.ports(Defaults(lifetime=60))

    assert (ports.tree, ports.random, ports.defaults.lifetime) == (Tree(4), memory.random, 60)
    for field in fields(ports):
        if hasattr(memory, field.name):
            assert getattr(ports, field.name) is getattr(memory, field.name)
    assert memory.ports().batches is ports.batches


def test_what_is_handed_over_is_counted_apart_from_rows() -> None:
    memory = Memory()
    memory.timers.set(1, 2)
    memory.timers.clear(1)
    memory.events.publish(Event("8.complete", "Batch Completed", {}, 5))

    assert memory.accesses.sends == {"timers.set": 1, "timers.clear": 1, "events.publish": 1}
    assert not memory.accesses.writes
