"""Redrives under many seeds; and proof that a broken one would not pass."""

from dataclasses import replace
from typing import Any

import pytest

from fanin.adapters.memory import MemoryParts
from fanin.app.ledger.failed import Held
from fanin.app.ledger.service import LedgerService
from fanin.app.redrives.delivery import RedriveDelivery
from fanin.domain.batch import State
from tests.stateful.redrives import simulate
from tests.stateful.scheduler import found_out

SEEDS = 60
ENOUGH = 240
"""Seeds within which each broken one must be found out."""


def test_no_failure_is_lost_whoever_ends_batches_and_whatever_crashes():
    played = [simulate(seed) for seed in range(SEEDS)]

    # Each thing of interest happened
    assert {"records.put", "parts.mark_redriven", "batches.create"} <= {
        call for one in played for call in one.answers.repeated
    }
    assert any(len(one.memory.channels.queues["https://sqs/work"]) > len(one.sent()) for one in played)
    assert any(len([done for done in one.redrives() if done.items]) > 1 for one in played)
    assert any(done.already for one in played for done in one.redrives() if done.items)
    assert any(one.ended - one.removed for one in played)
    assert any(one.removed for one in played)


def takes_all(self: MemoryParts, batch_id: int, marks: Any, before: Any, *, expires_at: int) -> set[int]:
    """Take failures without looking who has them."""
    return set(marks)


def forgets_the_page(self: RedriveDelivery, batch: Any, run: Any) -> Any:
    """Add the items of a page without the key that names it."""
    number = self._ports.random.bits(32)
    return deliver(self, batch, replace(run, page=replace(run.page, number=number)))


def ends_unseen(self: LedgerService, batch_ids: Any) -> Any:
    """Read batches as they were before, so that nobody sees that one has ended."""
    return {
        n: replace(row, state=State.OPEN) if row.retry_of else row
        for n, row in refresh(self, batch_ids).items()
    }


deliver = RedriveDelivery.deliver
refresh = LedgerService.refresh


@pytest.mark.soak
@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (MemoryParts, "mark_redriven", takes_all),
        (RedriveDelivery, "deliver", forgets_the_page),
        (LedgerService, "refresh", ends_unseen),
        (Held, "_left", lambda _self, _batch, _places, _unsent: set()),
        (Held, "_unsent", lambda _self, _batch_id, _marks: (set(), 0)),
        (Held, "_not_done", lambda _self, _batch_id, _row, ordinals: ordinals),
    ],
    ids=[
        "two take one failure",
        "a repeat adds other items",
        "it sends under items of a batch that has ended",
        "what an ended batch has not done stays taken",
        "what a dead redrive has not sent stays taken",
        "what is done is taken again",
    ],
)
def test_a_broken_redrive_is_found_out(monkeypatch, where, name, mutant):
    monkeypatch.setattr(where, name, mutant)

    assert found_out(simulate, range(ENOUGH))
