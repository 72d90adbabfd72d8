"""Totals: a batch that sums up what its items bring, beside one that does not."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from bench.figures import Figure
from bench.single import READS, WRITES
from bench.world import Spent, World, span
from fanin.domain.limits import MAX_MARKS
from fanin.domain.marks import Done

ITEMS = 16_384
MS_PER_ACK = 4  # longer than a cached row is fresh
TWICE = 50  # every 50th item is acknowledged again, with other values
NAMES = ("rows", "bytes", "cents", "pages")
WIDTH = 64


def one_at_a_time() -> list[Figure]:
    """Items in random order, each with four values; then the same acknowledgements without totals."""
    order = list(_order(ITEMS))
    (spent, groundless), (without, _) = _spent(order, NAMES), _spent(order, ())
    what = f"to acknowledge one of {ITEMS:,} items with four totals"
    duplicates = f"{len(order) - ITEMS:,} true duplicates, which bring other values"
    return [
        Figure(
            f"writes {what}, on average",
            (spent.writes - spent.refused) / ITEMS,
            at_most=WRITES,
            note=f"and {spent.refused:,} that failed: {duplicates}",
        ),
        Figure(f"reads {what}, on average", spent.reads / ITEMS, at_most=READS),
        Figure("failed writes of acks with four totals that name no duplicate", groundless, at_most=0),
        Figure(
            f"writes of a batch of {ITEMS:,} with four totals, less those of one without",
            abs(spent.writes - without.writes),
            at_most=0,
            note=f"{spent.writes:,} and {without.writes:,}",
        ),
    ]


def ranges() -> list[Figure]:
    """A closed batch with totals is acknowledged by ranges of as many items as one call may name."""
    world = World()
    batch = world.batch(ITEMS, closed=True, totals=NAMES)
    with world.spending() as spent:
        for start in range(0, ITEMS, MAX_MARKS):
            world.ack_range(batch, start, min(ITEMS, start + MAX_MARKS))
    world.check_complete()
    writes, least = spent.writes - spent.refused, -(-ITEMS // WIDTH)
    return [
        Figure(
            "writes for 64 items of a range of a batch with totals",
            writes / least,
            at_most=1.04,
            note="10,000 items a call; words at both ends, parents and end included",
        ),
        Figure("failed writes of ranges of a batch with totals", spent.refused, at_most=0),
    ]


def _order(items: int) -> Iterator[int]:
    """All items in random order; some come again at once, or when their words are finished."""
    shuffled = random.Random(1).sample(range(items), items)  # noqa: S311
    for count, ordinal in enumerate(shuffled):
        yield ordinal
        if count % TWICE == 0:
            yield shuffled[count // 2]


def _spent(order: Sequence[int], totals: Sequence[str]) -> tuple[Spent, int]:
    """Rows accessed by one process that acknowledges the items, while another closes the batch.

    Returns:
        These, and how many writes failed in acknowledgements that name no duplicate.

    Raises:
        AssertionError: the totals of the complete batch are not those of the first acknowledgements.
    """
    world = World()
    batch = world.batch(ITEMS, totals=totals)
    acker, prefix = world.process(), span(batch, 0, ITEMS).prefix
    seen: set[int] = set()
    first: Counter[str] = Counter()
    groundless = 0
    with world.spending() as spent:
        for count, ordinal in enumerate(order):
            if count == ITEMS // 2:
                world.ledger.close(batch.batch_id)
            values = {name: (ordinal + count) * n for n, name in enumerate(totals, -1)}
            if ordinal not in seen:
                first.update(values)
            seen.add(ordinal)
            failed = world.accesses.refused.total()
            (receipt,) = acker.mark([Done(f"{prefix}:{ordinal}", values)]).whole()
            if not receipt.duplicates:
                groundless += world.accesses.refused.total() - failed
            world.clock.advance(MS_PER_ACK)
    world.check_complete()
    row = world.memory.batches.changes[-1][1]
    if dict(row.totals) != {name: first[name] for name in totals} or row.totals_exact is not bool(totals):
        raise AssertionError(f"the totals are {row.totals}, and the items brought {dict(first)}")
    return spent, groundless
