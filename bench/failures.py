"""Failed items: what their notes and messages cost, in rows and in write units."""

from bench.figures import Figure
from bench.world import World
from fanin.domain.failures import KeptMessage
from fanin.domain.marks import Failure
from fanin.wire.messages import pack

ITEMS = 10_000
BODY = 1_000  # bytes; with its JSON and the rest of its row, a message takes two write units
ROW = 128  # bytes of a row beside its message


def kept() -> list[Figure]:
    """Items that fail one at a time, each with a message of 1 KB, and items that succeed."""
    world = World()
    batch = world.batch(2 * ITEMS, closed=False)
    group = world.ledger.add(batch.batch_id, 2 * ITEMS)
    message = KeptMessage("x" * BODY)
    consumer = world.process()
    with world.spending() as failing:
        for item in group[:ITEMS]:
            consumer.mark([Failure(item, "torn", message)]).whole()
    with world.spending() as succeeding:
        for item in group[ITEMS:]:
            consumer.mark([item]).whole()
    units = -(-(len(pack(message)) + ROW) // 1024)
    rows = failing.writes / ITEMS
    return [
        Figure("rows written for an item that fails with a message of 1 KB", rows, at_most=4),
        Figure(
            "write units of an item that fails with a message of 1 KB",
            rows + units - 1,
            at_most=4.02,
            note=f"the message is a row of {units} units",
        ),
        Figure("writes an item that succeeds beside failed ones", succeeding.writes / ITEMS, at_most=1.02),
    ]
