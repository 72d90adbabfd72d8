"""One call for many items: which fail, with what error, and after how many calls."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.app.bisect import FailedCall, bisect
from fanin.errors import (
    AccessDenied,
    BatchGone,
    BatchNotFound,
    InvalidItemId,
    InvalidRequest,
    ServiceUnavailable,
    Throttled,
)


class Call:
    """A call that raises ``error(item)`` for the first item of which ``error`` says so.

    Attributes:
        calls: the items of every call, in order.
        done: the items of calls that did not raise.
    """

    def __init__(self, error: Callable[[int], Exception | None]) -> None:
        self._error = error
        self.calls: list[Sequence[int]] = []
        self.done: list[int] = []

    def __call__(self, items: Sequence[int]) -> None:
        self.calls.append(items)
        for item in items:
            if error := self._error(item):
                raise error
        self.done += items


def test_items_that_are_all_good_take_one_call_and_none_take_none():
    call = Call(lambda _: None)
    assert bisect(range(1_000), call) == bisect([], call) == []
    assert call.calls == [range(1_000)]


@pytest.mark.parametrize("error", [InvalidRequest, InvalidItemId, BatchNotFound, BatchGone])
def test_a_refused_item_fails_alone_after_few_calls(error):
    # Given 1,000 items, two of which are refused
    call = Call(lambda item: error(f"item {item}") if item in (17, 501) else None)

    failed = bisect(range(1_000), call)
    # Then the two fail with errors of their own, and all others went through once
    assert [(list(one.items), str(one.error), one.refused) for one in failed] == [
        ([17], "item 17", True),
        ([501], "item 501", True),
    ]
    assert call.done == [item for item in range(1_000) if item not in (17, 501)]
    assert len(call.calls) < 45


@settings(max_examples=40)
@given(st.lists(st.booleans(), max_size=40))
def test_exactly_the_refused_items_fail_whatever_their_places(good):
    call = Call(lambda item: None if good[item] else InvalidRequest("bad"))
    failed = bisect(range(len(good)), call)
    assert [item for one in failed for item in one.items] == [i for i, ok in enumerate(good) if not ok]
    assert call.done == [i for i, ok in enumerate(good) if ok]


@pytest.mark.parametrize("error", [Throttled, ServiceUnavailable, AccessDenied])
def test_an_error_that_does_not_blame_the_items_fails_the_whole_call_and_is_not_retried(error):
    raised = error("not now")
    call = Call(lambda _: raised)
    assert bisect([1, 2, 3], call) == [FailedCall([1, 2, 3], raised)]
    assert len(call.calls) == 1
    assert not FailedCall([1], raised).refused


def test_a_half_that_is_throttled_fails_as_a_whole_and_the_other_half_goes_on():
    # Given four items: the first half is throttled once the two are tried without the bad one
    def answer(items: Sequence[int]) -> None:
        if 3 in items:
            raise InvalidRequest("bad")
        if 0 in items:
            raise Throttled("slow down")

    failed = bisect([0, 1, 2, 3], answer)

    assert [(list(one.items), one.refused) for one in failed] == [([0, 1], False), ([3], True)]


def test_a_defect_that_one_item_brings_to_light_fails_that_item_alone_if_asked_and_else_is_raised():
    with pytest.raises(ZeroDivisionError):
        bisect([1, 0, 2], lambda items: [1 // item for item in items])
    (failed,) = bisect([1, 0, 2], lambda items: [1 // item for item in items], on_defect=True)
    assert (failed.items, failed.refused) == ([0], False)
    assert isinstance(failed.error, ZeroDivisionError)


def test_the_end_of_the_process_is_never_caught():
    def stop(_: Sequence[int]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bisect([1, 2], stop, on_defect=True)
