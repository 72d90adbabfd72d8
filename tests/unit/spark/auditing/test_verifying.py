"""What the tasks that verify say about a batch."""

from dataclasses import replace
from typing import Any

import pytest

from fanin.domain.batch import State
from fanin.domain.ids import Group
from fanin.domain.reports import Verdict
from fanin.spark.auditing.driver import SCHEMA, verified_row
from tests.unit.spark.conftest import MemoryStack


def verified(stack: Any, *batch_ids: int, repair: bool = True) -> list[dict[str, Any]]:
    rows = (verified_row(stack, batch_id, repair=repair) for batch_id in batch_ids)
    return [dict.fromkeys(SCHEMA.names) | row for row in rows]


def half_done(stack: MemoryStack) -> tuple[int, Group]:
    tracker = stack.tracker()
    batch = tracker.open().batch_id
    group = tracker.add(batch, 100)
    tracker.close(batch)
    tracker.ack(list(group)[:60])
    return batch, group


def test_a_sound_batch_has_its_pending_items_and_no_findings(stack):
    batch, _ = half_done(stack)
    assert verified(stack, batch) == [
        {
            "batch_id": batch,
            "state": "closed",
            "pending": 40,
            "found": 0,
            "first": None,
            "repaired": False,
            "error": None,
        }
    ]


@pytest.mark.parametrize("repair", [True, False])
def test_a_batch_that_is_done_and_not_complete_is_repaired_if_that_is_asked(stack, repair):
    # Given a batch that is done, whose last move was lost
    batch, group = half_done(stack)
    tracker = stack.tracker()
    tracker.ack(list(group)[60:])
    rows = stack.memory.batches._rows
    rows[batch] = replace(rows[batch], state=State.CLOSED, ended_at=None)

    (told,) = verified(MemoryStack(stack.memory), batch, repair=repair)

    assert (told["found"], told["first"]) == (1, "every item is done, but the batch is not complete")
    assert (told["repaired"], told["state"]) == ((True, "complete") if repair else (False, "closed"))


def test_a_batch_that_is_gone_does_not_hold_up_the_others(stack):
    batch, _ = half_done(stack)
    missing, found = verified(stack, batch + 1, batch)
    assert (missing["error"], missing["state"], missing["repaired"]) == ("batch-not-found", None, False)
    assert (found["error"], found["pending"]) == (None, 40)


def test_the_parts_of_a_large_batch_are_added_up(stack):
    # Given a ledger that verifies in three parts, of which it can repair all but one
    row = stack.tracker().open()
    parts = iter(
        [
            Verdict(row, 5, ("first",), True, "1"),
            Verdict(row, 0, ("second", "third"), False, "2"),
            Verdict(row, 2, (), False, None),
        ]
    )
    asked = []

    class Ledger:
        def verify(self, batch_id: int, *, cursor: str | None = None, repair: bool) -> Verdict:
            asked.append(cursor)
            return next(parts)

    (told,) = verified(type("Stack", (), {"ledger": lambda self: Ledger()})(), row.batch_id)

    assert asked == [None, "1", "2"]
    assert (told["pending"], told["found"], told["first"], told["repaired"]) == (7, 3, "first", False)
