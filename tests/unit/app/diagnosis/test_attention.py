"""What a person should look at: the most urgent comes first, and what was mended is gone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fanin import ItemFailed, Target
from fanin.domain.batch import Trouble
from fanin.domain.targets import TargetType
from fanin.testing import InMemoryService
from fanin.types import Code


class World:
    """A service with a consumer whose price service can be mended."""

    def __init__(self) -> None:
        self.service = InMemoryService()
        self.tracker = self.service.tracker
        self.queue = self.service.queue("rows")
        self.broken = True

        @self.tracker.sqs_handler
        def handle(_: object) -> None:
            if self.broken:
                raise ItemFailed("no price")

        self.handle = handle

    def failed(self, name: str, **options: object) -> int:
        with self.tracker.batch(user_key=name, **options) as batch:  # type: ignore[arg-type]
            batch.send(self.queue, ["a"])
        self.service.consume(self.queue, self.handle)
        self.service.advance(timedelta(seconds=1))
        return batch.id

    def listed(self) -> list[tuple[str, Trouble]]:
        return [(one.batch.user_key, one.trouble) for one in self.tracker.attention().batches]


def test_a_stalled_batch_comes_before_fifty_newer_ones_that_failed() -> None:
    # Given a batch that stalls, and fifty newer ones that fail; twelve of these are redriven, and are fine
    world = World()
    with world.tracker.batch(user_key="payroll", stall_after=timedelta(minutes=15)) as payroll:
        group = payroll.add(10)
    with world.tracker.batch(user_key="forgotten", stall_after=timedelta(minutes=15)) as forgotten:
        world.tracker.ack(forgotten.add(100))
        world.service.advance(timedelta(hours=1))
        found = world.listed()
    assert found == [("payroll", Trouble.STALLED), ("forgotten", Trouble.NOT_CLOSED)]
    ids = [world.failed(f"failed-{number}") for number in range(50)]
    world.broken = False
    for batch_id in ids[:12]:
        world.tracker.redrive(batch_id)
    world.service.consume(world.queue, world.handle)

    # When somebody asks what needs attention
    attention = world.tracker.attention()

    # Then the stalled one is first, the redriven ones are gone, and the counts are whole
    first = attention.batches[0]
    assert (first.batch.user_key, first.trouble, first.action) == ("payroll", Trouble.STALLED, "why")
    shown = [one.batch.batch_id for one in attention.batches[1:]]
    assert shown == ids[::-1][: len(shown)]
    assert len(shown) >= 9
    assert attention.counts == {"stalled": 1, "failed": 38}

    # And activity ends a stall
    world.tracker.ack(group[:1])
    assert world.tracker.attention(limit=1).batches == ()


def test_pages_go_through_all_in_order() -> None:
    world = World()
    ids = [world.failed(str(number)) for number in range(5)]
    held = world.failed("held", on_failure="hold")
    found: list[int] = []
    cursor = None
    while True:
        page = world.tracker.attention(cursor=cursor, limit=2)
        found += [one.batch.batch_id for one in page.batches]
        if (cursor := page.cursor) is None:
            break
    assert found == [held, *reversed(ids)]


def test_held_items_until_they_are_redriven_and_failures_while_the_batch_lives() -> None:
    world = World()
    held = world.failed("held", on_failure="hold")
    with world.tracker.batch(user_key="live") as live:
        world.tracker.fail(live.add(2)[0], "broken")
        assert world.listed() == [("held", Trouble.HELD), ("live", Trouble.FAILING)]
        world.broken = False
        world.tracker.redrive(held)
        world.service.consume(world.queue, world.handle)
        assert world.listed() == [("live", Trouble.FAILING)]


def test_a_parent_needs_nobody_once_the_failures_of_its_children_are_redriven() -> None:
    # Given a batch, nested two deep, whose innermost item fails
    world = World()
    with world.tracker.batch(user_key="top") as top:
        (above,) = top.add(1)
    with world.tracker.batch(user_key="middle", parent_item=above) as middle:
        (item,) = middle.add(1)
    failed = world.failed("bottom", parent_item=item)
    assert sorted(world.listed()) == [(name, Trouble.FAILED) for name in ("bottom", "middle", "top")]

    # When that is redriven
    world.broken = False
    world.tracker.redrive(failed)

    # Then none is listed, nor has a flag
    assert world.listed() == []
    assert [world.tracker.status(one).batch.attention for one in (top.id, middle.id, failed)] == [None] * 3


def test_tolerated_failures_cancelled_and_removed_batches_need_nobody() -> None:
    world = World()
    world.failed("tolerated", tolerated_failures=1)
    with world.tracker.batch(user_key="cancelled") as cancelled:
        world.tracker.fail(cancelled.add(2)[0], "broken")
    world.tracker.cancel(cancelled.id)
    removed = world.failed("removed")
    assert world.listed() == [("removed", Trouble.FAILED)]
    world.tracker.remove(removed)
    assert world.listed() == []
    assert world.tracker.attention().counts == {}


def test_a_target_that_fails_until_it_is_told() -> None:
    # Given a batch that ends, and the queue that is to be told is gone
    world = World()
    sqs, queue = world.service.sqs, world.service.queue("told")
    sqs.tag_queue(QueueUrl=queue, Tags={"fanin:channel": "yes"})
    target = Target(TargetType.SQS, queue_url=queue)
    with world.tracker.batch(user_key="report", on_end=[target]) as batch:
        group = batch.add(1)
    sqs.delete_queue(QueueUrl=queue)
    world.tracker.ack(group)
    world.service.advance(timedelta(minutes=5))

    # When somebody asks what needs attention, then it is that
    (one,) = world.tracker.attention().batches
    assert (one.trouble, one.action) == (Trouble.TARGETS, "targets --redeliver")
    # And why says since when, and when it is tried again
    (told, _) = world.tracker.why(batch.id).findings
    (target,) = world.tracker.targets(batch.id)
    assert told.code is Code.TARGET_FAILS
    assert target.failing_since is not None
    assert target.next_at is not None
    assert "; it is tried again by 20" in told.detail

    # And when the queue is there again, then nobody needs to look
    assert world.service.queue("told") == queue
    sqs.tag_queue(QueueUrl=queue, Tags={"fanin:channel": "yes"})
    world.service.advance(timedelta(hours=3))
    assert world.tracker.attention().counts == {}


def test_counts_that_the_index_cannot_show_in_one_read_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    service = InMemoryService()
    more = {Trouble.STALLED: (80_000, True), Trouble.FAILED: (2, False)}
    monkeypatch.setattr(service._runtime.memory.batches, "count_flagged", lambda: more)
    for _ in range(2):
        with service.tracker.batch() as batch:
            service.tracker.fail(batch.add(1)[0], "no price")

    found = service.tracker.attention(limit=1)

    assert (found.counts, found.at_least) == ({"stalled": 80_000, "failed": 2}, ("stalled",))
