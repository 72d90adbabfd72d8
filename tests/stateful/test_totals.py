"""Proof that a ledger which adds totals wrongly would not pass ``test_simulation``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fanin.adapters.memory.words import MemoryWords
from fanin.app.ledger.marking import Marking
from fanin.app.ledger.plans import Span
from fanin.app.ledger.settle import Settling
from fanin.app.ports.words import Clear, Tallied, Tally, WordKey
from fanin.domain.batch import Batch
from fanin.domain.totals import plus
from fanin.domain.tree import positions
from tests.stateful.model import Broken
from tests.stateful.simulation import Simulation

ENOUGH = range(400)
"""Seeds within which each of the broken ledgers must be found out."""


def found_out(width: int) -> bool:
    """Whether some seed shows that totals are wrong, and not something else."""
    for seed in ENOUGH:
        simulation = Simulation(width, seed)
        if not simulation.totals:
            continue
        try:
            simulation.play()
        except Broken as broken:
            assert ": the totals " in str(broken)  # noqa: PT017
            return True
    return False


def sums_of(self: MemoryWords, clear: Clear, mask: int) -> None:
    """Add the sums of some bits, and nothing else."""
    for position in positions(mask):
        carried = self._carried.get(clear.key)
        if carried and position in clear.carried:
            carried.sums = plus(carried.sums, clear.carried[position].sums)


def adds_on_a_duplicate(self: MemoryWords, clear: Clear, mask: int) -> Any:
    sums_of(self, clear, mask & ~self._words.get(clear.key, self._full) if not clear.key.level else 0)
    return attempt(self, clear, mask)


def parent_adds_twice(self: MemoryWords, clear: Clear, mask: int) -> Any:
    answer, moved = attempt(self, clear, mask)
    if clear.key.level and moved:
        sums_of(self, clear, mask)
        answer = self._tallied(clear.key)
    return answer, moved


def parent_adds_on_a_duplicate(self: MemoryWords, clear: Clear, mask: int) -> Any:
    sums_of(self, clear, mask & ~self._words.get(clear.key, self._full) if clear.key.level else 0)
    return attempt(self, clear, mask)


def adds_the_whole_of_a_partial_duplicate(self: MemoryWords, clear: Clear, mask: int) -> Any:
    answer, moved = attempt(self, clear, mask)
    if moved and not clear.key.level:
        sums_of(self, clear, clear.mask & ~mask)
        answer = self._tallied(clear.key)
    return answer, moved


def residues_rise_without_sums(self: Settling, words: Mapping[WordKey, Tallied]) -> None:
    rise(self, {key: Tallied(found.word, zeroed(found.tally)) for key, found in words.items()})


def zeroed(tally: Tally) -> Tally:
    return tally._replace(sums=(0,) * len(tally.sums))


def healed_without_sums(self: Settling, done: Mapping[WordKey, Tally]) -> None:
    carry_up(self, {key: zeroed(tally) for key, tally in done.items()})


def passes_over(self: Marking, span: Span, batch: Batch) -> dict[WordKey, int]:
    cover = self._tree.cover(span.start, span.stop, batch.items)
    return {WordKey(batch.batch_id, mark.level, mark.number): mark.mask for mark in cover}


attempt = MemoryWords._attempt
rise = Settling._rise
carry_up = Settling._carry_up


@pytest.mark.soak
@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (MemoryWords, "_attempt", adds_on_a_duplicate),
        (MemoryWords, "_attempt", adds_the_whole_of_a_partial_duplicate),
        (MemoryWords, "_attempt", parent_adds_twice),
        (MemoryWords, "_attempt", parent_adds_on_a_duplicate),
        (Settling, "_rise", residues_rise_without_sums),
        (Settling, "_carry_up", healed_without_sums),
        (Marking, "_cover", passes_over),
    ],
    ids=lambda found: getattr(found, "__name__", "").replace("_", " ") or None,
)
@pytest.mark.parametrize("width", [2, 3])
def test_a_total_that_is_wrong_is_found_out(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, mutant: Any, width: int
) -> None:
    # Given a ledger that adds wrongly in one step
    monkeypatch.setattr(where, name, mutant)

    # When some hundred seeds are played, Then one of them shows it
    assert found_out(width)
