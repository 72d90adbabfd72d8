"""Parsing acknowledgements and failures: what is named, batch by batch, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from fanin.app.ledger.ack_request import Named, Share, Span, parse_ack, parse_failures
from fanin.app.ports.parts import FailureRow
from fanin.domain import ids, limits
from fanin.domain.acks import Acks, Count, Failure, ItemRange, Result
from fanin.errors import InvalidItemId, InvalidRequest, RequestTooLarge

SALT = bytes(16)
EARLY = ids.issue(7, 10, 5, SALT)
LATE = ids.issue(7, 100, 50, SALT)
OTHER = ids.issue(9, 0, 8, SALT)
LAST = ids.issue(10, 0, 8, SALT)


def item(block: ids.Block, index: int) -> str:
    return f"{block.prefix}:{index}"


def test_everything_is_grouped_by_batch_in_the_order_it_is_named_items_before_ranges_before_counts() -> None:
    # When items, ranges and counts of four batches are named, mixed
    shares = parse_ack(
        [item(OTHER, 3), item(EARLY, 4), item(OTHER, 0)],
        [ItemRange(LATE.prefix, 10, 20), ItemRange(LAST.prefix, 1), ItemRange(LATE.prefix, 49)],
        [Count(8, 2), Count(7, 1), Count(8, 3)],
    )

    # Then each batch has its share
    assert list(shares.values()) == [
        Share(9, (Named(OTHER, [3, 0]),)),
        Share(7, (Named(EARLY, [14]),), (Span(LATE, 110, 120), Span(LATE, 149, 150)), 1),
        Share(10, (), (Span(LAST, 1, 8),)),
        Share(8, counted=5),
    ]
    assert list(shares) == [9, 7, 10, 8]


def test_a_share_knows_its_numbers() -> None:
    share = Share(7, (Named(EARLY, [14, 10, 14]), Named(LATE, [100])), (Span(LATE, 110, 120),), 3)

    assert (share.items, share.ranged, share.counted, share.total) == (4, 10, 3, 17)
    assert share.ordinals == [14, 10, 14, 100]
    assert list(share.blocks) == [EARLY, LATE, LATE]


def test_a_share_as_a_request_names_exactly_what_was_named() -> None:
    """A caller repeats it as it is, so ranges count from the beginning of their group."""
    items = [item(LATE, 0), item(EARLY, 4), item(LATE, 49)]
    ranges = [ItemRange(LATE.prefix, 10, 20), ItemRange(EARLY.prefix, 0, 5)]

    acks = parse_ack(items, ranges, [Count(7, 3)])[7].acks

    assert acks == Acks(
        items=[item(LATE, 0), item(LATE, 49), item(EARLY, 4)], ranges=ranges, counts=[Count(7, 3)]
    )


def test_a_share_as_a_request_brings_exactly_what_was_brought() -> None:
    # Given items of an estimated batch, which counts each as often as it is named
    results = [
        Result(item(EARLY, 0), {"rows": 5}),
        Result(item(EARLY, 2), {"rows": 1}),
        Result(item(EARLY, 2), {"rows": 2}),
    ]
    counts = [Count(7, 1, {"rows": 2**53}), Count(7, 3, {"rows": 2**53}), Count(7, 4)]

    # When they are the rest of a call
    rest = parse_ack([item(EARLY, 0), item(EARLY, 1)], [], counts, results)[7].acks

    # Then a repeat of it counts the same, and is allowed; an item with values is not named without them, too
    assert (rest.items, rest.results) == ([item(EARLY, 1)], results)
    assert rest.counts == [Count(7, 7, {"rows": 2**53}), Count(7, 1, {"rows": 2**53})]
    assert parse_ack([], [], rest.counts)[7].counted == 8


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


@pytest.mark.parametrize(
    ("start", "stop", "message"),
    [
        (0, 51, "the end of a range must be a whole number from 1 to 50"),
        (0, 0, "the end of a range"),
        (0, True, "the end of a range"),
        (5, 5, "the start of a range must be a whole number from 0 to 4"),
        (50, None, "the start of a range"),
        (-1, 5, "the start of a range"),
        ("0", 5, "the start of a range"),
    ],
)
def test_a_range_lies_within_its_group(start: Any, stop: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_ack([], [ItemRange(LATE.prefix, start, stop)], [])


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (Count(-1, 1), "^batch_id must be a whole number from 0 to"),
        (Count(2**53, 1), "^batch_id must be"),
        (Count(7, 0), "^n must be a whole number from 1 to"),
        (Count(7, 2**32), "^n must be"),
        (Count(7, True), "^n must be"),
    ],
)
def test_a_count_names_a_batch_and_at_least_one_item(count: Count, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_ack([], [], [Count(7, 1), count])


@pytest.mark.parametrize(
    "bad", ["", "7", "::", EARLY.prefix, f"{EARLY.prefix}:5", f"{EARLY.prefix}:x", 5, b"x"]
)
def test_a_malformed_id_refuses_acks_and_failures_alike(bad: Any) -> None:
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


@pytest.mark.parametrize("reason", ["r" * (limits.MAX_REASON + 1), None])
def test_a_reason_is_not_cut_but_refused(reason: Any) -> None:
    parse_failures([Failure(item(EARLY, 0), "r" * limits.MAX_REASON)])
    with pytest.raises(InvalidRequest, match="reason must be text of 0 to 1024 characters"):
        parse_failures([Failure(item(EARLY, 0), reason)])


def test_too_much_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(RequestTooLarge, match="1001 failures in"):
        parse_failures([Failure("x")] * (limits.MAX_FAILURES + 1))
    with pytest.raises(RequestTooLarge, match="10001 item ids in"):
        parse_ack(["x"] * (limits.MAX_IDS + 1), [ItemRange("x")], [Count(1, 1)])
    with pytest.raises(RequestTooLarge, match="1001 ranges in"):
        parse_ack(["x"], [ItemRange("x")] * (limits.MAX_RANGES + 1), [Count(1, 1)])
    with pytest.raises(RequestTooLarge, match="1001 counts in"):
        parse_ack(["x"], [ItemRange("x")], [Count(1, 1)] * (limits.MAX_COUNTS + 1))


class TestRest:
    """What is left of a share is asked for again as it was."""

    def test_of_failures_has_their_reasons_and_values(self) -> None:
        failures = [
            Failure(item(LATE, 2), "first", totals={"rows": 1}),
            Failure(item(EARLY, 0), "late"),
            Failure(item(LATE, 2), "no", totals={"rows": 2}),
        ]
        (share,) = parse_failures(failures).values()

        assert share.acks == Acks(failures=failures)


def test_an_item_with_a_result_is_named_once_although_items_name_it_too() -> None:
    result = Result(item(LATE, 2), {"rows": 1})
    (share,) = parse_ack([item(LATE, 2), item(EARLY, 0)], (), (), [result]).values()

    assert share == Share(7, (Named(EARLY, [10]), Named(LATE, [102])), results=((102, {"rows": 1}),))
