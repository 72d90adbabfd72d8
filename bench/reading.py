"""What closing and reading cost for batches of any size."""

import random
from collections.abc import Iterator

from bench.figures import Figure, worst
from bench.world import World
from fanin.app.diagnosis import gathering
from fanin.app.diagnosis.service import DiagnosisService
from fanin.app.ports.parts import FailureRow, RetryRow, SentRow
from fanin.domain.batch import OnFailure, State
from fanin.domain.ids import MAX_ITEMS
from fanin.domain.picture import ItemState
from fanin.domain.tree import Tree

BILLION = 10**9
MISSING = 10
WIDTH = Tree().width


def closing() -> list[Figure]:
    """Closing, by a process that knows the batch or does not, with all, some or no items done."""
    return [worst(_close(size, *done, warm=warm) for size, done in _batches() for warm in (True, False))]


def _close(size: int, start: int, stop: int, *, warm: bool) -> Figure:
    world = World()
    batch = world.batch(size)
    world.ack_range(batch, start, stop)
    closer = world.ledger if warm else world.process()
    with world.spending() as spent:
        row = closer.close(batch.batch_id)
    if (row.state is State.COMPLETE) != (stop - start == size):
        raise AssertionError(f"{stop - start} of {size} items are done, but the closed batch is {row.state}")
    return Figure(
        "reads to close a batch of 1 … 2⁴⁰ items",
        spent.reads,
        at_most=9,
        note=f"{_worst(size)}; one looks for failures below ranges",
    )


def bounds() -> list[Figure]:
    """Bounds of the progress, read by a process that does not know the batch."""
    return [worst(_bounds(size, *done) for size, done in _batches())]


def holding() -> list[Figure]:
    """The same of batches that hold a thousand failed items, near each other or far apart."""
    return [worst(_holding(size, apart) for size in (10**5, 10**7, BILLION) for apart in (1, 64, 97))]


def _holding(size: int, apart: int) -> Figure:
    world = World()
    batch = world.batch(size, closed=True, on_failure=OnFailure.HOLD)
    notes = [FailureRow(n * apart, f"{n}", "no price", failed_at=1) for n in range(1_000)]
    world.memory.parts.put_failures(batch.batch_id, notes, expires_at=batch.expires_at)
    with world.spending() as spent:
        found = world.process().status(batch.batch_id).batch
    if not 0 < found.held <= len(notes):
        raise AssertionError(f"{len(notes)} items are held, but the status says {found.held}")
    return Figure("reads for the status of a batch that holds 1,000 items", spent.reads, at_most=67)


def _bounds(size: int, start: int, stop: int) -> Figure:
    world = World()
    batch = world.batch(size)
    world.ack_range(batch, start, stop)
    with world.spending() as spent:
        progress = world.process().status(batch.batch_id)
    if not progress.done_min <= stop - start <= progress.done_max:
        raise AssertionError(
            f"{stop - start} of {size} items are done, which is outside the bounds of {progress}"
        )
    return Figure("reads for the status of 1 … 2⁴⁰ items", spent.reads, at_most=67, note=_worst(size))


