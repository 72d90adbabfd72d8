"""A batch that grows from inside, and drains: what it costs over a plain one; and what keys cost."""

import random
from collections import deque

from bench.figures import Figure
from bench.world import World
from fanin.domain.batch import CloseWhen, OpenBatch
from fanin.domain.ids import MAX_KEYS, ItemKey

ITEMS = 25_000
LINKS = 50
"""Items that an item adds, if there is room: about as many as a page has links."""
WRITES, READS = 1.1, 0.1


def drained() -> list[Figure]:
    """A tree of items: each adds its own, and is then acknowledged; the next is any of those that wait."""
    world = World()
    acker, rng = world.process(), random.Random(1)  # noqa: S311
    batch = world.ledger.open(OpenBatch(max_items=ITEMS))
    waiting = deque(world.ledger.add(batch.batch_id, 1))
    world.ledger.close(batch.batch_id, when=CloseWhen.DRAINED)
    items = 1
    with world.spending() as spent:
        while waiting:
            waiting.rotate(rng.randrange(len(waiting)))
            item = waiting.popleft()
            if count := min(LINKS, ITEMS - items):
                waiting.extend(acker.add(batch.batch_id, count, item=item))
                items += count
            acker.mark([item]).whole()
            world.clock.advance(4)
    world.check_complete()
    what = f"of a batch that grows from inside, {LINKS} items at a time"
    return [
        Figure(f"writes an item {what}", spent.writes / ITEMS, at_most=WRITES),
        Figure(f"reads an item {what}", spent.reads / ITEMS, at_most=READS),
    ]


def keys() -> list[Figure]:
    """Keys that nobody has added yet, and the same ones again."""
    world = World()
    batch = world.ledger.open(OpenBatch())
    blocks = [[ItemKey(f"{first + n}") for n in range(MAX_KEYS)] for first in range(0, 9_800, MAX_KEYS)]
    count = len(blocks) * MAX_KEYS
    with world.spending() as added:
        for block in blocks:
            world.ledger.add_keys(batch.batch_id, block)
    with world.spending() as again:
        for block in blocks:
            world.ledger.add_keys(batch.batch_id, block)
    note = "rows of transactions, each two write units"
    return [
        Figure("rows written a key, in additions of 98", added.writes / count, at_most=1.021, note=note),
        Figure("rows written a key that is there", again.writes / count, at_most=0),
    ]
