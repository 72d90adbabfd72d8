"""How fast one core parses item ids."""

import random
import statistics
import time
from collections.abc import Callable

from bench.figures import Figure
from bench.world import World, span
from fanin.app.ledger.plans import shares_of
from fanin.domain.limits import MAX_MARKS
from fanin.domain.totals import MAX_VALUE
from fanin.domain.tree import Tree

PARSE_ROUNDS = 50
ITEMS = 1_000_000


def parsing() -> list[Figure]:
    """Parse the item ids of one request into bits grouped by word; then acknowledge them as a whole."""
    world = World()
    batch = world.batch(ITEMS)
    prefix = span(batch, 0, ITEMS).prefix
    order = random.Random(1).sample(range(ITEMS), MAX_MARKS)  # noqa: S311
    named = [f"{prefix}:{ordinal}" for ordinal in order]
    tree, ledger = Tree(), world.process()

    def parse() -> None:
        for share in shares_of(named, {}, MAX_VALUE).values():
            for one in share.named:
                if one.block.genuine(batch.salt):
                    tree.masks(one.ordinals)

    return [
        Figure(
            "item ids parsed and grouped a second, one core",
            MAX_MARKS / _median(parse),
            at_least=1_000_000,
            note=f"median of {PARSE_ROUNDS} requests of {MAX_MARKS:,} random ids",
        ),
        Figure(
            "item ids acknowledged a second, receipts and memory store included",
            MAX_MARKS / _median(lambda: ledger.mark(named).whole()),
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
