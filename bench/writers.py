"""32 writers that work on the same words all the time."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bench.figures import Figure
from bench.interleaving import Interleaving
from bench.single import READS, WRITES
from bench.world import World, span
from fanin.app.ledger.service import LedgerService
from fanin.domain.ids import Group

WRITERS = 32
ITEMS = 16_384
TWICE = 50  # every 50th item is delivered to a second writer, too


def interleaved() -> list[Figure]:
    """Writers in virtual time, each a process of its own; each failed write is attributed to its call."""
    schedule = Interleaving(seed=1)
    failed_writes: Counter[int] = Counter()
    refused = 0

    def on_call(call: str, moment: str) -> None:
        nonlocal refused
        if moment == "after":  # the access has just happened, and no other actor has run since
            total = world.accesses.refused.total()
            failed_writes[schedule.actor] += total - refused
            refused = total
        schedule.on_call(call, moment)

    world = World(on_call)
    group = span(world.batch(ITEMS, closed=True), 0, ITEMS)
    groundless = duplicates = 0

    def acker(number: int) -> Callable[[], None]:
        ledger = world.process()

        def acknowledge() -> None:
            nonlocal groundless, duplicates
            for item in _share_and_duplicates(group, number):
                before = failed_writes[number]
                (receipt,) = ledger.mark([item]).whole()
                duplicates += len(receipt.duplicates)
                groundless += 0 if receipt.duplicates else failed_writes[number] - before

        return acknowledge

    with world.spending() as spent:
        schedule.run(acker(number) for number in range(WRITERS))
    world.check_complete()
    return [
        Figure(
            f"failed writes of {WRITERS} writers, in acks that name no duplicate",
            groundless,
            at_most=0,
            note=f"virtual time; {duplicates:,} true duplicates failed {spent.refused:,} writes",
        )
    ]


def threads() -> list[Figure]:
    """Writers in real threads, four to a process, without duplicates."""
    world = World()
    group = span(world.batch(ITEMS, closed=True), 0, ITEMS)
    processes = [world.process() for _ in range(WRITERS // 4)]
    with world.spending() as spent, _eager_switching():
        in_threads(writer(processes[number // 4], share(group, number)) for number in range(WRITERS))
    world.check_complete()
    return contended("in memory", spent.writes, spent.reads, spent.refused, ITEMS)


def contended(where: str, writes: int, reads: int, refused: int, items: int) -> list[Figure]:
    """The figures of writers that shared words and got no duplicates."""
    what, note = f"{WRITERS} writers on the same words, {where}", f"{items:,} items, threads"
    return [
        Figure(f"writes an item, {what}", writes / items, at_most=WRITES, note=note),
        Figure(f"reads an item, {what}", reads / items, at_most=READS, note=note),
        Figure(f"failed writes, {what}", refused, at_most=0, note=note),
    ]


def in_threads(works: Iterable[Callable[[], None]]) -> None:
    """Run all works at the same time, each in a thread; raises the first error of one of them."""
    works = list(works)
    with ThreadPoolExecutor(len(works)) as pool:
        for work in [pool.submit(work) for work in works]:
            work.result()


def writer(ledger: LedgerService, items: Iterable[str]) -> Callable[[], None]:
    """The work of one writer: it acknowledges its items one at a time."""

    def acknowledge() -> None:
        for item in items:
            ledger.mark([item]).whole()

    return acknowledge


def share(group: Group, number: int) -> list[str]:
    """The items of a writer: every 32nd, so that all writers work on the same words."""
    return group[number::WRITERS]


def _share_and_duplicates(group: Group, number: int) -> list[str]:
    """The items of a writer, and in between those of its neighbour that are delivered twice."""
    neighbour = (number + 1) % WRITERS
    mine = [
        i for i in range(group.upto) if i % WRITERS == number or (i % WRITERS == neighbour and i % TWICE == 0)
    ]
    return [group[i] for i in mine]


@contextmanager
def _eager_switching() -> Iterator[None]:
    """Make the interpreter switch threads a thousand times more often than usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 1_000)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
