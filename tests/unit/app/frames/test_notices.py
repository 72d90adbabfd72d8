"""What senders are told about their frames, and the bus."""

from __future__ import annotations

import pytest

from fanin.domain.batch import State
from tests.unit.app.frames.conftest import CHANNEL, World


class TestNotices:
    def test_the_sender_and_the_bus_hear_of_a_complete_frame(self, world: World) -> None:
        frame = world.open(2)
        world.ack(frame, 0, 1)
        world.announce()

        (body,) = world.bodies()
        assert (body["type"], body["frame_id"]) == ("Complete Frame", frame.frame_id)
        assert world.told[0].attributes["fanin-type"] == "Complete Frame"
        (event,) = world.memory.events.published
        assert (event.detail_type, event.id) == ("Frame Completed", f"{frame.frame_id}.complete")

    def test_a_reply_channel_that_is_gone_keeps_nothing_up(self, world: World) -> None:
        frame = world.open(1)
        del world.memory.channels.queues[CHANNEL]
        world.ack(frame, 0)
        world.announce()

        assert len(world.memory.events.published) == 1


class TestStale:
    def test_is_asked_for_once_then_timed_out(self, world: World) -> None:
        # Given a frame of which something is missing, and a minute without progress
        frame = world.open(10)
        world.ack(frame, 0)
        world.clock.advance(60_001)

        # When the reaper comes, again at once, and a minute later
        first, second = world.process().reap(), world.process().reap()
        asked = world.bodies()
        world.clock.advance(60_001)
        last = world.process().reap()
        world.announce()

        # Then the sender was asked once, and the frame is given up
        assert [body["type"] for body in asked] == ["Repeat Requested"]
        assert asked[0]["missing"] == [[1, 10]]
        assert (first.timed_out, second.seen, last.timed_out, last.orphaned) == (0, 0, 1, 0)
        assert world.frames.status(frame.frame_id).state is State.TIMED_OUT
        assert world.bodies()[-1]["type"] == "Frame Ended"
        assert world.memory.events.published[0].detail_type == "Frame Timed Out"

    @pytest.mark.parametrize("after", [0, 1, 3_000, 50_000])
    def test_progress_ends_a_stall_and_the_next_one_is_asked_for_again(
        self, world: World, after: int
    ) -> None:
        frame = world.open(10)
        world.clock.advance(60_001)
        world.process().reap()
        # When an envelope is handled after the request
        world.clock.advance(after)
        world.ack(frame, 0)
        world.clock.advance(60_001)
        world.process().reap()

        # Then the frame lives on, and a second request was made
        assert [body["type"] for body in world.bodies()] == ["Repeat Requested"] * 2
        assert world.bodies()[1]["missing"] == [[1, 10]]
        assert world.frames.status(frame.frame_id).state is State.CLOSED

    def test_without_a_reply_channel_it_ends_all_the_same(self, world: World) -> None:
        frame = world.open(10, reply_to="")
        for _ in range(2):
            world.clock.advance(60_001)
            world.process().reap()
        assert world.frames.status(frame.frame_id).state is State.TIMED_OUT

    def test_at_the_end_of_its_lifetime_it_is_not_asked_for(self, world: World) -> None:
        world.open(10, ttl=30 * 86_400)
        world.clock.advance(30 * 86_400_000)
        assert world.process().reap().timed_out == 1
        assert world.bodies() == []
