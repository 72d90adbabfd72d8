"""What senders are told of their frames, and when a frame without progress is given up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fanin import names
from fanin.app.frames import notices
from fanin.app.frames.notices import FrameNotices
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.events import Event
from fanin.app.services import patterns
from fanin.domain import ids
from fanin.domain.batch import RETENTION, Batch, State
from fanin.domain.frames import OpenFrame, is_marked
from fanin.errors import AccessDenied, ServiceUnavailable, Throttled
from tests.unit.app.conftest import Crash, World

CHANNEL = "https://sqs/replies"
TTL = 60
STALE = TTL * 1_000 + 1


@pytest.fixture
def frames(world: World) -> FrameNotices:
    world.memory.channels.queues[CHANNEL] = []
    return FrameNotices(world.ports)


def opened(world: World, size: int = 10, ttl: int = TTL, reply_to: str = CHANNEL) -> Batch:
    """The batch of a frame."""
    return world.ledger.open(OpenFrame(size, "orders", "billing", reply_to, ttl, "day 7").batch())


def ack(world: World, frame: Batch, *indices: int) -> None:
    prefix = ids.issue(frame.batch_id, 0, frame.items, frame.salt).prefix
    world.ledger.ack([f"{prefix}:{index}" for index in indices])


def told(world: World) -> list[dict[str, Any]]:
    """The bodies of the messages on the reply channel."""
    return [json.loads(message.body) for message in world.memory.channels.queues[CHANNEL]]


def break_channel(world: World, error: Exception) -> None:
    """Let the next message to the channel fail."""

    def fail() -> None:
        raise error

    world.at("channels.send", "before", fail)


def event(batch: Batch, detail_type: str) -> Event:
    return Event(id=f"{batch.batch_id}.x", detail_type=detail_type, detail={"items": batch.items}, time=7)


class TestEnded:
    def test_a_complete_frame_is_told_to_its_sender(self, world: World, frames: FrameNotices) -> None:
        frame = opened(world, 2)
        ack(world, frame, 0, 1)

        frames.announced(world.row(frame))

        (message,) = world.memory.channels.queues[CHANNEL]
        assert json.loads(message.body) == {
            "type": "Complete Frame",
            "frame_id": frame.batch_id,
            "size": 2,
            "state": "complete",
        }
        assert message.attributes == {
            names.ATTRIBUTE_TYPE: "Complete Frame",
            names.ATTRIBUTE_CORRELATION: str(frame.batch_id),
        }

    @pytest.mark.parametrize("state", [State.TIMED_OUT, State.CANCELLED, State.ORPHANED])
    def test_any_other_end_is_told_with_its_state(
        self, world: World, frames: FrameNotices, state: State
    ) -> None:
        frame = opened(world)
        world.ports.batches.end(frame.batch_id, state, now=world.clock.at, sources=(State.CLOSED,))

        frames.announced(world.row(frame))

        (body,) = told(world)
        assert (body["type"], body["state"], body["size"]) == ("Frame Ended", state.value, 10)

    @pytest.mark.parametrize("end", ["Completed", "Timed Out", "Cancelled", "Orphaned"])
    def test_its_event_is_that_of_a_batch_under_another_name(
        self, world: World, frames: FrameNotices, end: str
    ) -> None:
        frame = opened(world)

        retold = frames.ended(world.ledger, frame, event(frame, f"Batch {end}"))

        assert retold == event(frame, f"Frame {end}")
        assert told(world) == []

    def test_an_end_that_is_told_again_is_told_the_same(self, world: World, frames: FrameNotices) -> None:
        frame = opened(world)
        world.ledger.cancel(frame.batch_id)

        for _ in range(2):
            frames.announced(world.row(frame))

        first, second = world.memory.channels.queues[CHANNEL]
        assert first == second

    @pytest.mark.parametrize("reply_to", ["", CHANNEL])
    def test_a_sender_who_cannot_be_reached_is_no_error(
        self, world: World, frames: FrameNotices, reply_to: str
    ) -> None:
        # Given a frame without a reply channel, or with one that is gone
        frame = opened(world, reply_to=reply_to)
        world.ledger.cancel(frame.batch_id)
        del world.memory.channels.queues[CHANNEL]

        frames.announced(world.row(frame))

        assert world.accesses.sends["channels.send"] == bool(reply_to)

    def test_a_channel_that_fails_keeps_the_event_from_nobody(self, world: World) -> None:
        frame = opened(world)
        world.ledger.cancel(frame.batch_id)
        break_channel(world, ValueError("the queue wants something else"))
        ledger = LedgerService(world.ports, patterns(world.ports))

        with pytest.raises(ValueError, match="wants something else"):
            ledger.announce(world.row(frame))

        assert [event.detail_type for event in world.memory.events.published] == ["Frame Cancelled"]


class TestIdle:
    def test_asks_the_sender_to_repeat_what_is_missing(self, world: World, frames: FrameNotices) -> None:
        frame = opened(world)
        ack(world, frame, 0, 4, 5)
        world.clock.advance(STALE)

        assert frames.idle(world.ledger, world.row(frame)) is None

        (message,) = world.memory.channels.queues[CHANNEL]
        assert json.loads(message.body) == {
            "type": "Repeat Requested",
            "frame_id": frame.batch_id,
            "size": 10,
            "missing": [[1, 4], [6, 10]],
            "more": False,
        }
        assert message.attributes[names.ATTRIBUTE_TYPE] == "Repeat Requested"

    def test_says_whether_more_is_missing_than_it_lists(
        self, world: World, frames: FrameNotices, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(notices, "LISTED", 2)
        more, all_of_it = opened(world), opened(world)
        ack(world, more, 1, 3)
        ack(world, all_of_it, 1)

        for frame in (more, all_of_it):
            frames.idle(world.ledger, world.row(frame))

        assert [(body["missing"], body["more"]) for body in told(world)] == [
            ([[0, 1], [2, 3]], True),
            ([[0, 1], [2, 10]], False),
        ]

    def test_spares_the_frame_for_another_ttl(self, world: World, frames: FrameNotices) -> None:
        frame = opened(world)
        world.clock.advance(STALE)
        frames.idle(world.ledger, world.row(frame))

        row = world.row(frame)
        assert is_marked(row)
        assert row.state is State.CLOSED
        # Activity is rounded down to a tenth of the idle time
        assert world.clock.at + 0.9 * TTL * 1_000 - 1 <= row.idle_at < world.clock.at + TTL * 1_000
        assert world.memory.batches.next_due() == row.idle_at

    def test_gives_up_a_frame_that_it_asked_for_before_and_asks_no_more(
        self, world: World, frames: FrameNotices
    ) -> None:
        frame = opened(world)
        world.clock.advance(STALE)
        frames.idle(world.ledger, world.row(frame))
        asked = world.row(frame)

        assert [frames.idle(world.ledger, asked) for _ in range(2)] == [State.TIMED_OUT] * 2
        assert len(told(world)) == 1
        assert world.row(frame) == asked

    def test_asks_again_after_progress(self, world: World, frames: FrameNotices) -> None:
        frame = opened(world)
        for done in range(3):
            world.clock.advance(STALE)
            assert frames.idle(world.ledger, world.row(frame)) is None
            ack(world, frame, done)
            assert not is_marked(world.row(frame))

        assert [body["missing"] for body in told(world)] == [[[0, 10]], [[1, 10]], [[2, 10]]]

    def test_gives_up_a_frame_at_the_end_of_its_lifetime_without_asking(
        self, world: World, frames: FrameNotices
    ) -> None:
        frame = opened(world)

        world.clock.at = (frame.expires_at - RETENTION) * 1_000
        assert frames.idle(world.ledger, frame) is State.TIMED_OUT
        assert told(world) == []
        world.clock.advance(-1)
        assert frames.idle(world.ledger, frame) is None
        assert len(told(world)) == 1

    def test_asks_again_if_it_died_before_it_noted_that_it_had(
        self, world: World, frames: FrameNotices
    ) -> None:
        frame = opened(world)
        world.clock.advance(STALE)
        world.crash_at("batches.touch", "before")
        with pytest.raises(Crash):
            frames.idle(world.ledger, world.row(frame))

        assert FrameNotices(world.ports).idle(world.fresh(), world.row(frame)) is None

        assert [body["type"] for body in told(world)] == ["Repeat Requested"] * 2

    def test_leaves_the_activity_of_a_receiver_that_acknowledges_meanwhile(
        self, world: World, frames: FrameNotices
    ) -> None:
        # Given a receiver that comes between the message and its note
        frame = opened(world)
        world.clock.advance(STALE)
        world.at("batches.touch", "before", lambda: ack(world, frame, 0))

        assert frames.idle(world.ledger, world.row(frame)) is None

        # Then the row has the receiver's activity, and the next stall is asked for again
        assert world.happened
        assert not is_marked(world.row(frame))
        assert world.accesses.refused["batches.touch"] == 1

    @pytest.mark.parametrize("reply_to", ["", CHANNEL])
    def test_marks_a_frame_also_where_nobody_can_be_asked(
        self, world: World, frames: FrameNotices, reply_to: str
    ) -> None:
        frame = opened(world, reply_to=reply_to)
        del world.memory.channels.queues[CHANNEL]
        world.clock.advance(STALE)

        assert frames.idle(world.ledger, world.row(frame)) is None
        assert frames.idle(world.ledger, world.row(frame)) is State.TIMED_OUT

    @pytest.mark.parametrize("error", [ValueError(), AccessDenied("the key of the queue is another's")])
    def test_gives_up_a_frame_whose_channel_fails_and_says_so(
        self, world: World, frames: FrameNotices, error: Exception
    ) -> None:
        frame = opened(world)
        world.clock.advance(STALE)
        break_channel(world, error)

        with pytest.raises(type(error)):
            frames.idle(world.ledger, world.row(frame))

        assert is_marked(world.row(frame))
        assert frames.idle(world.ledger, world.row(frame)) is State.TIMED_OUT

    @pytest.mark.parametrize("error", [Throttled("later"), ServiceUnavailable("no answer")])
    def test_asks_again_where_the_channel_failed_for_now(
        self, world: World, frames: FrameNotices, error: Exception
    ) -> None:
        frame = opened(world)
        world.clock.advance(STALE)
        break_channel(world, error)
        with pytest.raises(type(error)):
            frames.idle(world.ledger, world.row(frame))
        assert not is_marked(world.row(frame))

        assert frames.idle(world.ledger, world.row(frame)) is None
        assert [body["type"] for body in told(world)] == ["Repeat Requested"]

    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_is_asked_for_before_it_is_marked(self, world: World, frames: FrameNotices, moment: str) -> None:
        """A frame that is marked and was not asked for would be given up without a word."""
        frame = opened(world)
        world.clock.advance(STALE)
        world.crash_at("channels.send", moment)
        with pytest.raises(Crash):
            frames.idle(world.ledger, world.row(frame))

        assert not is_marked(world.row(frame))
        assert FrameNotices(world.ports).idle(world.fresh(), world.row(frame)) is None
        assert len(told(world)) == 1 + (moment == "after")


def test_a_frame_whose_channel_fails_harms_no_other_batch(world: World) -> None:
    # Given a stale frame whose channel fails in a way that nobody has foreseen, and idle batches
    process = LedgerService(world.ports, patterns(world.ports))
    world.memory.channels.queues[CHANNEL] = []
    frame = opened(world)
    idle = [world.batch(1, idle_ttl=120, closed=True)[0] for _ in range(20)]
    world.clock.advance(5 * STALE)
    break_channel(world, KeyError("MessageGroupId"))
    failed: list[int] = []

    # When the reaper comes twice
    first = process.reap(report=lambda batch_id, _: failed.append(batch_id))
    world.clock.advance(5 * STALE)
    second = process.reap()

    # Then the others end, and so does the frame; what went wrong is reported
    assert (first.orphaned, first.failed, failed) == (20, 1, [frame.batch_id])
    assert {world.row(batch).state for batch in idle} == {State.ORPHANED}
    assert (second.timed_out, world.row(frame).state) == (1, State.TIMED_OUT)
