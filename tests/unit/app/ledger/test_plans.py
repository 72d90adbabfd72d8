"""Parsing requests: what is named, batch by batch, and what is refused alone."""

from typing import Any

import pytest

from fanin.app.ledger.plans import Named, Share, Span, shares_of
from fanin.domain import ids
from fanin.domain.marks import Count, Done, Failure, ItemRange, Malformed, Mark
from fanin.domain.totals import MAX_VALUE
from fanin.errors import FaninError, InvalidItemId, InvalidRequest

SALT = bytes(16)
EARLY = ids.issue(7, 10, 5, SALT)
LATE = ids.issue(7, 100, 50, SALT)
OTHER = ids.issue(9, 0, 8, SALT)
LAST = ids.issue(10, 0, 8, SALT)


def item(block: ids.Block, index: int) -> str:
    return f"{block.prefix}:{index}"


def parse(*marks: Any) -> tuple[dict[int, Share], dict[int, FaninError]]:
    refused: dict[int, FaninError] = {}
    return shares_of(marks, refused, MAX_VALUE), refused


MIXED: list[Mark] = [
    item(OTHER, 3),
    ItemRange(LATE.prefix, 10, 20),
    Failure(item(EARLY, 4), "torn", totals={"rows": 1}),
    Count(8, 2, {"rows": 5}),
    Done(item(LATE, 1), {"rows": 2}),
    item(OTHER, 0),
    ItemRange(LAST.prefix, 1),
    Done(item(EARLY, 4)),
    Count(8, 3),
]


def test_everything_is_grouped_by_batch_in_the_order_it_is_named_with_its_place():
    shares, refused = parse(*MIXED)

    assert refused == {}
    assert list(shares.items()) == [
        (9, Share(9, [Named(OTHER, [0, 5], [3, 0])])),
        (
            7,
            Share(
                7,
                [Named(EARLY, [2, 7], [14, 14]), Named(LATE, [4], [101])],
                [Span(1, LATE, 110, 120)],
                detailed=[2, 4, 7],
            ),
        ),
        (8, Share(8, counts={3: 2, 8: 3}, detailed=[3, 8])),
        (10, Share(10, [], [Span(6, LAST, 1, 8)])),
    ]


def test_a_share_knows_its_numbers_places_and_how_far_it_reaches():
    shares, _ = parse(*MIXED)

    assert [share.total for share in shares.values()] == [2, 13, 5, 7]
    assert [share.stop for share in shares.values()] == [8, 150, 0, 8]
    assert [sorted(share.places) for share in shares.values()] == [[0, 5], [1, 2, 4, 7], [3, 8], [6]]
    assert shares[7].items == [(2, 14), (4, 101), (7, 14)]


def test_a_share_goes_on_without_the_marks_that_are_left_out():
    shares, _ = parse(*MIXED)

    assert shares[7].without([1, 2, 4]) == Share(7, [Named(EARLY, [7], [14])], detailed=[7])
    assert shares[8].without({3}) == Share(8, counts={8: 3}, detailed=[8])


BAD_IDS = ["", "7", "::", EARLY.prefix, f"{EARLY.prefix}:5", f"{EARLY.prefix}:x", f"{EARLY.prefix}:01"]


@pytest.mark.parametrize("bad", [*BAD_IDS, 5, b"x", None, "1:00000000-0000-8000-8000-000000000000:0"])
def test_a_malformed_id_is_refused_at_its_place_and_others_are_not(bad):
    marks = (item(EARLY, 0), bad, item(EARLY, 1), Failure(bad), Done(bad), Done(item(OTHER, 1)))

    shares, refused = parse(*marks)

    assert sorted(refused) == [1, 3, 4]
    assert {type(error) for error in refused.values()} == {InvalidItemId}
    assert shares[7].named == [Named(EARLY, [0, 2], [10, 11])]
    assert shares[9].named == [Named(OTHER, [5], [1])]


def test_a_batch_of_which_nothing_is_well_formed_has_no_share():
    shares, refused = parse(f"{EARLY.prefix}:5", ItemRange(LATE.prefix, 50))

    assert shares == {}
    assert sorted(refused) == [0, 1]


@pytest.mark.parametrize(
    ("start", "stop", "message"),
    [
        (0, 51, "the end of a range must be a whole number from 1 to 50"),
        (5, 5, "the start of a range must be a whole number from 0 to 4"),
        (50, None, "the start of a range"),
        (-1, 5, "the start of a range"),
        (0, 0, "the end of a range"),
    ],
)
def test_a_range_lies_within_its_group(start, stop, message):
    shares, refused = parse(ItemRange(LATE.prefix, 49), ItemRange(LATE.prefix, start, stop))

    assert list(refused) == [1]
    assert message in str(refused[1])
    assert shares[7].spans == [Span(0, LATE, 149, 150)]


def test_what_cannot_be_read_or_is_out_of_bounds_is_refused_alone():
    malformed = InvalidRequest("no mark")

    shares, refused = parse(
        Malformed(malformed), Done(item(EARLY, 0), {"rows": MAX_VALUE + 1}), Count(7, 0), item(EARLY, 0)
    )

    assert refused[0] is malformed
    assert sorted(refused) == [0, 1, 2]
    assert shares[7] == Share(7, [Named(EARLY, [3], [10])])
