"""Frames: what is missing, who may handle an envelope, and what senders are told."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fanin.app.frames import FrameService
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.queues import Outgoing
from fanin.app.ports.words import Claimed, Clear, ItemClaim, WordKey
from fanin.app.services import Patterns
from fanin.domain.batch import OpenBatch, State
from fanin.domain.frames import Frame, Hold, OpenFrame, Ticket
from fanin.domain.marks import Done
from fanin.errors import BatchNotFound, ChannelRefused, InvalidRequest, RequestTooLarge
from fanin.wire.patterns import FRAME
from tests.unit.app.conftest import World

CHANNEL = "https://sqs/replies"


class Sender(World):
    """A world with the sender of frames, and its reply channel."""

    def __init__(self) -> None:
        super().__init__(width=64)
        self.told: list[Outgoing] = []
        self.memory.channels.queues[CHANNEL] = self.told
        self.frames = FrameService(self.ledger)

    def fresh(self) -> LedgerService:
        return LedgerService(self.ports, Patterns(self.ports))

    def open(self, size: int = 100, ttl: int = 60, reply_to: str = CHANNEL) -> Frame:
        return self.frames.open(OpenFrame(size, "orders", "billing", reply_to, ttl, "day 7"))

    def hold(self, frame: Frame, index: int, lease: int = 30) -> Hold:
        (claim,) = self.frames.claim([Ticket(frame.frame_id, index)], lease=lease)
        return claim.hold

    def ack(self, frame: Frame, *indices: int) -> None:
        claims = self.frames.claim([Ticket(frame.frame_id, index) for index in indices])
        self.ledger.mark([claim.item for claim in claims]).whole()

    def bodies(self) -> list[dict]:
        return [json.loads(message.body) for message in self.told]

    def announce(self) -> None:
        """Play the stream of the batches table."""
        for old, new in list(self.memory.batches.changes):
            self.ledger.follow(old, new)


@pytest.fixture
def world() -> Sender:
    return Sender()


class TestOpen:
    def test_a_reply_channel_that_fanin_may_not_use_is_refused(self, world):
        with pytest.raises(ChannelRefused):
            world.open(reply_to="https://sqs/others")
        assert world.accesses.writes.total() == 0

    @pytest.mark.parametrize("size", [0, 2**32])
    def test_a_frame_has_at_least_one_envelope(self, world, size):
        with pytest.raises(InvalidRequest, match=r"^size must be a whole number from 1 to"):
            world.open(size)

    def test_a_plain_batch_is_no_frame(self, world):
        batch = world.ledger.open(OpenBatch())
        with pytest.raises(BatchNotFound):
            world.frames.status(batch.batch_id)
        with pytest.raises(BatchNotFound):
            world.frames.claim([Ticket(batch.batch_id, 0)])


class TestStatus:
    def test_lists_what_is_missing_as_ranges_in_pages(self, world):
        frame = world.open(200)
        world.ack(frame, 0, 7, 199)
        assert world.frames.status(frame.frame_id).missing == ((1, 7), (8, 199))

        first = world.frames.status(frame.frame_id, limit=1)
        rest = world.frames.status(frame.frame_id, cursor=first.cursor, limit=10)
        assert (first.missing, rest.missing) == (((1, 7),), ((8, 199),))

    @pytest.mark.parametrize(("size", "km", "exact"), [(200, 5, True), (1_000_000, 0, False)])
    def test_says_whether_its_totals_are_those_of_all_envelopes(self, world, size, km, exact):
        # Given an envelope that was handled, behind more words than a status reads
        frame = world.frames.open(OpenFrame(size, totals=("km",)))
        (claim,) = world.frames.claim([Ticket(frame.frame_id, size - 1)])
        world.ledger.mark([Done(claim.item, {"km": 5})]).whole()

        found = world.frames.status(frame.frame_id)

        assert (found.totals, found.totals_exact) == ({"km": km}, exact)
        assert FRAME.decode(FRAME.encode(found)) == found

    def test_heals_a_frame_whose_last_receiver_died_before_it_could_say_so(self, world):
        # Given a frame whose leaves are done, while nothing above them says so
        frame = world.open(70)
        leaves = [(0, 2**64 - 1), (1, 2**6 - 1)]
        world.ledger.ports.words.clear(
            [Clear(WordKey(frame.frame_id, 0, number), mask, 2**33) for number, mask in leaves]
        )
        # When the sender looks, Then it is complete
        assert world.frames.status(frame.frame_id).state is State.COMPLETE


class TestClaim:
    def test_is_one_write_and_warm_it_reads_nothing(self, world):
        frame = world.open()
        world.hold(frame, 0)
        before = world.accesses.writes.total(), world.accesses.reads.total()

        assert world.hold(frame, 1) is Hold.CLAIMED
        after = world.accesses.writes.total(), world.accesses.reads.total()
        assert (after[0] - before[0], after[1] - before[1]) == (1, 0)

    def test_in_a_complete_frame_all_is_done_and_in_one_that_was_given_up_all_is_over(self, world):
        complete, cancelled = world.open(1), world.open(1)
        world.ack(complete, 0)
        world.ledger.cancel(cancelled.frame_id)

        fresh = FrameService(world.ledger)
        claims = fresh.claim([Ticket(complete.frame_id, 0), Ticket(cancelled.frame_id, 0)])
        assert [claim.hold for claim in claims] == [Hold.DONE, Hold.ENDED]

    def test_that_a_store_leaves_unanswered_is_an_error(self, world):
        """Else its envelope would look as if its frame had ended, and be dropped."""
        frame = world.open()

        class Silent:
            def claim(self, claims: Sequence[ItemClaim]) -> list[Claimed]:
                return world.memory.words.claim(claims)[1:]

        ports = replace(world.ports, words=Silent())
        with pytest.raises(ValueError, match="shorter"):
            FrameService(LedgerService(ports)).claim([Ticket(frame.frame_id, n) for n in range(2)])

    def test_refuses_what_is_not_in_the_frame_or_out_of_bounds_and_writes_nothing(self, world):
        frame = world.open()
        before = world.accesses.writes.total()
        for index in (-1, 100):
            with pytest.raises(InvalidRequest, match=r"^index must be a whole number from 0 to 99, not"):
                world.frames.claim([Ticket(frame.frame_id, 0), Ticket(frame.frame_id, index)])
        with pytest.raises(InvalidRequest):
            world.frames.claim([Ticket(frame.frame_id, 0)] * 2)
        for lease in (0, 43_201):
            with pytest.raises(InvalidRequest, match=r"^lease must be a whole number from 1 to 43200, not"):
                world.hold(frame, 0, lease=lease)
        with pytest.raises(RequestTooLarge, match=r"^1001 claims in one call; send at most 1000$"):
            world.frames.claim([Ticket(frame.frame_id, 0)] * 1_001)
        assert world.accesses.writes.total() == before
