"""Claims on queues: one buffer at a time, released at the end, and no obstacle to whoever tries again."""

from __future__ import annotations

import pytest

from fanin.app.buffers.queue_claims import QueueClaims
from fanin.app.buffers.records import GRAVE, BufferRecords
from fanin.errors import Throttled
from tests.lost_answers import LostAnswers
from tests.unit.app.conftest import Crash, World

QUEUE = "https://mine"


@pytest.fixture
def claims(world: World) -> QueueClaims:
    return QueueClaims(world.ports, BufferRecords(world.ports))


def hold_and_die(world: World, claims: QueueClaims, name: str) -> None:
    world.crash_at("directory.delete", "before")
    with pytest.raises(Crash), claims.claimed(QUEUE, name):
        pass


def test_a_claim_keeps_others_away_until_it_is_released(claims: QueueClaims) -> None:
    with claims.claimed(QUEUE, "jobs"):
        with pytest.raises(Throttled, match="jobs is being defined"), claims.claimed(QUEUE, "others"):
            pass
        with claims.claimed("https://another", "others"):
            pass

    with claims.claimed(QUEUE, "others"):
        pass


def test_a_claim_is_released_after_an_error(claims: QueueClaims) -> None:
    with pytest.raises(ValueError, match="x"), claims.claimed(QUEUE, "jobs"):
        raise ValueError("x")

    with claims.claimed(QUEUE, "others"):
        pass


def test_whoever_died_holds_up_others_for_an_hour_and_itself_not_at_all(
    world: World, claims: QueueClaims
) -> None:
    # Given a process that dies with a claim
    hold_and_die(world, claims, "jobs")

    # Then others wait until it expires
    world.clock.advance(GRAVE * 1000 - 1000)
    with pytest.raises(Throttled), claims.claimed(QUEUE, "others"):
        pass
    world.clock.advance(1000)
    with claims.claimed(QUEUE, "others"):
        pass

    # But a repeat for the same buffer does not
    hold_and_die(world, claims, "jobs")
    with claims.claimed(QUEUE, "jobs"):
        pass
    with claims.claimed(QUEUE, "others"):
        pass


def test_a_claim_that_was_renewed_is_not_released_by_the_first_who_had_it(
    world: World, claims: QueueClaims
) -> None:
    # Given two calls that define the same buffer, of which the first ends first
    first, second = claims.claimed(QUEUE, "jobs"), claims.claimed(QUEUE, "jobs")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)

    # Then the claim of the second still holds
    with pytest.raises(Throttled), claims.claimed(QUEUE, "others"):
        pass
    second.__exit__(None, None, None)
    with claims.claimed(QUEUE, "others"):
        pass


@pytest.mark.parametrize("call", ["directory.put", "directory.delete"])
def test_a_claim_whose_answer_was_lost_is_held_and_released(
    world: World, claims: QueueClaims, call: str
) -> None:
    LostAnswers(world.memory).lose(call, lambda: None)

    with claims.claimed(QUEUE, "jobs"), pytest.raises(Throttled), claims.claimed(QUEUE, "others"):
        pass

    with claims.claimed(QUEUE, "others"):
        pass


def test_a_claim_that_is_released_between_two_tries_is_taken_anew(world: World, claims: QueueClaims) -> None:
    # Given a claim of the same buffer, which is released when this process has just seen it
    hold_and_die(world, claims, "jobs")
    put = world.memory.directory.put
    tries = []

    def released_in_between(*args: object, if_version: int, **named: object) -> object:
        tries.append(if_version)
        if len(tries) == 2:
            world.memory.directory.delete(args[0], args[1], if_version=if_version)  # type: ignore[arg-type]
        return put(*args, if_version=if_version, **named)  # type: ignore[arg-type]

    world.memory.directory.put = released_in_between  # type: ignore[assignment, method-assign]

    # When it claims the queue
    with claims.claimed(QUEUE, "jobs"):
        pass

    # Then it takes the place that is free, at its third try
    assert tries[0] == tries[2] == 0
    assert len(tries) == 3
