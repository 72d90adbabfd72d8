"""Failures from the first to the last, under hundreds of seeds; and proof that broken ones would not pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from fanin.adapters.memory import MemoryParts
from fanin.app import failures
from fanin.app.ledger.held import Held
from fanin.app.ports.parts import IN_ROW, FailureRow
from tests.stateful.failures_world import simulate
from tests.stateful.scheduler import found_out

SEEDS = 40
ENOUGH = range(250, 650)
"""Seeds within which each of the broken ledgers must be found out."""


def test_no_failure_is_lost_or_sent_under_two_items_whatever_crashes() -> None:
    played = [simulate(seed) for seed in range(SEEDS)]

    # Each thing of interest happened often
    assert sum(one.crossed for one in played) > SEEDS // 10
    assert sum(one.again > 0 for one in played) > SEEDS // 10
    assert sum(one.holds for one in played) > SEEDS // 2


def marks_before_messages(_ports: object, messages: Mapping[Any, bytes], _: object) -> Any:
    """Say where messages are, and keep none."""
    return dict.fromkeys(messages, IN_ROW), {}


def overwrites(self: MemoryParts, batch_id: int, rows: Collection[FailureRow], *, expires_at: int) -> None:
    """Write notes over later ones."""
    self.put_failures(batch_id, rows, expires_at=expires_at)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (Held, "_left", lambda _self, _batch, _places, _unsent: set()),
        (failures, "_keep_messages", marks_before_messages),
        (failures, "_latest", lambda _ports, _batch, _notes: {}),
        (MemoryParts, "update_failures", overwrites),
        (MemoryParts, "delete_messages", lambda _self, _batch_id, _ordinals: None),
    ],
    ids=[
        "what was sent while the batch lived stays taken",
        "a message is not kept",
        "the clock alone orders failures",
        "a late note hides a later one",
        "messages of a removed batch stay",
    ],
)
def test_a_broken_redrive_is_found_out(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, mutant: Any
) -> None:
    monkeypatch.setattr(where, name, mutant)

    assert found_out(simulate, ENOUGH)
