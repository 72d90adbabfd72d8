"""Results of items: what those cost that are small enough for a row, stored before their items are marked."""

from bench.figures import Figure
from bench.world import World
from fanin.domain.batch import OpenBatch
from fanin.domain.marks import Done

ITEMS = 20_000
AT_ONCE = 10
WRITES = 1.13
"""One for the result, and that of the acknowledgement, which ten neighbours share."""


def stored() -> list[Figure]:
    """Each item has a result of some hundred bytes."""
    world = World()
    batch = world.ledger.open(OpenBatch(results=True))
    group = world.ledger.add(batch.batch_id, ITEMS)
    world.ledger.close(batch.batch_id)
    acker = world.process()
    marks = [Done(item, result={"price": n, "name": "x" * 400}) for n, item in enumerate(group)]
    with world.spending() as first:
        for at in range(0, ITEMS, AT_ONCE):
            acker.mark(marks[at : at + AT_ONCE]).whole()
    world.check_complete()
    what = f"of {ITEMS:,} items with a result, {AT_ONCE} neighbours a call"
    return [
        Figure(
            f"writes to acknowledge one {what}",
            first.writes / ITEMS,
            at_most=WRITES,
            note="one is its result",
        ),
        Figure(f"reads to acknowledge one {what}", first.reads / ITEMS, at_most=0.02),
    ]
