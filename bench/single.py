"""Acknowledging a large batch one item at a time, from one process that knows the batch."""

import random
from collections.abc import Callable, Iterable

from bench.figures import Figure
from bench.world import World, span

ITEMS = 32_768
MS_PER_ACK = 1  # so that cached rows expire and activity has to be noted, as in a process that runs for long

WRITES, READS = 1.02, 0.02


def in_random_order() -> list[Figure]:
    return _measure("random", lambda: random.Random(1).sample(range(ITEMS), ITEMS))  # noqa: S311


def in_order() -> list[Figure]:
    return _measure("ascending", lambda: range(ITEMS))


def across_words() -> list[Figure]:
    """The first item of every word, then the second, and so on: all words finish at the end."""
    return _measure("one item of every word in turn", lambda: sorted(range(ITEMS), key=lambda i: i % 64))


def _measure(name: str, order: Callable[[], Iterable[int]]) -> list[Figure]:
    world = World()
    batch = world.batch(ITEMS)
    acker, prefix = world.process(), span(batch, 0, ITEMS).prefix
    with world.spending() as spent:
        for count, ordinal in enumerate(order()):
            if count == ITEMS // 2:
                world.ledger.close(batch.batch_id)  # in another process; the acker does not know of it
            acker.mark([f"{prefix}:{ordinal}"]).whole()
            world.clock.advance(MS_PER_ACK)
    world.check_complete()
    what, note = f"to acknowledge one of {ITEMS:,} items", f"worst of three orders: {name}"
    return [
        Figure(f"writes {what}, on average", spent.writes / ITEMS, at_most=WRITES, note=note),
        Figure(f"reads {what}, on average", spent.reads / ITEMS, at_most=READS, note=note),
    ]
