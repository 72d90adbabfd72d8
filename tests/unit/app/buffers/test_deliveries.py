"""Deliveries: work whose item is pending comes out of a buffer, and all other messages of it are void.

Receipts: what they say, that they are opaque text, and what is refused as one.
"""

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from fanin import names
from fanin.adapters.memory import FixedClock, MemoryQueues, SeededRandom
from fanin.app.buffers import service
from fanin.app.buffers.service import SIFT_MS, BufferService, WorkReceipt
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.queues import Outgoing, Received
from fanin.domain import ids
from fanin.domain.batch import Kind
from fanin.domain.buffer import Buffer, Work
from fanin.errors import BufferNotFound, ChannelRefused, InvalidRequest
from tests.unit.app.buffers.conftest import kept
from tests.unit.app.conftest import Crash, World

SECOND = 1_000


class Desk:
    """The buffer ``jobs``, and a process that receives from it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ledger = world.fresh()
        self.buffers = BufferService(self.ledger)
        self.buffer: Buffer = self.buffers.define("jobs", 10)
        self.deliveries = self.fresh()

    def fresh(self) -> BufferService:
        """The deliveries of a process that starts now."""
        return BufferService(self.world.fresh())

    def put(self, *payloads: str) -> Sequence[str]:
        return self.buffers.put("jobs", payloads).items

    def send(self, payload: str, attributes: dict[str, str]) -> None:
        """Send a message past the service."""
        self.world.memory.channels.send([Outgoing(self.buffer.queue, payload, attributes)])

    def receive(self, most: int = 10, visibility_timeout: int | None = None) -> list[Work]:
        return self.deliveries._receive(self.buffer, most, 0, visibility_timeout)

    def payloads(self, most: int = 10) -> list[str]:
        return [work.payload for work in self.receive(most)]

    def come_again(self) -> None:
        """Let the visibility timeouts of all that was received pass."""
        self.world.clock.advance(self.world.memory.queues.visibility_timeout * SECOND)

    @property
    def kept(self) -> list[str]:
        """The messages that are in the queue, hidden or not."""
        return kept(self.world, self.buffer.queue)


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


def test_of_two_messages_of_one_item_that_come_together_one_is_handed_out(desk):
    """A keyed put whose answer was lost may send its messages twice."""
    # Given a message that was sent twice
    (item, _) = desk.put("charge card", "b")
    desk.send("charge card", {names.ITEM_ATTRIBUTE: item})
    # When work is taken, Then it comes once, and the other message is gone
    assert desk.payloads() == ["charge card", "b"]
    assert desk.kept == ["charge card", "b"]
    # And once more, if nobody has done it
    desk.come_again()
    assert desk.payloads() == ["charge card", "b"]


@pytest.mark.parametrize(("later", "waited"), [(1_500, 1_500), (-5_000, 0)])
def test_work_says_what_it_is_and_how_long_it_waited_also_if_the_clock_of_the_queue_is_ahead(
    world, desk, later, waited
):
    (item,) = desk.put("a")
    world.clock.advance(later)

    (work,) = desk.receive()

    assert (work.payload, work.waited_ms) == ("a", waited)
    receipt = service.read_receipt(work.receipt)
    assert (receipt.item, receipt.batch_id) == (item, desk.buffer.batch_id)


class Slow(MemoryQueues):
    """Queues that note how long a receive would wait, and take a second for each."""

    waits: list[int]

    def receive(self, queue: str, *, most: int, wait: int, visibility_timeout: int | None) -> list[Received]:
        self.waits.append(wait)
        assert isinstance(self._clock, FixedClock)
        self._clock.advance(SECOND)
        return super().receive(queue, most=most, wait=wait, visibility_timeout=visibility_timeout)


def receive_slowly(world: World, desk: Desk, *, wait: int) -> list[int]:
    """Receive nothing from such queues, and tell how long each receive would wait."""
    queues = Slow(world.memory.channels, world.accesses, world.clock, SeededRandom())
    queues.waits = []
    ports = replace(world.ports, queues=queues)
    assert BufferService(LedgerService(ports))._receive(desk.buffer, 1, wait, None) == []
    return queues.waits


class TestVoid:
    @pytest.mark.parametrize(
        ("done", "most", "left"), [([1], 10, ["a", "c"]), ([0, 1], 1, ["c"]), ([0, 1, 2], 1, [])]
    )
    def test_is_a_message_whose_item_is_done_and_does_not_count_as_received(self, desk, done, most, left):
        items = desk.put("a", "b", "c")
        desk.ledger.mark([items[index] for index in done]).whole()

        assert desk.payloads(most=most) == left
        assert desk.kept == left

    def test_does_not_make_a_receive_wait_anew(self, world, desk):
        desk.ledger.mark(desk.put("a", "b")).whole()
        for _ in range(2):
            world.at("queues.remove", "after", lambda: world.clock.advance(6 * SECOND))

        assert receive_slowly(world, desk, wait=17) == [17, 10, 3]

    def test_is_dropped_later_if_its_receiver_dies_before_it_could(self, world, desk):
        desk.ledger.mark(desk.put("a")).whole()
        world.crash_at("queues.remove", "before")
        with pytest.raises(Crash):
            desk.receive()
        assert desk.kept == ["a"]

        desk.come_again()
        desk.deliveries = desk.fresh()
        assert desk.payloads() == []
        assert desk.kept == []

    def test_is_what_the_buffer_kept_from_an_earlier_batch(self, desk):
        # Given a buffer that goes on with a new batch
        before = desk.buffer
        desk.put("old")
        desk.ledger.cancel(before.batch_id)
        desk.put("new")
        # When a process receives that has heard of it, then what is old is dropped
        desk.buffer = desk.buffers.define("jobs", 10)
        assert desk.payloads() == ["new"]
        assert desk.kept == ["new"]
        # When one receives that has not, then what is new is work all the same
        desk.come_again()
        desk.buffer = before
        assert desk.payloads() == ["new"]


class TestForeign:
    def test_messages_do_not_end_a_receive(self, desk):
        desk.send("foreign", {})
        desk.put("a")

        assert desk.payloads(most=1) == ["a"]

    @pytest.mark.parametrize(
        ("kind", "user_key", "state"),
        [
            (Kind.BATCH, "jobs", "cancelled"),
            (Kind.SCATTER, "jobs", "cancelled"),
            (Kind.BUFFER, "others", "cancelled"),
            (Kind.BUFFER, "others", "unknown"),
            (Kind.BATCH, "jobs", "open"),
            (Kind.BUFFER, "jobs", "open"),  # might be its next one, or of another service with the same names
        ],
    )
    def test_items_are_left_to_those_who_sent_them(self, world, desk, kind, user_key, state):
        # Given a message that carries an item of a batch that was never this buffer's
        _, (group,) = world.batch(1, kind=kind, user_key=user_key)
        if state == "cancelled":
            world.ledger.cancel(group.batch_id)
        if state == "unknown":
            del world.memory.batches._rows[group.batch_id]
        desk.send("strange", {names.ITEM_ATTRIBUTE: group[0]})
        desk.put("a")

        assert desk.payloads() == ["a"]
        assert desk.kept == ["strange", "a"]

    def test_messages_do_not_hold_a_receive_up_for_long(self, world, desk):
        for _ in range(100):
            desk.send("foreign", {})
        started = world.clock.at

        receive_slowly(world, desk, wait=0)

        assert world.clock.at - started == SIFT_MS + SECOND


def test_a_buffer_that_was_deleted_meanwhile_is_not_found(world, desk):
    # Given a buffer on a queue that outlives it, and messages of its next life
    world.memory.channels.queues["https://mine"] = []
    old = desk.buffers.define("own", 1, queue="https://mine")
    desk.buffers.delete("own")
    desk.buffers.define("own", 1, queue="https://mine")
    desk.buffers.put("own", ["a"])
    desk.buffers.delete("own")

    with pytest.raises(BufferNotFound, match="own"):
        desk.deliveries._receive(old, 1, 0, None)


def test_a_queue_that_was_deleted_is_refused(world, desk):
    world.ports.queues.delete(desk.buffer.queue)

    with pytest.raises(ChannelRefused):
        desk.receive()


ITEM = f"{ids.issue(7, 100, 3, b'salt').prefix}:2"
"""The third of three items that begin at ordinal 100."""
FIRST = f"{ids.issue(0, 0, 1, b'salt').prefix}:0"
"""The first of the first batch."""
LONGEST = 4_096


def packed(value: object) -> str:
    """Text in the form of a receipt."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize("handle", ["delivery-1", "", "AQEB+/==", "a b\n", "☂", "h" * 1_024])
