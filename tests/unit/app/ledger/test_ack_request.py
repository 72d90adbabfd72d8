"""Parsing acknowledgements and failures: what is named, batch by batch, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.app.ledger.ack_request import Named, Share, Span, parse_ack, parse_failures
from fanin.app.ports.batches import FailureRow
from fanin.domain import ids, limits
from fanin.domain.acks import Count, Failure, ItemRange
from fanin.domain.batch import State
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    InvalidItemId,
    InvalidRequest,
    RequestTooLarge,
)
from tests.unit.app.conftest import World

SALT = bytes(16)
EARLY = ids.issue(7, 10, 5, SALT)
LATE = ids.issue(7, 100, 50, SALT)
OTHER = ids.issue(9, 0, 8, SALT)


def item(block: ids.Block, index: int) -> str:
    return f"{block.prefix}:{index}"


def test_everything_is_grouped_by_batch_in_the_order_it_is_named() -> None:
    # When items, ranges and counts of three batches are named, mixed
    shares = parse_ack(
        [item(OTHER, 3), item(EARLY, 4), item(OTHER, 0)],
        [ItemRange(LATE.prefix, 10, 20), ItemRange(LATE.prefix, 49)],
        [Count(8, 2), Count(7, 1), Count(8, 3)],
    )

    # Then each batch has its share
    assert list(shares.values()) == [
        Share(9, (Named(OTHER, [3, 0]),)),
        Share(7, (Named(EARLY, [14]),), (Span(LATE, 110, 120), Span(LATE, 149, 150)), 1),
        Share(8, counted=5),
    ]
    assert list(shares) == [9, 7, 8]


def test_a_share_knows_its_numbers() -> None:
    share = Share(7, (Named(EARLY, [14, 10, 14]), Named(LATE, [100])), (Span(LATE, 110, 120),), 3)

    assert (share.items, share.ranged, share.counted, share.total) == (4, 10, 3, 17)
    assert share.ordinals == [14, 10, 14, 100]
    assert list(share.blocks) == [EARLY, LATE, LATE]


@pytest.mark.parametrize(
    ("share", "stop"),
    [
        (Share(7, counted=3), 0),
        (Share(7, (Named(EARLY, [10]),)), 15),
        (Share(7, (Named(EARLY, [10]),), (Span(LATE, 100, 101),)), 150),
    ],
)
def test_the_batch_must_reach_to_the_end_of_every_block_that_is_named(share: Share, stop: int) -> None:
    assert share.stop == stop


def test_nothing_has_no_share() -> None:
    assert parse_ack([], [], []) == {}
    assert parse_failures([]) == {}


def test_a_range_without_an_end_goes_to_the_end_of_its_group() -> None:
    shares = parse_ack([], [ItemRange(LATE.prefix, 3)], [])

    assert shares[7].spans == (Span(LATE, 103, 150),)


@pytest.mark.parametrize(
    ("start", "stop", "message"),
    [
        (0, 51, "the end of a range must be a whole number from 1 to 50"),
        (0, 0, "the end of a range"),
        (5, 5, "the start of a range must be a whole number from 0 to 4"),
        (-1, 5, "the start of a range"),
    ],
)
def test_a_range_lies_within_its_group(start: int, stop: int, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_ack([], [ItemRange(LATE.prefix, start, stop)], [])


@pytest.mark.parametrize("bad", ["", "7", EARLY.prefix, f"{EARLY.prefix}:5", f"{EARLY.prefix}:x"])
def test_a_malformed_id_refuses_acks_and_failures_alike(bad: str) -> None:
    with pytest.raises(InvalidItemId):
        parse_ack([item(EARLY, 0), bad], [], [])
    with pytest.raises(InvalidItemId):
        parse_failures([Failure(item(EARLY, 0)), Failure(bad)])


def test_failures_bring_notes_by_ordinal() -> None:
    # When items of two batches have failed, one of them twice
    failures = [
        Failure(item(LATE, 2), "first"),
        Failure(item(OTHER, 1), "broken"),
        Failure(item(EARLY, 0), "late"),
        Failure(item(LATE, 2), "again"),
    ]
    shares = parse_failures(failures)

    # Then both batches have the items, and a note for each
    assert shares == {
        7: Share(
            7,
            (Named(LATE, [102, 102]), Named(EARLY, [10])),
            notes=(
                FailureRow(102, item(LATE, 2), "first"),
                FailureRow(10, item(EARLY, 0), "late"),
                FailureRow(102, item(LATE, 2), "again"),
            ),
        ),
        9: Share(9, (Named(OTHER, [1]),), notes=(FailureRow(1, item(OTHER, 1), "broken"),)),
    }


def test_a_reason_is_not_cut_but_refused() -> None:
    with pytest.raises(InvalidRequest, match="reason must be text of 0 to 1024 characters"):
        parse_failures([Failure(item(EARLY, 0), "r" * (limits.MAX_REASON + 1))])


def test_too_much_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(RequestTooLarge, match="1001 failures"):
        parse_failures([Failure("x")] * (limits.MAX_FAILURES + 1))
    with pytest.raises(RequestTooLarge, match="1001 counts"):
        parse_ack(["x"], [ItemRange("x")], [Count(1, 1)] * (limits.MAX_COUNTS + 1))


class TestRefusal:
    """One bad id refuses the whole call, names itself, and nothing is written."""

    @pytest.fixture(params=["ack", "range", "fail"])
    def call(self, request: pytest.FixtureRequest, world: World) -> Any:
        """Marks good items, and one that may be bad."""
        _, (good,) = world.batch(8)

        def ack(item: str) -> None:
            world.ledger.ack([good[0], item, good[1]])

        def by_range(item: str) -> None:
            prefix, _, index = item.rpartition(":")
            start = int(index) if index.isdecimal() else 0
            world.ledger.ack([good[0]], ranges=[ItemRange(prefix, start, start + 1)])

        def fail(item: str) -> None:
            world.ledger.fail([Failure(good[0], "no"), Failure(item, "no")])

        return {"ack": ack, "range": by_range, "fail": fail}[request.param]

    def refused(self, world: World, call: Any, item: str, *errors: type[Exception]) -> None:
        writes = world.accesses.writes.total()
        with pytest.raises(errors):
            call(item)
        assert world.accesses.writes.total() == writes

    @pytest.mark.parametrize("item", ["", "x", "::", "1:2:3", "1:00000000-0000-8000-8000-000000000000:0"])
    def test_malformed(self, world: World, call: Any, item: str) -> None:
        self.refused(world, call, item, InvalidItemId)

    def test_out_of_range(self, world: World, call: Any) -> None:
        _, (group,) = world.batch(8)

        self.refused(world, call, f"{group.prefix}:8", InvalidRequest)

    def test_forged(self, world: World, call: Any) -> None:
        batch, (group,) = world.batch(8)
        block = ids.parse_prefix(group.prefix)
        larger = block._replace(size=9)
        guessed = ids.issue(batch.batch_id, 0, 8, bytes(16))

        for forged in (larger, guessed, block._replace(check=block.check ^ 1)):
            self.refused(world, call, f"{forged.prefix}:0", InvalidItemId)

    def test_foreign(self, world: World, call: Any) -> None:
        (one, _), (_, (group,)) = world.batch(8), world.batch(8)

        self.refused(world, call, f"{one.batch_id}:{group.id}:0", InvalidItemId)

    def test_not_yet_added(self, world: World, call: Any) -> None:
        """A range that the salt would vouch for, but that was never given out."""
        batch, _ = world.batch(8)
        ahead = ids.issue(batch.batch_id, 8, 8, batch.salt)

        self.refused(world, call, f"{ahead.prefix}:0", InvalidItemId)

    def test_of_an_unknown_batch(self, world: World, call: Any) -> None:
        unknown = ids.issue(5, 0, 8, bytes(16))

        self.refused(world, call, f"{unknown.prefix}:0", BatchNotFound)

    def test_of_a_batch_that_was_removed(self, world: World, call: Any) -> None:
        batch, (group,) = world.batch(8)
        world.ledger.cancel(batch.batch_id)
        world.ledger.expire(State.CANCELLED, idle_since=world.clock.at + 1)
        world.ledger = world.fresh()

        self.refused(world, call, group[0], BatchGone)

    @pytest.mark.parametrize("item", [5, None, b"x"])
    def test_not_text(self, world: World, item: Any) -> None:
        with pytest.raises(InvalidItemId, match="text"):
            world.ledger.ack([item])


class TestLimits:
    def test_as_many_ids_as_a_call_takes(self) -> None:
        world = World(width=64)
        _, (group,) = world.batch(limits.MAX_IDS)

        assert world.ledger.ack(list(group))[0].first == limits.MAX_IDS

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"items": ["x"] * (limits.MAX_IDS + 1)}, "10001 item ids"),
            ({"ranges": [ItemRange("x")] * (limits.MAX_RANGES + 1)}, "1001 ranges"),
            ({"counts": [Count(5, 1)] * (limits.MAX_COUNTS + 1)}, "1001 counts"),
        ],
        ids=["ids", "ranges", "counts"],
    )
    def test_one_more_is_too_many(self, world: World, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(RequestTooLarge, match=message):
            world.ledger.ack(**arguments)

    def test_one_more_failure_is_too_many(self, world: World) -> None:
        with pytest.raises(RequestTooLarge, match="1001 failures"):
            world.ledger.fail([Failure("x")] * (limits.MAX_FAILURES + 1))

    def test_as_many_ranges_and_failures_as_a_call_takes(self) -> None:
        world = World(width=64)
        _, (group,) = world.batch(limits.MAX_RANGES * 2)

        spans = [ItemRange(group.prefix, i, i + 1) for i in range(limits.MAX_RANGES)]
        failures = [Failure(item) for item in group[limits.MAX_RANGES :]]

        assert world.ledger.ack(ranges=spans)[0].ranged == limits.MAX_RANGES
        assert world.ledger.fail(failures)[0].first == limits.MAX_FAILURES
