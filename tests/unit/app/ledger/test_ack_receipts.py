"""Receipts of acknowledgements, read off the bits: who was first, what was done before, what came late."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.app.ledger import ack_receipts
from fanin.app.ledger.ack_request import Named, Share, Span
from fanin.app.ports.words import Cleared, WordKey
from fanin.domain import ids
from fanin.domain.acks import Acks, ItemRange, Receipt
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.tree import Tree
from fanin.errors import Throttled

TREE = Tree(4)
BATCH = Batch(
    batch_id=7,
    salt=bytes(16),
    created_at=0,
    touched_at=0,
    expires_at=9,
    open_idle_ttl=1,
    closed_idle_ttl=1,
    user_key="mine",
    items=40,
)
BLOCK = ids.issue(7, 0, 40, BATCH.salt)


def word(number: int, level: int = 0) -> WordKey:
    return WordKey(7, level, number)


def item(ordinal: int) -> str:
    return f"{BLOCK.prefix}:{ordinal}"


def test_a_plan_has_a_mask_for_every_word_that_is_named() -> None:
    # Given items of two words, and a range whose middle stands higher up
    share = Share(7, (Named(BLOCK, [0, 3, 5]),), (Span(BLOCK, 3, 12),))

    plan = ack_receipts.plan(share, BATCH, TREE)

    assert plan.named == {0: 0b1001, 1: 0b0010}
    assert plan.marks == {word(0): 0b1001, word(1): 0b0010, word(0, level=1): 0b0110}
    assert plan.covered == frozenset()


def test_a_range_and_an_id_of_one_word_are_one_mask() -> None:
    share = Share(7, (Named(BLOCK, [4]),), (Span(BLOCK, 5, 7),))

    assert ack_receipts.plan(share, BATCH, TREE).marks == {word(1): 0b0111}


def test_an_item_named_twice_is_first_once() -> None:
    plan = ack_receipts.plan(Share(7, (Named(BLOCK, [2, 2, 2]),)), BATCH, TREE)

    receipt = ack_receipts.receipt(plan, BATCH, {word(0): Cleared(0b1011, 0b0100)}, TREE)

    assert (receipt.first, receipt.duplicates) == (1, (item(2), item(2)))


def test_items_under_a_marked_range_are_duplicates_whatever_their_bits_say() -> None:
    # Given two words, the second covered by a range that was marked higher up
    plan = ack_receipts.plan(Share(7, (Named(BLOCK, [0, 4]),)), BATCH, TREE)
    outcomes = {word(0): Cleared(0b1110, 0b0001), word(1): Cleared(0b1110, 0b0001)}

    receipt = ack_receipts.receipt(replace(plan, covered=frozenset({1})), BATCH, outcomes, TREE)

    assert (receipt.first, receipt.duplicates) == (1, (item(4),))


SHARE = Share(7, (Named(BLOCK, [3, 1, 3]),), (Span(BLOCK, 4, 8),), 2)


@pytest.mark.parametrize(
    ("change", "complete"),
    [
        ({"state": State.CANCELLED}, False),
        ({"state": State.TIMED_OUT}, False),
        ({"state": State.ORPHANED}, False),
        ({"state": State.COMPLETE, "partial": True}, True),
        ({"state": State.COMPLETE, "mode": Mode.ESTIMATED}, True),
    ],
)
def test_after_any_other_end_everything_is_late(change: dict[str, object], complete: bool) -> None:
    batch = replace(BATCH, **change)  # type: ignore[arg-type]

    assert ack_receipts.ended(SHARE, batch) == Receipt(7, "mine", batch.state, complete, late=9)


SLOW = Throttled("slow down")


def test_a_plan_that_was_carried_out_leaves_nothing() -> None:
    plan = ack_receipts.plan(Share(7, (Named(BLOCK, [0, 6]),), (Span(BLOCK, 3, 12),)), BATCH, TREE)

    done, rest = ack_receipts.split(plan, BATCH, dict.fromkeys(plan.marks, Cleared(0, 1)), TREE)

    assert (done, rest.total) == (plan, 0)


def test_a_plan_is_divided_by_its_words() -> None:
    # Given items of words 0 and 1, and ranges of which one meets word 1 and one a word above
    spans = (Span(BLOCK, 6, 8), Span(BLOCK, 8, 16), Span(BLOCK, 2, 3))
    plan = ack_receipts.plan(Share(7, (Named(BLOCK, [0, 4, 1, 4]),), spans), BATCH, TREE)
    outcomes = {**dict.fromkeys(plan.marks, Cleared(0b0010, 0b1101)), word(1): SLOW, word(0, level=1): SLOW}

    done, rest = ack_receipts.split(plan, BATCH, outcomes, TREE)

    assert rest.acks == Acks(
        items=[item(4), item(4)],
        ranges=[ItemRange(BLOCK.prefix, 6, 8), ItemRange(BLOCK.prefix, 8, 16)],
    )
    assert ack_receipts.receipt(done, BATCH, outcomes, TREE) == Receipt(
        7, "mine", State.OPEN, first=1, duplicates=(item(1),), ranged=1
    )
