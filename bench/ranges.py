"""Ranges: adding any number of items, acknowledging whole batches, and acknowledging the worst ranges."""

import random
from collections.abc import Iterable, Iterator
from itertools import chain

from bench.figures import Figure, worst
from bench.world import World
from fanin.domain.tree import Tree

MILLION, BILLION = 10**6, 10**9
NAMES = {MILLION: "10⁶", BILLION: "10⁹"}
SEEDED_RANGES = 100
WIDTH = Tree().width


def adding() -> list[Figure]:
    """Adding takes one write for any number of items; with an idempotency key a transaction of two rows."""
    plain, keyed = [], []
    for power in range(10):
        world = World()
        batch_id = world.batch(1).batch_id
        with world.spending() as spent:
            world.ledger.add(batch_id, 10**power)
        plain.append(spent.writes)
        with world.spending() as spent:
            world.ledger.add(batch_id, 10**power, key="once")
        keyed.append(spent.writes)
    return [
        Figure("writes to add n items, n = 1 … 10⁹", max(plain), at_most=1),
        Figure("the same with an Idempotency-Key (one transaction)", max(keyed), at_most=2),
    ]


def whole_batches() -> list[Figure]:
    """A closed batch is acknowledged by one range; its completion is included."""
    figures = []
    for items, bound in ((MILLION, 4), (BILLION, 5)):
        world = World()
        batch = world.batch(items, closed=True)
        with world.spending() as spent:
            world.ack_range(batch, 0, items)
        world.check_complete()
        figures.append(Figure(f"writes to acknowledge a whole batch of {NAMES[items]}", spent.writes, bound))
    return figures


def any_range() -> list[Figure]:
    """The worst of many ranges; all items outside are done, so that the words at both ends finish, too."""
    return [
        worst(
            _fresh(items, bound, *ends, closed=closed) for ends in _ranges(items) for closed in (True, False)
        )
        for items, bound in ((MILLION, 10), (BILLION, 12))
    ]


def overlapping() -> list[Figure]:
    """The worst of many ranges of which a part is done already, in every word touched from a level on.

    Such a word refuses the first write, because some bits of the mask are clear already, and needs a second
    one.
    """
    return [
        worst(_again(items, bound, *ends, lowest) for ends in _ranges(items) for lowest in range(3))
        for items, bound in ((MILLION, 10), (BILLION, 12))
    ]


def _fresh(items: int, bound: int, start: int, stop: int, *, closed: bool) -> Figure:
    spent = _spent(items, start, stop, closed=closed)
    name = f"writes to acknowledge any range within {NAMES[items]}, settling included"
    return Figure(name, spent, at_most=bound, note=f"worst found: {start:,} to {stop:,}")


def _again(items: int, bound: int, start: int, stop: int, lowest: int) -> Figure:
    spent = _spent(items, start, stop, inside=_done_inside(start, stop, lowest))
    name = f"the same within {NAMES[items]}, a part of every word done before"
    return Figure(name, spent, at_most=bound, note=f"worst found: {start:,} to {stop:,}")


def _spent(
    items: int, start: int, stop: int, *, closed: bool = True, inside: Iterable[tuple[int, int]] = ()
) -> int:
    """Writes that acknowledge a range, when all items outside and some inside are done already."""
    world = World()
    batch = world.batch(items, closed=closed)
    for low, high in [(0, start), (stop, items), *inside]:
        world.ack_range(batch, low, high)
    with world.spending() as spent:
        world.ack_range(batch, start, stop)
    world.ledger.close(batch.batch_id)
    world.check_complete()
    return spent.writes


def _done_inside(start: int, stop: int, lowest: int) -> Iterator[tuple[int, int]]:
    """Ranges inside the range: on each level from ``lowest`` up, one child of the word at either end."""
    span = WIDTH**lowest
    while span < stop - start:
        first, last = -(-start // span) * span, stop // span * span
        if first // span % WIDTH and first + span <= stop:
            yield first, first + span
        if last // span % WIDTH and last - span >= start:
            yield last - span, last
        span *= WIDTH


def _ranges(items: int) -> Iterator[tuple[int, int]]:
    """Ranges with ends within words on as many levels as possible, beside edges of words, and at random.

    An end at an edge of a word touches fewer words than one beside it.
    """
    seeded = random.Random(items)  # noqa: S311
    levels = range(Tree().root_level(items) + 1)
    ones = sum(
        WIDTH**level for level in levels
    )  # bit 1 on every level, so that neither end is the edge of a word
    yield from ((ones + shift, items - ones - shift) for shift in (0, 1, WIDTH, ones // WIDTH))
    edges = [WIDTH**level * k + d for level in levels for k in (1, 63) for d in (-1, 1)]
    ends = [edge for edge in chain(edges, (items - edge for edge in edges)) if 0 <= edge <= items]
    yield from ((low, high) for low in ends for high in ends if low < high)
    for _ in range(SEEDED_RANGES):
        low, high = sorted(seeded.sample(range(items + 1), 2))
        yield low, high
