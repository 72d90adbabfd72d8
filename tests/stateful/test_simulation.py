"""The ledger under hundreds of seeds; and proof that a broken ledger would not pass.

``make soak`` plays a million others.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from fanin.adapters.memory.words import MemoryWords
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.settle import NOTHING_BROUGHT, Brought, Settling
from fanin.app.ports.words import Clear, Outcome, Tally, WordKey
from fanin.domain.batch import Batch, State
from fanin.domain.tree import positions
from fanin.errors import FaninError
from tests.stateful.scheduler import MOST_LOST
from tests.stateful.simulation import Simulation, simulate

SEEDS = {2: 60, 3: 60, 64: 15}
"""Width → seeds. Each of the broken ledgers below is found out within those of a narrow tree."""
ENOUGH = 800
"""Seeds within which each of the broken ledgers must be found out."""


@pytest.mark.parametrize("width", SEEDS)
def test_the_ledger_is_exact_however_its_steps_interleave_and_crash(width):
    played = [simulate(width, seed) for seed in range(SEEDS[width])]

    # In many worlds with totals duplicates bring other values, and processes die
    totals = [one for one in played if one.totals]
    assert sum(any(one.values.beaten.values()) for one in totals) > len(totals) / 4
    assert sum(bool(one.world.deaths) for one in totals) > len(totals) / 20


def test_what_the_dead_left_is_settled_by_the_reaper_even_if_the_stream_was_lost():
    for seed in range(SEEDS[2] // 2):
        simulate(2, seed, settled=False)


def test_an_outage_ends():
    # Given a fifth of all answers is lost, and the sums of an orphaned batch have hundreds of words
    class Outage(Simulation):
        def play(self) -> None:
            self.scheduler._losing = 0.2
            self.world.send = lambda _: None
            self.run({"producer": self.world.producer(*self.batches, [(200, None)])})
            self.heal()
            self.ends()

    outage = Outage(2, 29)
    # When it is played, Then its end is announced
    outage.play()
    # And only because no more answers were lost
    assert outage.scheduler.lost["notifier"] == MOST_LOST


def test_a_seed_replays_step_by_step():
    # Given two runs of one seed
    runs: tuple[list[str], list[str]] = [], []
    # When they are traced
    for lines in runs:
        simulate(3, 3, lines.append)
    # Then they took the same steps
    assert runs[0] == runs[1]
    assert len(runs[0]) > 100


def test_a_failing_seed_says_how_to_replay_it(monkeypatch):
    monkeypatch.setattr(Settling, "finish", close_and_hope)

    error = next(found for found in map(partial(failure, 2), range(ENOUGH)) if found)

    (note,) = error.__notes__
    assert note.startswith("replay it: python -m tests.stateful.simulation 2 ")


def failure(width: int, seed: int) -> Exception | None:
    try:
        simulate(width, seed)
    except (AssertionError, FaninError, ExceptionGroup) as error:
        return error
    return None


# Tests of the tests: ledgers that are wrong in one step each.


def believe(_self: Settling, _keys: object) -> None:
    """Leave out the consistent look at the batch row after the last write."""


def close_and_hope(self: Settling, batch: Batch) -> Batch:
    """Close without reading the edge of the tree: the ackers will see to it."""
    if batch.state is State.CLOSED and batch.items == 0:
        return self._complete(batch, Tally())
    return batch


def parents_first(
    self: Settling,
    marks: Mapping[WordKey, int],
    *,
    failed: Mapping[WordKey, int] = {},
    brought: Brought = NOTHING_BROUGHT,
) -> dict[WordKey, Outcome]:
    """Write the parent of each word that is about to be finished, and only then the word."""
    words = self.ports.words.read(list(marks))
    doomed = [key for key, mask in marks.items() if words.get(key, self._tree.full) == mask]
    if parents := self._above(dict.fromkeys(doomed, Tally()), {}):
        self.ports.words.clear(
            [Clear(key, mark.mask, 0, carried=mark.carried) for key, mark in parents.items()]
        )
    return try_to_settle(self, marks, failed=failed, brought=brought)


def early(self: KnownBatches, batch_id: int) -> Batch | None:
    """Believe that a batch has all its items while it is open."""
    batch = cached(self, batch_id)
    if batch is not None and batch.state is State.OPEN:
        return replace(batch, state=State.CLOSED)
    return batch


def add_again(self: MemoryWords, clear: Clear, mask: int) -> Any:
    """Add the tallies of bits that others have cleared, with theirs."""
    for position in positions(mask & ~self._words.get(clear.key, self._full)):
        if position in clear.carried:
            self._carry(clear.key, clear.carried[position])
    return attempt(self, clear, mask)


attempt = MemoryWords._attempt
try_to_settle = Settling.try_to_settle
cached = KnownBatches.cached


@pytest.mark.soak
@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (Settling, "_look_again", believe),
        (Settling, "try_to_settle", parents_first),
        (KnownBatches, "cached", early),
        (MemoryWords, "_attempt", add_again),
    ],
    ids=["no look after the last write", "parents first", "size final while open", "tallies added again"],
)
@pytest.mark.parametrize("width", [2, 3])
def test_a_broken_ledger_is_found_out(monkeypatch, where, name, mutant, width):
    # Given a ledger with one step wrong
    monkeypatch.setattr(where, name, mutant)
    # When some hundred seeds are played, Then one of them shows it
    assert any(failure(width, seed) for seed in range(ENOUGH))
