"""Deliveries: work that is pending comes out, all other messages are void."""

from __future__ import annotations

import pytest

from tests.unit.app.buffers.conftest import DAY_MS, Crash, World


def test_the_work_of_a_taker_that_dies_comes_again(world: World) -> None:
    world.buffers.put("jobs", ["a"])
    (lost,) = world.buffers.take("jobs", visibility_timeout=60)
    assert world.payloads() == []

    world.clock.advance(60_000)
    (again,) = world.buffers.take("jobs")
    world.buffers.done("jobs", [again.receipt])

    assert again.payload == "a"
    assert world.buffers.done("jobs", [lost.receipt]).late == 1


def test_work_that_is_done_is_not_taken_again_though_its_message_stayed(world: World) -> None:
    # Given a taker that dies between marking its work done and removing the message
    world.buffers.put("jobs", ["a", "b"])
    (work,) = world.buffers.take("jobs")

    def die(call: str, _moment: str) -> None:
        if call == "queues.remove":
            raise Crash

    world.on_step = die
    with pytest.raises(Crash):
        world.buffers.done("jobs", [work.receipt])
    world.on_step = lambda *_: None

    # When the message comes again, then nobody gets it, and it is gone
    world.clock.advance(DAY_MS)
    assert world.payloads() == ["b"]
    assert world.buffers.status("jobs").pending == 1
