"""Opening, closing, cancelling, listing and expiring batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fanin.domain import limits
from fanin.domain.acks import ItemRange
from fanin.domain.batch import LIVE, RETENTION, Batch, Mode, OnDeadline, OpenBatch, State
from fanin.domain.reports import Expired
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    InvalidItemId,
    InvalidRequest,
    RequestTooLarge,
    Throttled,
)
from tests.unit.app.conftest import Crash, World

HOUR = 3_600_000


class TestOpen:
    def test_gives_a_batch_with_the_service_s_defaults(self, world: World) -> None:
        batch = world.ledger.open(OpenBatch(user_key="mine", metadata={"a": "b"}))

        assert (batch.state, batch.mode, batch.items) == (State.OPEN, Mode.EXACT, 0)
        assert (batch.user_key, batch.metadata) == ("mine", {"a": "b"})
        assert (batch.open_idle_ttl, batch.closed_idle_ttl) == (7_200, 604_800)
        assert batch.expires_at == world.clock.at // 1000 + 30 * 86_400 + RETENTION
        assert world.row(batch) == batch

    def test_one_idle_time_counts_open_and_closed(self, world: World) -> None:
        batch, _ = world.batch(idle_ttl=60)

        assert (batch.open_idle_ttl, batch.closed_idle_ttl) == (60, 60)

    def test_draws_again_when_the_id_is_taken(self, world: World) -> None:
        # Given a world of the same chance, and its first id taken by somebody else
        first, _ = World().batch()
        taken = replace(first, salt=b"another's".ljust(16))
        world.ports.batches.create(taken)

        batch, _ = world.batch()

        assert batch.batch_id != taken.batch_id
        assert world.row(taken) == taken

    def test_gives_up_when_all_ids_are_taken(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(world.memory.random, "bits", lambda _: 7)
        world.batch()

        with pytest.raises(Throttled, match="no free batch id") as caught:
            world.batch()

        assert caught.value.retry_after == 1

    def test_sets_the_alarm_before_the_row(self, world: World) -> None:
        world.crash_at("batches.create", "before")

        with pytest.raises(Crash):
            world.batch(deadline=world.clock.at + 1)

        assert list(world.memory.timers.alarms.values()) == [world.clock.at + 1]
        (orphan,) = world.memory.timers.alarms
        assert world.ledger.meet_deadline(orphan) is None

    @pytest.mark.parametrize(
        "request_",
        [
            {"lifetime": limits.MIN_LIFETIME},
            {"lifetime": limits.MAX_LIFETIME},
            {"idle_ttl": limits.MIN_IDLE_TTL},
            {"idle_ttl": limits.MAX_LIFETIME},
            {"user_key": "k" * limits.MAX_USER_KEY},
            {"metadata": {str(i): "" for i in range(limits.MAX_METADATA)}},
            {"metadata": {"k" * limits.MAX_METADATA_KEY: "v" * limits.MAX_METADATA_VALUE}},
            {"limit": 1},
            {"limit": limits.MAX_LIMIT},
        ],
        ids=str,
    )
    def test_takes_the_extremes(self, world: World, request_: dict[str, Any]) -> None:
        assert world.ledger.open(OpenBatch(**request_)).state is State.OPEN

    @pytest.mark.parametrize(
        ("request_", "message"),
        [
            ({"lifetime": limits.MIN_LIFETIME - 1}, "lifetime"),
            ({"lifetime": limits.MAX_LIFETIME + 1}, "lifetime"),
            ({"lifetime": "60"}, "lifetime"),
            ({"idle_ttl": limits.MIN_IDLE_TTL - 1}, "idle_ttl"),
            ({"idle_ttl": limits.MAX_LIFETIME + 1}, "idle_ttl"),
            ({"user_key": "k" * (limits.MAX_USER_KEY + 1)}, "user_key"),
            ({"user_key": 5}, "user_key"),
            ({"metadata": {"": "v"}}, "metadata key"),
            ({"metadata": {"k" * (limits.MAX_METADATA_KEY + 1): ""}}, "metadata key"),
            ({"metadata": {"k": "v" * (limits.MAX_METADATA_VALUE + 1)}}, "metadata 'k'"),
            ({"metadata": {"k": 5}}, "metadata 'k'"),
            ({"limit": 0}, "limit"),
            ({"limit": limits.MAX_LIMIT + 1}, "limit"),
        ],
        ids=str,
    )
    def test_refuses_one_more_and_writes_nothing(
        self, world: World, request_: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(InvalidRequest, match=message):
            world.ledger.open(OpenBatch(**request_))

        assert world.written() == 0

    def test_refuses_too_many_metadata(self, world: World) -> None:
        metadata = {str(i): "" for i in range(limits.MAX_METADATA + 1)}

        with pytest.raises(RequestTooLarge, match="17 metadata entries"):
            world.ledger.open(OpenBatch(metadata=metadata))

        assert world.written() == 0

    @pytest.mark.parametrize("offset", [0, -1, 60_001])
    def test_refuses_a_deadline_in_the_past_or_after_the_lifetime(self, world: World, offset: int) -> None:
        with pytest.raises(InvalidRequest, match="deadline"):
            world.batch(deadline=world.clock.at + offset, lifetime=60)

        assert world.written() == 0

    @pytest.mark.parametrize("offset", [1, 60_000])
    def test_takes_a_deadline_within_the_lifetime(self, world: World, offset: int) -> None:
        batch, _ = world.batch(deadline=world.clock.at + offset, lifetime=60, on_deadline=OnDeadline.COMPLETE)

        assert world.memory.timers.alarms == {batch.batch_id: world.clock.at + offset}


class TestParent:
    def test_must_be_an_item_of_a_batch(self, world: World) -> None:
        _, (group,) = world.batch(3)

        batch, _ = world.batch(parent_item=group[2])

        assert batch.parent_item == group[2]

    @pytest.mark.parametrize("item", ["", "nonsense", "1:2:3", 5])
    def test_must_look_like_one(self, world: World, item: Any) -> None:
        with pytest.raises(InvalidItemId):
            world.batch(parent_item=item)

        assert world.written() == 0

    def test_must_have_been_issued(self, world: World) -> None:
        one, (group,) = world.batch(3)
        other, _ = world.batch(3)
        writes = world.written()

        foreign = f"{other.batch_id}:{group.id}:0"
        with pytest.raises(InvalidItemId, match="not issued"):
            world.batch(parent_item=foreign)
        with pytest.raises(InvalidItemId, match="whole number from 0"):
            world.batch(parent_item=f"{one.batch_id}:{group.id}:3")

        assert world.written() == writes

    def test_must_live(self, world: World) -> None:
        parent, (group,) = world.batch(3)
        world.ledger.cancel(parent.batch_id)

        with pytest.raises(InvalidRequest, match="has ended: it is cancelled"):
            world.batch(parent_item=group[0])

    def test_must_be_known(self, world: World) -> None:
        _, (group,) = World().batch(3)

        with pytest.raises(BatchNotFound):
            world.batch(parent_item=group[0])

    def test_must_not_be_estimated(self, world: World) -> None:
        _, (group,) = world.batch(3, mode=Mode.ESTIMATED)

        with pytest.raises(InvalidRequest, match="could count this one twice"):
            world.batch(parent_item=group[0])


class TestClose:
    def test_an_empty_batch_completes_at_once(self, world: World) -> None:
        batch, _ = world.batch()

        assert world.ledger.close(batch.batch_id).state is State.COMPLETE

    def test_a_batch_with_items_pending_waits_for_them(self, world: World) -> None:
        batch, (group,) = world.batch(5)
        world.ledger.ack(list(group[:4]))

        closed = world.ledger.close(batch.batch_id)

        assert (closed.state, closed.closed_at) == (State.CLOSED, world.clock.at)

    @pytest.mark.parametrize("n", [1, 3, 4, 5, 16, 17, 64, 65, 100])
    def test_a_batch_that_was_done_before_completes(self, world: World, n: int) -> None:
        batch, (group,) = world.batch(n)
        world.ledger.ack(list(group))

        assert world.fresh().close(batch.batch_id).state is State.COMPLETE

    def test_a_repeat_finishes_what_a_crash_left(self, world: World) -> None:
        batch, (group,) = world.batch(5)
        world.ledger.ack(list(group))
        world.crash_at("batches.close", "after")
        with pytest.raises(Crash):
            world.ledger.close(batch.batch_id)

        assert world.row(batch).state is State.CLOSED
        assert world.fresh().close(batch.batch_id).state is State.COMPLETE

    def test_a_repeat_changes_nothing(self, world: World) -> None:
        batch, _ = world.batch(5)
        first = world.ledger.close(batch.batch_id)
        world.clock.advance(1_000)

        assert world.fresh().close(batch.batch_id) == first

    def test_a_repeat_writes_no_word_again(self, world: World) -> None:
        batch, (group,) = world.batch(21)
        world.ledger.ack([group[20]])
        world.ledger.close(batch.batch_id)
        writes = world.accesses.writes["words.clear"]

        world.fresh().close(batch.batch_id)

        assert world.accesses.writes["words.clear"] == writes > 1

    def test_reads_at_most_one_word_a_level(self) -> None:
        world = World(width=64)
        batch, _ = world.batch(2**32 - 1)
        reads = world.accesses.reads.total()

        world.ledger.close(batch.batch_id)

        assert world.accesses.reads.total() - reads <= 7

    @pytest.mark.parametrize("fresh", [False, True])
    def test_counts_as_activity(self, world: World, fresh: bool) -> None:
        batch, _ = world.batch(5, idle_ttl=1_000)
        world.clock.advance(900_000)

        (world.fresh() if fresh else world.ledger).close(batch.batch_id)

        assert world.row(batch).touched_at > world.clock.at - 100_000

    def test_leaves_an_ended_batch(self, world: World) -> None:
        batch, _ = world.batch(5)
        world.ledger.cancel(batch.batch_id)

        assert world.ledger.close(batch.batch_id).state is State.CANCELLED


class TestCancel:
    @pytest.mark.parametrize("closed", [False, True])
    def test_ends_a_live_batch(self, world: World, closed: bool) -> None:
        batch, _ = world.batch(5, closed=closed)

        ended = world.ledger.cancel(batch.batch_id)

        assert (ended.state, ended.ended_at) == (State.CANCELLED, world.clock.at)

    def test_leaves_a_batch_that_has_ended(self, world: World) -> None:
        batch, _ = world.batch(closed=True)

        assert world.ledger.cancel(batch.batch_id).state is State.COMPLETE


@pytest.mark.parametrize("call", ["close", "cancel", "status", "missing", "failures", "verify"])
class TestEveryCall:
    def test_refuses_an_unknown_batch(self, world: World, call: str) -> None:
        with pytest.raises(BatchNotFound, match="no batch 5"):
            getattr(world.ledger, call)(5)

        assert world.written() == 0

    def test_refuses_a_batch_that_was_removed(self, world: World, call: str) -> None:
        batch, _ = world.batch(closed=True)
        world.ledger.expire(State.COMPLETE, idle_since=world.clock.at + 1)
        writes = world.written()

        for ledger in (world.ledger, world.fresh()):
            with pytest.raises(BatchGone):
                getattr(ledger, call)(batch.batch_id)

        assert world.written() == writes


class TestList:
    def test_shows_the_batches_of_one_state_page_by_page(self, world: World) -> None:
        opened = {world.batch(1)[0].batch_id for _ in range(7)}
        world.batch(closed=True)

        listed: list[Batch] = []
        page = world.ledger.list(State.OPEN, limit=2)
        listed += page.batches
        while page.cursor:
            page = world.ledger.list(State.OPEN, cursor=page.cursor, limit=2)
            listed += page.batches

        assert {batch.batch_id for batch in listed} == opened
        assert len(listed) == 7

    def test_leaves_out_what_is_gone(self, world: World) -> None:
        world.batch(closed=True)
        world.ledger.expire(State.COMPLETE, idle_since=world.clock.at + 1)

        assert world.ledger.list(State.COMPLETE).batches == ()

    @pytest.mark.parametrize("limit", [0, limits.MAX_PAGE + 1, "5"])
    def test_refuses_a_limit_out_of_range(self, world: World, limit: Any) -> None:
        with pytest.raises(InvalidRequest, match="limit"):
            world.ledger.list(State.OPEN, limit=limit)

    def test_refuses_another_listing_s_cursor(self, world: World) -> None:
        for _ in range(3):
            world.batch(1)
        cursor = world.ledger.list(State.OPEN, limit=1).cursor

        for state, text in ((State.CLOSED, cursor), (State.OPEN, "nonsense")):
            with pytest.raises(InvalidRequest, match="cursor"):
                world.ledger.list(state, cursor=text)


class TestExpire:
    @pytest.mark.parametrize("state", LIVE)
    def test_orphans_live_batches_without_activity_since(self, world: World, state: State) -> None:
        idle, _ = world.batch(3, closed=state is State.CLOSED)
        world.clock.advance(40 * HOUR)
        since = world.clock.at
        active, _ = world.batch(4, closed=state is State.CLOSED)

        assert world.ledger.expire(state, idle_since=since - 20 * HOUR) == Expired(1, 3)
        assert world.row(idle).state is State.ORPHANED
        assert world.row(active).state is state

    def test_spares_a_batch_whose_activity_is_only_known_to_a_tenth(self, world: World) -> None:
        # Given a batch touched just now, whose row says some time ago
        batch, _ = world.batch(3, closed=True)
        touched_at = world.row(batch).touched_at
        assert touched_at < world.clock.at - 1
        world.clock.advance(1)

        assert world.ledger.expire(State.CLOSED, idle_since=world.clock.at - 1) == Expired()
        assert world.ledger.expire(State.CLOSED, idle_since=world.clock.at) == Expired(1, 3)

    def test_completes_a_batch_that_is_done_after_all(self, world: World) -> None:
        # Given a batch whose last acknowledgement died before it could complete it
        batch, (group,) = world.batch(3, closed=True)
        world.crash_at("words.clear", "after")
        with pytest.raises(Crash):
            world.ledger.ack(list(group))

        assert world.fresh().expire(State.CLOSED, idle_since=world.clock.at + 1) == Expired()
        assert world.row(batch).state is State.COMPLETE

    def test_leaves_a_batch_that_is_closed_meanwhile(self, world: World) -> None:
        batch, _ = world.batch(3)
        world.at("batches.end", "before", lambda: world.fresh().close(batch.batch_id))

        assert world.ledger.expire(State.OPEN, idle_since=world.clock.at + 1) == Expired()
        assert world.row(batch).state is State.CLOSED

    def test_goes_through_all_pages(self, world: World) -> None:
        for _ in range(150):
            world.batch(2)

        assert world.ledger.expire(State.OPEN, idle_since=world.clock.at + 1) == Expired(150, 300)

    def test_removes_ended_batches_once(self, world: World) -> None:
        batch, (group,) = world.batch(3)
        world.ledger.ack(ranges=[ItemRange(group.prefix)])
        world.ledger.close(batch.batch_id)

        assert world.ledger.expire(State.COMPLETE, idle_since=world.clock.at + 1) == Expired(1, 3)
        assert world.ledger.expire(State.COMPLETE, idle_since=world.clock.at + 1) == Expired()