def pictures() -> list[Figure]:
    """Nodes of a billion on every level, at both ends and within, with nothing, a part or all of it done."""
    places = [(level, number) for level in range(5) for number in (0, 1, WIDTH - 1, 10**4, 10**6, None)]
    done = [(0, 0), (1, BILLION), (BILLION // 3, BILLION // 2), (0, BILLION)]
    return [worst(_picture(*span, places, holds=holds) for span in done for holds in (False, True))]


def _picture(start: int, stop: int, places: list[tuple[int, int | None]], *, holds: bool) -> Figure:
    world = World()
    batch = world.batch(BILLION, on_failure=OnFailure.HOLD if holds else OnFailure.DONE)
    notes = [FailureRow(n, f"{n}", "no price", failed_at=1) for n in range(2 * WIDTH)] if holds else []
    world.memory.parts.put_failures(batch.batch_id, notes, expires_at=batch.expires_at)
    if start < stop:
        world.ack_range(batch, start, stop)
    most, note = 0, ""
    for level, place in places:
        last = Tree().last(level, BILLION)
        number = last if place is None else min(place, last)
        with world.spending() as spent:
            found = world.process().picture(batch.batch_id, level=level, number=number)
        done = max(0, min(stop, found.stop) - max(start, found.start))
        if not found.done_min <= done <= found.done_max:
            raise AssertionError(f"{done} items are done, which is outside the bounds of {found}")
        # The listing of notes counts as one access in memory, and as its rows here.
        held = sum(item.state is ItemState.HELD for item in found.items)
        if (reads := spent.reads + max(0, held - 1)) > most:
            most, note = reads, f"worst found: word {number:,} of level {level}"
    return Figure("rows read for a picture of 10⁹", most, at_most=66, note=note)


def missing() -> list[Figure]:
    """Ten missing items of a billion: far apart, so that their paths share only the root, and at random."""
    apart = range(1, BILLION, BILLION // MISSING)
    places = [apart, *(random.Random(seed).sample(range(BILLION), MISSING) for seed in range(20))]  # noqa: S311
    return [worst(_missing(sorted(ordinals)) for ordinals in places)]


def _missing(ordinals: list[int]) -> Figure:
    world = World()
    batch = world.batch(BILLION, closed=True)
    for start, stop in zip([0, *(i + 1 for i in ordinals)], [*ordinals, BILLION], strict=True):
        world.ack_range(batch, start, stop)
    with world.spending() as spent:
        page = world.process().missing(batch.batch_id)
    if [(span.start, span.stop) for span in page.ranges] != [(i, i + 1) for i in ordinals] or page.cursor:
        raise AssertionError(f"the items {ordinals} are missing, but the answer is {page}")
    return Figure(f"reads to list {MISSING} missing of 10⁹", spent.reads, at_most=42)


def diagnosis() -> list[Figure]:
    """Why a batch of a billion is not finished, with a few items done or missing, and notes of everything."""
    return [worst(_diagnosis(apart, done=done) for apart in (1, 64, 4_097, 10**8) for done in (True, False))]


def _diagnosis(apart: int, *, done: bool) -> Figure:
    world = World()
    batch = world.batch(BILLION, closed=True)
    ordinals = range(1, BILLION, apart)[:MISSING]
    if done:
        for ordinal in ordinals:
            world.ack_range(batch, ordinal, ordinal + 1)
    else:
        for start, stop in zip([0, *(i + 1 for i in ordinals)], [*ordinals, BILLION], strict=True):
            if start < stop:
                world.ack_range(batch, start, stop)
    for n in range(2 * gathering.SENT):
        row = SentRow(f"https://queue/{n % 5}", 0 if n % 2 else n, BILLION, 0, 0)
        world.memory.parts.put_sent(batch.batch_id, row, expires_at=batch.expires_at)
    retries = [RetryRow(ordinal, 2, "", "", 0) for ordinal in range(100)]
    world.memory.parts.put_retries(batch.batch_id, retries, expires_at=batch.expires_at)
    looks = world.accesses.sends["inspection.look"]
    with world.spending() as spent:
        found = DiagnosisService(world.memory.ports()).why(batch.batch_id)
    if not found.missing or found.done_min > BILLION - MISSING * (not done):
        raise AssertionError(f"items are missing, but the answer is {found}")
    # Both listings count as one access in memory, and as their rows here; a queue takes four requests.
    listed = gathering.SENT + gathering.RETRIES - 2
    requests = 4 * (world.accesses.sends["inspection.look"] - looks)
    return Figure(
        "reads and requests to queues to say why 10⁹ are not done",
        spent.reads + listed + requests,
        at_most=gathering.MOST_READS,
    )


def _batches() -> Iterator[tuple[int, tuple[int, int]]]:
    """Sizes around those at which a tree gets another level, each with ranges of items that are done."""
    depths = range(1, Tree().root_level(MAX_ITEMS) + 1)
    edges = {WIDTH**depth * k + more for depth in depths for k in (1, 15) for more in (-1, 0, 1)}
    for size in sorted(edges | {1, 2, 10**6, BILLION, MAX_ITEMS - 1, MAX_ITEMS}):
        for done in {(0, 0), (0, size), (1, size), (0, size - 1)}:
            yield size, done


def _worst(size: int) -> str:
    return f"worst found: {size:,} items"
