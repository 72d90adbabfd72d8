"""How fast one core parses item ids."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

from bench.figures import Figure
from bench.world import World, span
from fanin.domain import ids
from fanin.domain.limits import MAX_IDS
from fanin.domain.tree import Tree

PARSE_ROUNDS = 50
ITEMS = 1_000_000


def parsing() -> list[Figure]:
    """Parse the item ids of one request into bits grouped by word; then acknowledge them as a whole."""
    world = World()
    batch = world.batch(ITEMS)
    prefix = span(batch, 0, ITEMS).prefix
    order = random.Random(1).sample(range(ITEMS), MAX_IDS)  # noqa: S311
    named = [f"{prefix}:{ordinal}" for ordinal in order]
    tree, ledger = Tree(), world.process()

    def parse() -> None:
        for text, indices in ids.group_by_prefix(named).items():
            block = ids.parse_prefix(text)
            if block.genuine(batch.salt):
                tree.marks(ids.parse_indices(block, indices))

    return [
        Figure(
            "item ids parsed and grouped a second, one core",
            MAX_IDS / _median(parse),
            at_least=1_000_000,
            note=f"median of {PARSE_ROUNDS} requests of {MAX_IDS:,} random ids",
        ),
        Figure(
            "item ids acknowledged a second, receipts and memory store included",
            MAX_IDS / _median(lambda: ledger.ack(named)),
            note="the same requests; all but the first are duplicates",
        ),
    ]


def _median(work: Callable[[], object]) -> float:
    """Median of CPU seconds, which other processes do not disturb."""
    times = []
    for _ in range(PARSE_ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)
