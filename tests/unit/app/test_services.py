"""The use cases of one process, put together."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import Memory
from fanin.app.services import Services, patterns
from fanin.domain.batch import Kind, State
from fanin.domain.buffer import Outcome
from fanin.domain.directory import Register
from fanin.domain.frames import OpenFrame, Ticket
from fanin.domain.scatter import Recipient, Scatter
from fanin.errors import ChannelRefused


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def services(memory: Memory) -> Services:
    return Services(memory.ports())


@pytest.mark.parametrize("name", ["ledger", "scatters", "frames", "buffers", "directory", "routing"])
def test_a_service_is_made_once(services: Services, name: str) -> None:
    assert getattr(services, name) is getattr(services, name)


def test_to_make_them_touches_no_store(memory: Memory, services: Services) -> None:
    for name in ("ledger", "scatters", "frames", "buffers", "directory", "routing"):
        getattr(services, name)

    assert not memory.accesses.reads
    assert not memory.accesses.writes
    assert not memory.accesses.sends


def test_patterns_that_have_a_say_are_those() -> None:
    kinds = patterns(Memory().ports())

    assert (set(kinds.ended), set(kinds.due), set(kinds.idle)) == (
        {Kind.FRAME, Kind.SCATTER},
        {Kind.SCATTER},
        {Kind.FRAME},
    )


def test_the_ledger_knows_what_the_patterns_want_of_their_batches(memory: Memory, services: Services) -> None:
    # Given a frame that is complete, and a scatter whose deadline has come
    memory.channels.queues["q"] = []
    frame = services.frames.open(OpenFrame(1))
    (claim,) = services.frames.claim([Ticket(frame.frame_id, 0)])
    services.ledger.ack([claim.item])
    scattered = services.scatters.start(Scatter("x", [Recipient("a", "q")], timeout=10))
    memory.clock.advance(10_000)  # type: ignore[attr-defined]

    # When the ledger ends and postpones them
    services.ledger.announce(memory.batches.read([frame.frame_id])[frame.frame_id])
    row = services.ledger.meet_deadline(scattered.batch.batch_id)

    # Then both are handled as their patterns say
    assert memory.events.published[-1].detail_type == "Frame Completed"
    assert row is not None
    assert (row.state, row.retries) == (State.CLOSED, 1)


def test_all_patterns_stand_on_one_ledger(services: Services) -> None:
    services.buffers.define("jobs", 1)
    assert services.buffers.put("jobs", ["a"]).outcome is Outcome.WAITING

    (batch,) = services.ledger.list(State.OPEN).batches
    services.ledger.cancel(batch.batch_id)

    assert services.buffers.status("jobs").draining


def test_routing_stands_on_the_same_ports_as_the_directory(memory: Memory, services: Services) -> None:
    with pytest.raises(ChannelRefused):
        services.directory.register(Register("cars", "a", "q"))
    memory.channels.queues["q"] = []
    services.directory.register(Register("cars", "a", "q"))

    assert services.routing._directory is services.directory
