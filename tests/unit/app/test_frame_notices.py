"""What senders are told of their frames, and when a frame without progress is given up."""

import json
from typing import Any

import pytest

from fanin import names
from fanin.app import frames
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Patterns
from fanin.domain import ids
from fanin.domain.batch import RETENTION, Batch, State
from fanin.domain.frames import OpenFrame, is_marked
from fanin.errors import AccessDenied, ServiceUnavailable, Throttled
from tests.unit.app.conftest import Crash, World

CHANNEL = "https://sqs/replies"
TTL = 60
STALE = TTL * 1_000 + 1


class Sender(World):
    """A world with a reply channel, on which the sender of frames is told of them."""

    def __init__(self) -> None:
        super().__init__()
        self.memory.channels.queues[CHANNEL] = []

    def fresh(self) -> LedgerService:
        return LedgerService(self.ports, Patterns(self.ports))

    def open(self, size: int = 10, reply_to: str = CHANNEL) -> Batch:
        """The batch of a frame."""
        return self.ledger.open(OpenFrame(size, "orders", "billing", reply_to, TTL, "day 7").batch())

    def stalled(self, reply_to: str = CHANNEL) -> Batch:
        """The batch of a frame that has made no progress for as long as it may."""
        frame = self.open(reply_to=reply_to)
        self.clock.advance(STALE)
        return frame

    def ack(self, frame: Batch, *indices: int) -> None:
        prefix = ids.issue(frame.batch_id, 0, frame.items, frame.salt).prefix
        self.ledger.mark([f"{prefix}:{index}" for index in indices]).whole()

    def idle(self, frame: Batch) -> State | None:
        """What a process that starts now does with a frame without progress."""
        return frames.idle(self.ports, self.fresh(), self.row(frame))

    def told(self) -> list[dict[str, Any]]:
        """The bodies of the messages on the reply channel."""
        return [json.loads(message.body) for message in self.memory.channels.queues[CHANNEL]]

    def break_channel(self, error: Exception) -> None:
        """Let the next message to the channel fail."""

        def fail() -> None:
            raise error

        self.at("channels.send", "before", fail)


@pytest.fixture
def world() -> Sender:
    return Sender()


class TestEnded:
    def test_a_complete_frame_is_told_to_its_sender(self, world):
        frame = world.open(2)
        world.ack(frame, 0, 1)

        frames.announced(world.ports, world.row(frame))

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
    def test_any_other_end_is_told_with_its_state(self, world, state):
        frame = world.open()
        world.ports.batches.end(frame.batch_id, state, now=world.clock.at, sources=(State.CLOSED,))

        frames.announced(world.ports, world.row(frame))

        (body,) = world.told()
        assert (body["type"], body["state"], body["size"]) == ("Frame Ended", state.value, 10)


class TestIdle:
    def test_asks_the_sender_to_repeat_what_is_missing(self, world):
        frame = world.open()
        world.ack(frame, 0, 4, 5)
        world.clock.advance(STALE)

        assert world.idle(frame) is None

        (message,) = world.memory.channels.queues[CHANNEL]
        assert json.loads(message.body) == {
            "type": "Repeat Requested",
            "frame_id": frame.batch_id,
            "size": 10,
            "missing": [[1, 4], [6, 10]],
            "more": False,
        }
        assert message.attributes[names.ATTRIBUTE_TYPE] == "Repeat Requested"

    def test_says_whether_more_is_missing_than_it_lists(self, world, monkeypatch):
        monkeypatch.setattr(frames, "LISTED", 2)
        more, all_of_it = world.open(), world.open()
        world.ack(more, 1, 3)
        world.ack(all_of_it, 1)

        for frame in (more, all_of_it):
            world.idle(frame)

        assert [(body["missing"], body["more"]) for body in world.told()] == [
            ([[0, 1], [2, 3]], True),
            ([[0, 1], [2, 10]], False),
        ]

    def test_gives_up_a_frame_that_it_asked_for_before_and_asks_no_more(self, world):
        frame = world.stalled()
        world.idle(frame)
        asked = world.row(frame)

        assert [world.idle(frame) for _ in range(2)] == [State.TIMED_OUT] * 2
        assert len(world.told()) == 1
        assert world.row(frame) == asked

    def test_leaves_the_activity_of_a_receiver_that_acknowledges_meanwhile(self, world):
        # Given a receiver that comes between the message and its note
        frame = world.stalled()
        world.at("batches.touch", "before", lambda: world.ack(frame, 0))

        assert world.idle(frame) is None
        # Then the row has the receiver's activity, and the next stall is asked for again
        assert world.happened
        assert not is_marked(world.row(frame))
        assert world.accesses.refused["batches.touch"] == 1

    @pytest.mark.parametrize(
        ("error", "given_up"),
        [
            (ValueError(), True),
            (AccessDenied("the key of the queue is another's"), True),
            (Throttled("later"), False),
            (ServiceUnavailable("no answer"), False),
        ],
    )
    def test_asks_again_where_the_channel_failed_for_now_and_else_gives_the_frame_up_and_says_so(
        self, world, error, given_up
    ):
        frame = world.stalled()
        world.break_channel(error)

        with pytest.raises(type(error)):
            world.idle(frame)

        assert is_marked(world.row(frame)) is given_up
        assert world.idle(frame) is (State.TIMED_OUT if given_up else None)
        assert [body["type"] for body in world.told()] == ([] if given_up else ["Repeat Requested"])

    @pytest.mark.parametrize(
        ("call", "moment", "messages"),
        [("channels.send", "before", 1), ("channels.send", "after", 2), ("batches.touch", "before", 2)],
    )
    def test_is_asked_for_before_it_is_marked(self, world, call, moment, messages):
        """A frame that is marked and was not asked for would be given up without a word."""
        frame = world.stalled()
        world.crash_at(call, moment)
        with pytest.raises(Crash):
            world.idle(frame)

        assert not is_marked(world.row(frame))
        assert world.idle(frame) is None
        assert [body["type"] for body in world.told()] == ["Repeat Requested"] * messages

    def test_gives_up_a_frame_at_the_end_of_its_lifetime_without_asking(self, world):
        frame = world.open()

        world.clock.at = (frame.expires_at - RETENTION) * 1_000
        assert world.idle(frame) is State.TIMED_OUT
        assert world.told() == []
        world.clock.advance(-1)
        assert world.idle(frame) is None
        assert len(world.told()) == 1


def test_a_frame_whose_channel_fails_harms_no_other_batch(world):
    # Given a stale frame whose channel fails in a way that nobody has foreseen, and idle batches
    frame = world.open()
    idle = [world.batch(1, idle_ttl=120, closed=True)[0] for _ in range(20)]
    world.clock.advance(5 * STALE)
    world.break_channel(KeyError("MessageGroupId"))
    failed: list[int] = []

    first = world.fresh().reap(report=lambda batch_id, _: failed.append(batch_id))
    world.clock.advance(5 * STALE)
    second = world.fresh().reap()
    # Then the others end, and so does the frame; what went wrong is reported
    assert (first.orphaned, first.failed, failed) == (20, 1, [frame.batch_id])
    assert {world.row(batch).state for batch in idle} == {State.ORPHANED}
    assert (second.timed_out, world.row(frame).state) == (1, State.TIMED_OUT)
