"""Frames: what is missing, and who may handle an envelope."""

from __future__ import annotations

import pytest

from fanin.app.frames.service import FrameService
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.batch import OpenBatch, State
from fanin.domain.frames import Hold, Ticket
from fanin.errors import BatchNotFound, ChannelRefused, InvalidRequest, RequestTooLarge
from tests.unit.app.frames.conftest import CHANNEL, World


class TestOpen:
    def test_a_frame_is_a_closed_batch_of_its_size_in_one_write(self, world: World) -> None:
        frame = world.open()

        assert (frame.state, frame.size, frame.ttl, frame.user_key) == (State.CLOSED, 100, 60, "day 7")
        assert frame.about == {"source": "orders", "destination": "billing", "reply_to": CHANNEL}
        assert world.memory.accesses.writes.total() == 1

    def test_a_reply_channel_that_fanin_may_not_use_is_refused(self, world: World) -> None:
        with pytest.raises(ChannelRefused):
            world.open(reply_to="https://sqs/others")
        assert world.memory.accesses.writes.total() == 0

    @pytest.mark.parametrize("size", [0, 2**32])
    def test_a_frame_has_at_least_one_envelope(self, world: World, size: int) -> None:
        with pytest.raises(InvalidRequest):
            world.open(size)

    def test_a_plain_batch_is_no_frame(self, world: World) -> None:
        batch = world.ledger.open(OpenBatch())
        with pytest.raises(BatchNotFound):
            world.frames.status(batch.batch_id)
        with pytest.raises(BatchNotFound):
            world.frames.claim([Ticket(batch.batch_id, 0)])


class TestStatus:
    def test_lists_what_is_missing_as_ranges(self, world: World) -> None:
        frame = world.open(200)
        world.ack(frame, 0, 7, 199)

        assert world.frames.status(frame.frame_id).missing == ((1, 7), (8, 199))

    def test_pages(self, world: World) -> None:
        frame = world.open(200)
        world.ack(frame, 0, 7, 199)

        first = world.frames.status(frame.frame_id, limit=1)
        rest = world.frames.status(frame.frame_id, cursor=first.cursor, limit=10)
        assert first.missing + rest.missing == ((1, 7), (8, 199))

    def test_of_a_complete_frame_nothing_is_missing(self, world: World) -> None:
        frame = world.open(3)
        world.ack(frame, 0, 1, 2)

        done = world.frames.status(frame.frame_id)
        assert (done.state, done.missing) == (State.COMPLETE, ())

    def test_heals_a_frame_whose_last_receiver_died_before_it_could_say_so(self, world: World) -> None:
        # Given a frame whose leaves are done, while nothing above them says so
        frame = world.open(70)
        leaves = [(0, 2**64 - 1), (1, 2**6 - 1)]
        world.ledger.ports.words.clear(
            [Clear(WordKey(frame.frame_id, 0, number), mask, 2**33) for number, mask in leaves]
        )
        # When the sender looks, Then it is complete
        assert world.frames.status(frame.frame_id).state is State.COMPLETE


class TestClaim:
    def test_is_one_write_and_warm_it_reads_nothing(self, world: World) -> None:
        frame = world.open()
        world.hold(frame, 0)
        before = world.memory.accesses.writes.total(), world.memory.accesses.reads.total()

        assert world.hold(frame, 1) is Hold.CLAIMED
        after = world.memory.accesses.writes.total(), world.memory.accesses.reads.total()
        assert (after[0] - before[0], after[1] - before[1]) == (1, 0)

    def test_a_second_one_waits_until_the_lease_is_over(self, world: World) -> None:
        frame = world.open()
        assert world.hold(frame, 5) is Hold.CLAIMED

        world.clock.advance(29_999)
        assert world.hold(frame, 5) is Hold.LEASED
        assert world.hold(frame, 6) is Hold.CLAIMED
        world.clock.advance(1_000)
        assert world.hold(frame, 5) is Hold.CLAIMED

    def test_says_until_when(self, world: World) -> None:
        frame = world.open()
        now = world.clock.at // 1000
        ticket = Ticket(frame.frame_id, 1)

        (mine,) = world.frames.claim([ticket], lease=10)
        world.clock.advance(2_000)
        (others,) = world.frames.claim([ticket], lease=10)
        assert (mine.until, others.until) == (now + 10, now + 10)

    def test_what_is_acknowledged_is_done_also_while_leased(self, world: World) -> None:
        frame = world.open()
        world.ack(frame, 3)

        assert world.hold(frame, 3) is Hold.DONE

    def test_in_a_complete_frame_all_is_done_and_in_one_that_was_given_up_all_is_over(
        self, world: World
    ) -> None:
        complete, cancelled = world.open(1), world.open(1)
        world.ack(complete, 0)
        world.ledger.cancel(cancelled.frame_id)

        fresh = FrameService(world.ledger)
        claims = fresh.claim([Ticket(complete.frame_id, 0), Ticket(cancelled.frame_id, 0)])
        assert [claim.hold for claim in claims] == [Hold.DONE, Hold.ENDED]

    def test_names_the_item_to_acknowledge(self, world: World) -> None:
        frame = world.open()
        (claim,) = world.frames.claim([Ticket(frame.frame_id, 42)])

        (receipt,) = world.ledger.ack([claim.item])
        assert receipt.first == 1
        assert world.frames.status(frame.frame_id).missing == ((0, 42), (43, 100))

    def test_refuses_what_is_not_in_the_frame_and_writes_nothing(self, world: World) -> None:
        frame = world.open()
        before = world.memory.accesses.writes.total()
        for index in (-1, 100):
            with pytest.raises(InvalidRequest):
                world.frames.claim([Ticket(frame.frame_id, 0), Ticket(frame.frame_id, index)])
        with pytest.raises(InvalidRequest):
            world.frames.claim([Ticket(frame.frame_id, 0)] * 2)
        with pytest.raises(RequestTooLarge):
            world.frames.claim([Ticket(frame.frame_id, 0)] * 1_001)
        assert world.memory.accesses.writes.total() == before
