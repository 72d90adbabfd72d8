"""Milestones: a batch that tells how far it is, beside one that does not."""

import random
from collections.abc import Callable, Sequence
from functools import partial

from bench.figures import Figure
from bench.single import READS, WRITES
from bench.totals import MS_PER_ACK
from bench.world import Spent, World, span

ITEMS = 16_384
MILESTONES = (25, 50, 75, 100)
LATE = 10
"""Percent of the items by which a milestone may be late."""


def in_random_order() -> list[Figure]:
    return _measure("random", lambda: random.Random(1).sample(range(ITEMS), ITEMS))  # noqa: S311


def in_order() -> list[Figure]:
    return _measure("ascending", lambda: range(ITEMS))


def _measure(name: str, order: Callable[[], Sequence[int]]) -> list[Figure]:
    spend = partial(_spent, order())
    (spent, late), (without, _) = spend(MILESTONES), spend(())
    note = f"worst of two orders: {name}"
    what = f"of a batch of {ITEMS:,} with the milestones {', '.join(map(str, MILESTONES))}"
    more = spent.writes - without.writes
    return [
        Figure(f"writes {what}, more than without", more, at_most=len(MILESTONES), note=note),
        Figure(f"failed writes {what}", spent.refused - without.refused, at_most=0, note=note),
        Figure(f"reads {what}, for an item", spent.reads / ITEMS, at_most=0.5 + READS, note=note),
        Figure("percent of the items by which a milestone is late, at most", late, at_most=LATE, note=note),
        Figure(f"writes to acknowledge one item {what}", spent.writes / ITEMS, at_most=WRITES, note=note),
    ]


def _spent(order: Sequence[int], milestones: Sequence[int]) -> tuple[Spent, float]:
    """What all acknowledgements cost, and how late a milestone was told, in percent of the items."""
    world = World()
    batch = world.batch(ITEMS, closed=True, milestones=milestones)
    acker, prefix = world.process(), span(batch, 0, ITEMS).prefix
    late, told = 0.0, 0
    with world.spending() as spent:
        for count, ordinal in enumerate(order, 1):
            acker.mark([f"{prefix}:{ordinal}"]).whole()
            world.clock.advance(MS_PER_ACK)
            row = world.memory.batches.changes[-1][1]
            if row.milestone > told:
                told = row.milestone
                late = max(late, 100 * count / ITEMS - told)
    world.check_complete()
    return spent, late
