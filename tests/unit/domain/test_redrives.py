"""What a redrive asks for beyond a selection."""

import pytest

from fanin.domain.failures import error_of
from fanin.domain.redrives import OrdinalRange, Redrive, RedriveState, Redriving, Selection
from fanin.errors import InvalidRequest, RequestTooLarge


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Redrive(queue_url=""), "^queue_url must be text of 1 to 1024 characters"),
        (Redrive(errors=[""], queue_url="q"), "^an error must be text"),
    ],
)
def test_a_bad_queue_is_refused_and_a_bad_selection_too(request_, said):
    with pytest.raises(InvalidRequest, match=said):
        request_.check()


def test_it_is_finished_or_not():
    assert Redriving("a", 1, None, RedriveState.FINISHED).finished
    assert not Redriving("a", 1, None, RedriveState.RUNNING).finished


def test_without_conditions_it_means_all():
    assert Selection().takes(7, "anything")


def test_ranges_and_errors_must_both_match():
    selection = Selection(errors=["no customer"], ranges=[OrdinalRange(0, 3), OrdinalRange(8, 9)])

    assert [n for n in range(10) if selection.takes(n, "no customer 812")] == [0, 1, 2, 8]
    assert not selection.takes(0, "no price")
    assert (selection.stop, Selection().stop) == (9, None)


@pytest.mark.parametrize(
    "error", ["no customer <n> in <text>", "no customer 5 in 'x'", "no customer", "no customer 77"]
)
def test_an_error_is_named_by_its_group_by_a_reason_or_by_its_beginning(error):
    assert Selection(errors=["disk", error]).takes(0, "no customer 812 in 'b'")
    assert not Selection(errors=["customer"]).takes(0, "no customer 812 in 'b'")


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (Selection(ranges=[OrdinalRange(3, 3)]), "the start of a range must be a whole number from 0 to 2"),
        (Selection(ranges=[OrdinalRange(-1, 2)]), "the start of a range must be a whole number from 0 to 1"),
        (Selection(ranges=[OrdinalRange(0, 0)]), "the end of a range must be a whole number from 1"),
        (Selection(ranges=[OrdinalRange(0, 2**41)]), "the end of a range must be a whole number from 1"),
        (Selection(errors=[""]), "an error must be text of 1 to 1024 characters"),
    ],
)
def test_what_cannot_match_is_refused(selection, said):
    with pytest.raises(InvalidRequest, match=said):
        selection.check()


def test_too_much_is_refused():
    with pytest.raises(RequestTooLarge, match="101 errors"):
        Selection(errors=["e"] * 101).check()
    with pytest.raises(RequestTooLarge, match="1001 ranges"):
        Selection(ranges=[OrdinalRange(0, 1)] * 1_001).check()


def test_errors_that_would_not_fit_the_record_of_a_redrive_are_refused():
    """DynamoDB takes 400 KB a row, and JSON may write a byte of UTF-8 as six."""
    Selection(errors=["é" * 1_000] * 16).check()

    with pytest.raises(RequestTooLarge, match="34000 bytes of errors in one call; send at most 32768"):
        Selection(errors=["é" * 1_000] * 17).check()


def test_each_error_of_a_selection_is_looked_at_once():
    """A release compares a hundred errors with the reasons of a thousand failures."""
    selection = Selection(errors=[f"row {n} has no {'x' * n} price" for n in range(100)])
    selection.takes(0, "nothing of the kind")
    before = error_of.cache_info().misses

    assert not any(selection.takes(n, f"another reason, {'y' * n}") for n in range(10))

    assert error_of.cache_info().misses - before == 10
