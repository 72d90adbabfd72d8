"""Redrives under hundreds of seeds; and proof that a broken one would not pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fanin.adapters.memory import MemoryParts
from fanin.app.redrives.delivery import Delivery
from fanin.app.redrives.redrive import RedriveService
from fanin.errors import FaninError
from tests.stateful.redrives import simulate

SEEDS = 90
ENOUGH = 240
"""Seeds within which each broken one must be found out."""


def test_each_failure_is_sent_under_one_item_whatever_crashes() -> None:
    for seed in range(SEEDS):
        simulate(seed)


def test_the_seeds_reach_what_matters() -> None:
    played = [simulate(seed) for seed in range(60)]

    assert {"records.put", "parts.mark_redriven", "batches.create"} <= {
        call for one in played for call in one.answers.repeated
    }
    assert any(len(one.memory.channels.queues["https://sqs/work"]) > len(one.sent()) for one in played)
    assert any(len([done for done in one.redrives() if done.items]) > 1 for one in played)
    assert any(done.already for one in played for done in one.redrives() if done.items)
    assert any(one.cancelled - one.removed for one in played)
    assert any(one.removed for one in played)


def fails(seed: int) -> bool:
    try:
        simulate(seed)
    except (AssertionError, FaninError, ValueError):
        return True
    return False


def takes_all(
    self: MemoryParts, batch_id: int, redrive: str, failures: Any, *, again: bool, expires_at: int
) -> set[int]:
    """Take failures without looking who has them."""
    return set(failures)


def forgets_the_page(self: Delivery, batch: Any, run: Any) -> Any:
    """Add the items of a page without the key that names it."""
    number = self._ports.random.bits(32)
    return deliver(self, batch, replace(run, page=replace(run.page, number=number)))


def never_closes(self: Delivery, run: Any) -> None:
    """Leave the new batch open."""


def delivers_first(self: RedriveService, batch: Any, run: Any) -> Any:
    """Go on to the next page although the one before is not delivered."""
    return replace(run, page=replace(run.page, taken=()))


def stops_for_nobody(self: Delivery, *runs: Any) -> bool:
    """Go on although the new batch is cancelled or gone."""
    return False


def stops_at_once(self: RedriveService, batch: Any, run: Any) -> Any:
    """Leave what is taken when the new batch is cancelled."""
    return replace(run, done=True) if self._delivery.stopped(run) else deliver_page(self, batch, run)


deliver = Delivery.deliver
deliver_page = RedriveService._deliver


@pytest.mark.soak
@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (MemoryParts, "mark_redriven", takes_all),
        (Delivery, "deliver", forgets_the_page),
        (Delivery, "close", never_closes),
        (RedriveService, "_take", delivers_first),
        (Delivery, "stopped", stops_for_nobody),
        (RedriveService, "_deliver", stops_at_once),
    ],
    ids=[
        "two take one failure",
        "a repeat adds other items",
        "the new batch stays open",
        "nothing is taken",
        "a cancel stops nothing",
        "a cancel loses what is taken",
    ],
)
def test_a_broken_redrive_is_found_out(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, mutant: Any
) -> None:
    monkeypatch.setattr(where, name, mutant)

    assert any(fails(seed) for seed in range(ENOUGH))
