"""Bounded buffers: what a put and its take cost, including refreshes of the buffer's level."""

from bench.figures import Figure
from bench.world import World
from fanin.app.buffers.service import BufferService

LIMIT = 1_000
PUTS = 4_000
MS_PER_ROUND = 100  # longer in all than a cached row is fresh


def one_at_a_time() -> list[Figure]:
    return [
        _measure(
            f"writes a put with its take, one at a time, {held} of {LIMIT:,} slots in use", 1, held, 2.02
        )
        for held in (0, LIMIT // 2, LIMIT - 1)
    ]


def in_tens() -> list[Figure]:
    return [
        _measure(f"writes a put with its take, in tens, {held} of {LIMIT:,} slots in use", 10, held, 0.23)
        for held in (0, LIMIT // 2, LIMIT - 10)
    ]


def _measure(name: str, size: int, held: int, at_most: float) -> Figure:
    """Put and take in two processes, while ``held`` payloads stay in the buffer."""
    world = World()
    producer, taker = (BufferService(process) for process in (world.process(), world.process()))
    producer.define("jobs", LIMIT)
    for _ in range(0, held, size):
        producer.put("jobs", ["x"] * size)
    rounds = PUTS // size
    with world.spending() as spent:
        for _ in range(rounds):
            producer.put("jobs", ["x"] * size)
            work = taker.take("jobs", most=size)
            taker.done("jobs", [one.receipt for one in work])
            world.clock.advance(MS_PER_ROUND)
    puts = rounds * size
    note = f"and {spent.reads / puts:.3g} reads; {spent.refused} writes were refused"
    return Figure(name, spent.writes / puts, at_most=at_most, note=note)
