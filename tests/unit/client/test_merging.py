"""Merging the answers to one call that was sent as several requests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.client.merging import merge_receipts, merge_verdicts
from fanin.domain.acks import Receipt
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.reports import Verdict

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


def test_no_receipts_merge_to_none() -> None:
    assert merge_receipts([]) == []


@pytest.fixture
def row() -> Batch:
    return LedgerService(Memory().ports()).open(OpenBatch())


def test_a_verdict_on_one_page_is_the_verdict(row: Batch) -> None:
    verdict = Verdict(row, 3, ("x",), repaired=True)
    assert merge_verdicts([verdict]) == verdict


def test_verdicts_add_up_over_pages_and_end_with_the_last_row(row: Batch) -> None:
    # Given three pages, of which the second was repaired
    ended = replace(row, state=State.COMPLETE)
    pages = [
        Verdict(row, 2, ("a",), cursor="2"),
        Verdict(row, 0, ("b", "c"), repaired=True, cursor="4"),
        Verdict(ended, 5),
    ]
    # When, then
    assert merge_verdicts(iter(pages)) == Verdict(ended, 7, ("a", "b", "c"), repaired=True, cursor=None)
