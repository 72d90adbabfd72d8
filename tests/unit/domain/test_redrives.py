"""Which failures a redrive takes."""

from __future__ import annotations

import pytest

from fanin.domain.limits import MAX_ERRORS
from fanin.domain.redrives import Redrive, RedriveState, Redriving
from fanin.domain.selection import OrdinalRange
from fanin.errors import InvalidRequest, RequestTooLarge


@pytest.mark.parametrize(
    ("errors", "reason", "taken"),
    [
        ([], "anything", True),
        (["row <n> of <text>"], "row 8 of 'a'", True),
        (["row <n>"], "row 8 of 'a'", True),
        (["row 12"], "row 8 of 'a'", True),  # a reason as people read it stands for all that are like it
        (["of"], "row 8 of 'a'", False),
        (["disk", "row"], "row 8", True),
    ],
)
def test_errors_are_selected_by_what_they_have_in_common_or_its_beginning(errors, reason, taken):
    assert Redrive(errors=errors).takes(0, reason) is taken


def test_ranges_end_before_their_stop():
    request = Redrive(ranges=[OrdinalRange(2, 4), OrdinalRange(9, 10)])
    assert [n for n in range(12) if request.takes(n, "x")] == [2, 3, 9]
    assert request.stop == 10
    assert Redrive().stop is None


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (Redrive(errors=["x"] * (MAX_ERRORS + 1)), RequestTooLarge),
        (Redrive(errors=[""]), InvalidRequest),
        (Redrive(ranges=[OrdinalRange(-1, 2)]), InvalidRequest),
        (Redrive(ranges=[OrdinalRange(2, 2)]), InvalidRequest),
        (Redrive(ranges=[OrdinalRange(0, 2**41)]), InvalidRequest),
        (Redrive(queue_url=""), InvalidRequest),
    ],
)
def test_a_bad_selection_is_refused(request_, error):
    with pytest.raises(error):
        request_.check()


def test_it_is_finished_or_not():
    assert Redriving("a", 1, None, RedriveState.FINISHED).finished
    assert not Redriving("a", 1, None, RedriveState.RUNNING).finished
