"""Marks and the verdicts on them: what is left out takes its default, and verdicts add up."""

import pytest

from fanin.domain import limits
from fanin.domain.batch import State
from fanin.domain.failures import KeptMessage
from fanin.domain.marks import (
    Count,
    Done,
    Failure,
    ItemRange,
    Malformed,
    Marked,
    Receipt,
    batch_of,
    checked,
    merge,
    weight,
)
from fanin.domain.totals import MAX_VALUE
from fanin.errors import InvalidItemId, InvalidRequest, OutcomeUnknown, Throttled

BAD, BUSY, LOST = InvalidRequest("bad"), Throttled("busy"), OutcomeUnknown("lost")


def test_what_is_left_out_takes_its_default():
    assert ItemRange("1:g") == ItemRange("1:g", start=0, stop=None)
    assert Failure("1:g:0") == Failure("1:g:0", "", None, 0, "", {})
    assert Receipt(1, "mine", State.OPEN) == Receipt(1, "mine", State.OPEN, False, 0, 0, (), 0, 0, 0)


def test_equal_marks_are_one_in_a_set():
    twice = [ItemRange("1:g", 0, 3), Count(1, 2), Failure("1:g:0", "broken"), Done("1:g:0", {"rows": 1})]

    assert len({*twice, *twice}) == 4


@pytest.mark.parametrize(
    ("mark", "weighs", "batch_id"),
    [
        ("7:g:1", 1, 7),
        (Done("7:g:1"), 1, 7),
        (Failure("7:g:1"), 10, 7),
        (ItemRange("7:g"), 10, 7),
        (Count(7, 1), 10, 7),
        (Malformed(BAD), 1, None),
        ("nonsense", 1, None),
        ("9" * 5_000, 1, None),
        (Done(None), 1, None),
    ],
)
def test_a_mark_has_a_weight_and_is_for_one_batch_or_malformed(mark, weighs, batch_id):
    assert (weight(mark), batch_of(mark)) == (weighs, batch_id)


@pytest.mark.parametrize(
    "mark",
    [
        "whatever",
        Done("i", {"rows": MAX_VALUE}),
        Failure("i", "r" * limits.MAX_REASON, KeptMessage("body"), limits.MAX_ATTEMPTS, "q", {"rows": -1}),
        ItemRange("g", 0, 1),
        Count(0, 1),
    ],
)
def test_a_mark_within_its_bounds_is_returned_as_it_is(mark):
    assert checked(mark) is mark


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        (Done("i", {"rows": MAX_VALUE + 1}), "a whole number"),
        (Failure("i", "r" * (limits.MAX_REASON + 1)), "reason must be text of 0 to 1024 characters"),
        (Failure("i", None), "reason must be text"),
        (Failure("i", attempts=-1), "attempts must be"),
        (Failure("i", source="q" * (limits.MAX_CHANNEL + 1)), "source must be"),
        (Failure("i", totals={"rows": 1.5}), "a whole number"),
        (Failure("i", message=KeptMessage(5)), "body"),
        (ItemRange("g", -1, 5), "the start of a range"),
        (ItemRange("g", 0, 0), "the end of a range"),
        (Count(-1, 1), "^batch_id must be a whole number from 0 to"),
        (Count(7, 0), "^n must be a whole number from 1 to"),
        (Count(7, 1, {"rows": "1"}), "a whole number"),
        (Malformed(BAD), "bad"),
    ],
)
def test_a_mark_out_of_its_bounds_is_refused(mark, why):
    with pytest.raises(InvalidRequest, match=why):
        checked(mark)


@pytest.mark.parametrize("mark", [5, None, b"7:g:0", ["7:g:0"], Done(5), Failure(None), ItemRange(b"g")])
def test_what_has_no_text_for_an_id_is_no_mark(mark):
    with pytest.raises(InvalidItemId):
        checked(mark)


def test_values_of_an_item_may_be_bounded_higher():
    mark = Done("i", {"rows": MAX_VALUE + 1})

    assert checked(mark, MAX_VALUE + 1) is mark


class TestMarked:
    receipts = (Receipt(7, "", State.OPEN, first=1),)

    def test_whole_gives_receipts_or_the_error_that_may_be_repeated_before_others(self):
        assert Marked(self.receipts).whole() == list(self.receipts)
        for marked, error in (
            (Marked(self.receipts, {0: BAD}, {2: BUSY}, {1: LOST}), Throttled),
            (Marked(self.receipts, {0: BAD}, {}, {1: LOST}), OutcomeUnknown),
            (Marked(self.receipts, {0: BAD}), InvalidRequest),
        ):
            with pytest.raises(error):
                marked.whole()

    def test_names_all_that_is_not_settled_in_order(self):
        assert list(Marked((), {4: BAD}, {2: BUSY}, {3: LOST}).unsettled) == [2, 3, 4]

    def test_of_a_part_has_the_places_of_the_whole(self):
        part = Marked(self.receipts, {0: BAD}, {1: BUSY}, {2: LOST})

        assert part.at([4, 8, 9, 5]) == Marked(self.receipts, {4: BAD}, {8: BUSY}, {9: LOST})

    def test_of_several_requests_is_one(self):
        one = Marked([Receipt(7, "", State.CLOSED, True, 3, 1, ("a",), 1, 2, 1)], {0: BAD}, {1: BUSY})
        two = Marked(
            [Receipt(8, "", State.OPEN), Receipt(7, "m", State.COMPLETE, False, 1, 1, ("b",), 1, 1, 1)],
            {5: BAD},
            {},
            {6: LOST},
        )

        assert merge([one, two]) == Marked(
            [Receipt(7, "m", State.COMPLETE, True, 4, 2, ("a", "b"), 2, 3, 2), Receipt(8, "", State.OPEN)],
            {0: BAD, 5: BAD},
            {1: BUSY},
            {6: LOST},
        )
