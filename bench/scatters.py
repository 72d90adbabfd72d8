"""A scatter, from its start to the event of its end; each recipient replies in a call of its own."""

from bench.figures import Figure
from bench.world import World
from fanin import names
from fanin.app.directory import service as directory
from fanin.app.ledger.service import LedgerService
from fanin.app.scatters.service import ScatterService
from fanin.app.services import Patterns
from fanin.domain.batch import State
from fanin.domain.directory import Registration
from fanin.domain.scatter import Recipient, Reply, Scatter

QUEUE = "https://sqs/everyone"
SIZES = (64, 1_000, 20_000)
WRITES = 2.13
WITH_QUORUM = 3.04
LARGE = 100_000
STARTS = 0.011


def all_replies() -> list[Figure]:
    return [_measure(size, quorum=None) for size in SIZES]


def quorum() -> list[Figure]:
    return [_measure(1_000, quorum=1_000)]


def large_topic() -> list[Figure]:
    """A start to a topic of the largest size: the worker lists the recipients, and sends to them."""
    world = World()
    world.memory.channels.queues[QUEUE] = []
    now = world.clock.now()
    registration = Registration("fleet", "", QUEUE, {}, 86_400, now, now + 86_400_000)
    rows = {f"{i:06}": registration.value for i in range(LARGE)}
    world.memory.directory.put_all(directory.TOPIC_PREFIX + "fleet", rows, expires_at=registration.expires_at)
    ports = world.memory.ports()
    scatters = ScatterService(LedgerService(ports, Patterns(ports)))
    with world.spending() as spent:
        batch_id = scatters.start(Scatter("?", topic="fleet"), key="once").batch.batch_id
        jobs = world.memory.jobs.waiting
        while jobs:
            job = jobs.pop(0)
            scatters.work(job["batch_id"], job["chunk"], job["wave"])
    items = {message.attributes[names.ITEM_ATTRIBUTE] for message in world.memory.channels.queues[QUEUE]}
    if not len(items) == ports.batches.read([batch_id])[batch_id].items == LARGE:
        raise AssertionError(f"{LARGE:,} recipients should have got a message, but {len(items):,} did")
    return [
        Figure(
            f"writes for one recipient of a scatter to a topic of {LARGE:,}, its reply aside",
            spent.writes / LARGE,
            at_most=STARTS,
            note="listed and sent to by the worker",
        )
    ]


def _measure(size: int, *, quorum: int | None) -> Figure:
    world = World()
    world.memory.channels.queues[QUEUE] = []
    ports = world.memory.ports()
    ledger = LedgerService(ports, Patterns(ports))
    scatters = ScatterService(ledger)
    with world.spending() as spent:
        batch = scatters.start(Scatter("?", [Recipient("", QUEUE)] * size, quorum=quorum)).batch
        for job in world.memory.jobs.waiting:
            scatters.send(job["batch_id"], job["chunk"], job["wave"])
        for message in world.memory.channels.queues[QUEUE]:
            scatters.reply([Reply(message.attributes[names.ITEM_ATTRIBUTE], "!")])
        ended = ports.batches.read([batch.batch_id])[batch.batch_id]
        ledger.announce(ended)
    if ended.state is not State.COMPLETE:
        raise AssertionError(f"all recipients have replied, but the scatter is {ended.state}")
    how = "all must reply" if quorum is None else "with a quorum, whose replies are counted"
    return Figure(
        f"writes for one recipient of a scatter, its reply included; {how}",
        spent.writes / size,
        at_most=WRITES if quorum is None else WITH_QUORUM,
        note=f"worst of scatters to {', '.join(f'{n:,}' for n in SIZES)}" if quorum is None else f"{size:,}",
    )
