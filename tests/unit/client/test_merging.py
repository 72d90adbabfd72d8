"""Merging the answers to one call that was sent as several requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.client.merging import mark_all, merge_receipts, merge_verdicts, repeat_rest
from fanin.domain.acks import Acks, Count, Receipt
from fanin.domain.batch import OpenBatch, State
from fanin.domain.reports import Verdict
from fanin.errors import BatchGone, FaninError, OutcomeUnknown, PartlyMarked, ServiceUnavailable, Throttled

FIRST = Receipt(7, "k", State.OPEN, complete=False, first=2, duplicates=("a",), ranged=10, late=0)
SECOND = Receipt(7, "k", State.CLOSED, complete=True, first=3, duplicates=("b", "c"), ranged=0, late=4)
OTHER = Receipt(8, "", State.OPEN, complete=False, first=1)


def test_receipts_of_one_batch_add_up_and_have_its_last_state() -> None:
    assert merge_receipts([FIRST, SECOND]) == [
        Receipt(7, "k", State.CLOSED, complete=True, first=5, duplicates=("a", "b", "c"), ranged=10, late=4)
    ]


def test_a_batch_that_completed_in_between_stays_complete() -> None:
    late = replace(FIRST, complete=False, first=0, late=1)
    (merged,) = merge_receipts([SECOND, late])
    assert merged.complete


def test_batches_keep_the_order_in_which_they_first_appear() -> None:
    merged = merge_receipts([OTHER, FIRST, OTHER, SECOND])
    assert [(receipt.batch_id, receipt.first) for receipt in merged] == [(8, 2), (7, 5)]


def test_verdicts_add_up_over_pages_and_end_with_the_last_row() -> None:
    # Given three pages, of which the second was repaired and says something of the first again
    row = LedgerService(Memory().ports()).open(OpenBatch())
    ended = replace(row, state=State.COMPLETE)
    pages = [
        Verdict(row, 2, ("a",), cursor="2"),
        Verdict(row, 0, ("a", "b", "c"), repaired=True, cursor="4"),
        Verdict(ended, 5),
    ]
    # When, then
    assert merge_verdicts(iter(pages)) == Verdict(ended, 7, ("a", "b", "c"), repaired=True, cursor=None)


class TestRepeatRest:
    @staticmethod
    def one_at_a_time(calls: list[Acks]) -> Callable[[Acks], list[Receipt]]:
        """A service that marks one item of a call."""

        def call(acks: Acks) -> list[Receipt]:
            calls.append(acks)
            receipt = Receipt(7, "k", State.OPEN, first=1)
            if len(acks.items) == 1:
                return [receipt]
            raise PartlyMarked("slow down", receipts=[receipt], rest=Acks(items=acks.items[1:]))

        return call

    def test_what_is_left_is_sent_again_until_nothing_is(self) -> None:
        calls: list[Acks] = []
        waits: list[float] = []
        backoff = Backoff(tries=3, base=1, cap=9, sleep=waits.append, fraction=lambda: 1.0)

        receipts = repeat_rest(self.one_at_a_time(calls), Acks(items=["a", "b", "c"]), backoff)

        assert [acks.items for acks in calls] == [["a", "b", "c"], ["b", "c"], ["c"]]
        assert [receipt.first for receipt in merge_receipts(receipts)] == [3]
        assert waits == [1, 2]

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (Throttled, PartlyMarked),
            (ServiceUnavailable, PartlyMarked),
            (BatchGone, PartlyMarked),
            (OutcomeUnknown, OutcomeUnknown),
        ],
    )
    def test_a_repeat_that_marks_nothing_leaves_what_it_was_for_unless_its_outcome_is_unknown(
        self, error: type[FaninError], told: type[FaninError]
    ) -> None:
        """A bare refusal would say that nothing was marked, and the whole call would be repeated."""
        first = self.one_at_a_time([])

        def call(acks: Acks) -> list[Receipt]:
            if acks.items == ["a", "b"]:
                return first(acks)
            raise error("not now")

        with pytest.raises(told, match="not now") as found:
            repeat_rest(call, Acks(items=["a", "b"]), Backoff(sleep=lambda _: None))
        if isinstance(found.value, PartlyMarked):
            assert found.value.rest.items == ["b"]
            assert [receipt.first for receipt in found.value.receipts] == [1]

    def test_a_call_that_marks_nothing_is_not_repeated(self) -> None:
        calls: list[Acks] = []

        def call(acks: Acks) -> list[Receipt]:
            calls.append(acks)
            raise Throttled("slow down")

        with pytest.raises(Throttled) as found:
            repeat_rest(call, Acks(items=["a"]), Backoff(sleep=lambda _: None))
        assert (type(found.value), len(calls)) == (Throttled, 1)


class TestMarkAll:
    """One call of the caller is made as several requests."""

    @staticmethod
    def marking(*answers: list[Receipt] | Exception) -> Callable[[Acks], list[Receipt]]:
        left = iter(answers)

        def mark(_acks: Acks) -> list[Receipt]:
            answer = next(left)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return mark

    def test_what_one_request_leaves_and_all_behind_it_are_the_rest(self) -> None:
        # Given four requests, of which the second is marked in part
        requests = [Acks(items=[name]) for name in ("a", "b", "c", "d")]
        partly = PartlyMarked("busy", receipts=[SECOND], rest=Acks(items=["b2"]))

        # When they are made
        with pytest.raises(PartlyMarked) as found:
            mark_all(self.marking([FIRST], partly), requests)

        # Then nothing is missing from what was marked, nor from what was not
        assert found.value.rest.items == ["b2", "c", "d"]
        assert found.value.receipts == merge_receipts([FIRST, SECOND])

    @pytest.mark.parametrize("error", [Throttled("busy"), ServiceUnavailable("down")])
    def test_a_request_that_marks_nothing_behind_one_that_did_is_left_whole(self, error: Exception) -> None:
        requests = [Acks(items=["a"]), Acks(items=["b"], counts=[Count(9, 2)])]
        with pytest.raises(PartlyMarked) as found:
            mark_all(self.marking([FIRST], error), requests)
        assert (found.value.rest.items, found.value.rest.counts) == (["b"], [Count(9, 2)])

    def test_nothing_marked_is_told_as_it_is(self) -> None:
        with pytest.raises(Throttled) as found:
            mark_all(self.marking(Throttled("busy")), [Acks(items=["a"])])
        assert not isinstance(found.value, PartlyMarked)

    def test_all_marked_gives_one_receipt_a_batch(self) -> None:
        requests = [Acks(items=["a"]), Acks(items=["b"])]
        assert mark_all(self.marking([FIRST], [SECOND]), requests) == merge_receipts([FIRST, SECOND])
