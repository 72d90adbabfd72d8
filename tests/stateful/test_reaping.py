"""Whatever is lost, and nobody repeats, the reaper ends a batch rightly: complete if and only if all is done.

Every acknowledgement, the close and the reaper itself may die at any access. No stream is read and no call is
repeated, so nobody but the reaper heals.
"""

from contextlib import suppress
from random import Random
from typing import Any

import pytest

from fanin.adapters.memory import FixedClock, Memory, SeededRandom
from fanin.app.ledger.reading import Inspected, Reading
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Defaults
from fanin.domain.batch import Batch, OnDeadline, OpenBatch, State
from fanin.domain.marks import ItemRange
from fanin.domain.tree import Tree
from tests.stateful.fuse import Fuse
from tests.stateful.model import Model, require
from tests.stateful.scheduler import Crash

SEEDS = 120
ENOUGH = 400
"""Seeds within which a broken reaper must be found out."""
MINUTE = 60_000


class Neglect:
    """One batch that nobody cares for after its items were acknowledged.

    Args:
        seed: decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(f"reaping/{seed}")
        self.fuse = Fuse()
        self.clock = FixedClock()
        self.memory = Memory(
            tree=Tree(rng.choice((2, 3, 4))),
            clock=self.clock,
            random=SeededRandom(seed),
            on_call=self.fuse.on_call,
        )
        self.ports = self.memory.ports(Defaults(open_idle_ttl=3_600, closed_idle_ttl=7_200))
        self.model = Model()
        self.model.watch(self.memory)

    def play(self) -> Batch:
        """Acknowledge most of a batch or all of it, close it perhaps, and leave it to the reaper.

        Raises:
            Broken: it ended too early, in the wrong state, or not at all.
        """
        rng = self.rng
        deadline = self.clock.at + 30 * MINUTE if rng.random() < 0.3 else None
        ledger = self.process()
        batch_id = ledger.open(
            OpenBatch(deadline=deadline, on_deadline=rng.choice(list(OnDeadline)))
        ).batch_id
        group = ledger.add(batch_id, rng.choice((1, 5, 17, 40, 100)))
        left = list(range(len(group)))
        if rng.random() < 0.5:
            del left[rng.randrange(len(group))]
        rng.shuffle(left)
        while left:
            share = [left.pop() for _ in range(min(len(left), rng.choice((1, 3, 10, 50))))]
            if rng.random() < 0.2:
                spans = [ItemRange(group.prefix, at, at + 1) for at in share]
                self.mortal(lambda ledger, spans=spans: ledger.mark(spans).whole())
            else:
                items = [group[at] for at in share]
                self.mortal(lambda ledger, items=items: ledger.mark(items).whole())
        if rng.random() < 0.9:
            self.mortal(lambda ledger: ledger.close(batch_id))
        return self.reaped(batch_id)

    def process(self) -> LedgerService:
        return LedgerService(self.ports)

    def mortal(self, call: Any) -> None:
        """Make a call in a process that may die, and nobody repeats it."""
        steps = self.rng.randint(0, 12) if self.rng.random() < 0.4 else None
        with suppress(Crash):
            self.fuse.burn(steps, lambda: call(self.process()))

    def reaped(self, batch_id: int) -> Batch:
        for _ in range(200):
            self.clock.advance(5 * MINUTE)
            self.mortal(lambda ledger: ledger.reap())
            row = self.ports.batches.read([batch_id])[batch_id]
            if row.state.terminal:
                break
        done = self.model.marked(row) == set(range(row.items))
        whole = row.state is State.COMPLETE and not row.partial
        require(row.state.terminal, f"{row} lives on")
        require(whole == (done and row.closed_at is not None), f"{row} ended although all is done: {done}")
        return row


def play_all(seeds: int) -> list[Batch]:
    """Play seeds; an error says which."""
    ends = []
    for seed in range(seeds):
        try:
            ends.append(Neglect(seed).play())
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise
    return ends


def test_a_batch_that_is_left_to_the_reaper_ends_as_what_it_is():
    ends = play_all(SEEDS)

    assert {row.state for row in ends} == {State.COMPLETE, State.TIMED_OUT, State.ORPHANED}
    assert {row.partial for row in ends} == {True, False}


@pytest.mark.soak(long=True)
def test_the_same_for_a_long_time():
    play_all(20_000)


inspect = Reading.inspect


def in_a_hurry(ledger: Reading, batch: Batch, *, budget: int = 0) -> Inspected:
    """Believe that what was not looked at is missing."""
    return Inspected(inspect(ledger, batch, budget=2).batch, certain=True)


@pytest.mark.soak
def test_a_broken_one_is_found_out(monkeypatch):
    monkeypatch.setattr(Reading, "inspect", in_a_hurry)

    with pytest.raises(AssertionError):
        play_all(ENOUGH)
