"""What a put costs with its take, refreshes of the bound included."""

from __future__ import annotations

from bench.figures import Figure
from bench.world import World
from fanin.app.buffers import Buffers

LIMIT = 1_000
ROUNDS = 20_000
MS_PER_ROUND = 10


def one_at_a_time() -> list[Figure]:
    return [
        _measure(f"writes a put with its take, one at a time, {held} of {LIMIT:,} slots in use", 1, held, 2.1)
        for held in (0, LIMIT // 2)
    ]


def in_tens() -> list[Figure]:
    return [
        _measure(f"writes a put with its take, in tens, {held} of {LIMIT:,} slots in use", 10, held, 0.4)
        for held in (0, LIMIT // 2)
    ]


def nearly_full() -> list[Figure]:
    name = f"the same one at a time, {LIMIT - 1:,} of {LIMIT:,} slots in use: the bound is refreshed for each"
    return [_measure(name, 1, LIMIT - 1, None)]


def _measure(name: str, size: int, held: int, at_most: float | None) -> Figure:
    """Put and take by two processes, some work always being in the buffer."""
    world = World()
    producer, taker = (Buffers(process.ports, process) for process in (world.process(), world.process()))
    producer.define("jobs", LIMIT)
    for _ in range(0, held, size):
        producer.put("jobs", ["x"] * size)
    rounds = ROUNDS // size if at_most else 1_000
    with world.spending() as spent:
        for _ in range(rounds):
            producer.put("jobs", ["x"] * size)
            work = taker.take("jobs", most=size)
            taker.done("jobs", [one.receipt for one in work])
            world.clock.advance(MS_PER_ROUND)
    puts = rounds * size
    note = f"and {spent.reads / puts:.3g} reads; {spent.refused} writes were refused"
    return Figure(name, spent.writes / puts, at_most=at_most, note=note)