def test_a_receipt_reads_back_as_it_was_written(handle):
    assert service.read_receipt(service.write_receipt(ITEM, handle)) == WorkReceipt(7, ITEM, handle)
    assert service.read_receipt(service.write_receipt(FIRST, handle)) == WorkReceipt(0, FIRST, handle)


@pytest.mark.parametrize("padding", range(4))
def test_a_receipt_is_text_for_urls_whatever_its_length(padding):
    # These letters give both characters in which the alphabet for URLs differs from the usual one
    handle = "~~~???>>>" * 3 + "x" * padding

    token = service.write_receipt(ITEM, handle)

    assert re.fullmatch("[A-Za-z0-9_-]+", token)
    assert service.read_receipt(token).handle == handle


def test_a_receipt_is_read_up_to_its_greatest_length_and_no_further():
    handle = "h" * (LONGEST * 3 // 4 - len(json.dumps([ITEM, ""])))

    longest, longer = service.write_receipt(ITEM, handle), service.write_receipt(ITEM, handle + "h")

    assert len(longest) == LONGEST < len(longer)
    assert service.read_receipt(longest).handle == handle
    with pytest.raises(InvalidRequest):
        service.read_receipt(longer)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "nonsense",
        "☂",
        packed([]),
        packed("text"),
        packed({"item": ITEM, "handle": "h"}),
        packed([ITEM]),
        packed([ITEM, "h", "more"]),
        packed([ITEM, 1]),
        packed(["no item", "h"]),
        packed([ITEM[:-1] + "3", "h"]),  # the group has three items, so the last index is 2
        packed([ITEM, "h"])[:-2],
        base64.urlsafe_b64encode(b"\xff\xfe").decode().rstrip("="),
        base64.urlsafe_b64encode(b"[" * 3_000).decode().rstrip("="),
    ],
)
def test_other_text_is_refused(token):
    with pytest.raises(InvalidRequest):
        service.read_receipt(token)


def test_the_refusal_quotes_the_beginning_only():
    with pytest.raises(InvalidRequest) as refused:
        service.read_receipt("x" * 31 + "yz" + "z" * 10_000)

    assert f"'{'x' * 31}y'" in str(refused.value)
