"""A redrive: each failure is taken, added to a new batch, sent again, and acknowledged later."""

from bench.figures import Figure
from bench.world import World
from fanin import names
from fanin.app.ports.parts import IN_ROW, FailureRow
from fanin.app.redrives.redrive import RedriveService
from fanin.domain.batch import OpenBatch, State
from fanin.domain.marks import Failure

QUEUE = "https://sqs/work"
SIZES = (1_000, 20_000)
WRITES = 2.05


def redriven() -> list[Figure]:
    return [_measure(size) for size in SIZES]


def _measure(size: int) -> Figure:
    world = World()
    world.memory.channels.queues[QUEUE] = []
    batch = world.ledger.open(OpenBatch())
    group = world.ledger.add(batch.batch_id, size)
    parts = world.memory.parts
    notes = [FailureRow(n, item, "x", 1, 1, QUEUE, IN_ROW) for n, item in enumerate(group)]
    parts.put_failures(batch.batch_id, notes, expires_at=batch.expires_at)
    parts.put_messages(
        batch.batch_id, dict.fromkeys(range(size), b'{"body": "x"}'), expires_at=batch.expires_at
    )
    for at in range(0, size, 1_000):
        world.ledger.mark([Failure(item, "x") for item in group[at : at + 1_000]]).whole()
    world.ledger.close(batch.batch_id)
    service = RedriveService(world.process())
    acker = world.process()
    with world.spending() as spent:
        service.redrive(batch.batch_id)
        jobs = world.memory.redrives.waiting
        while jobs:
            job = jobs.pop(0)
            service.work(job["batch_id"], job["redrive"], job["owner"], until=0)
        for message in world.memory.channels.queues[QUEUE]:
            acker.mark([str(message.attributes[names.ITEM_ATTRIBUTE])]).whole()
    (done,) = service.redrives(batch.batch_id).redrives
    new = world.process().status(done.batch_id or 0).batch
    if not (done.items == new.items == size and new.state is State.COMPLETE):
        raise AssertionError(f"{size:,} failures should have been redriven, but {done.items:,} were")
    return Figure(
        f"writes to redrive one of {size:,} failed items, and to acknowledge it",
        spent.writes / size,
        at_most=WRITES,
        note="taken, added to a new batch, sent by a call and the worker, acknowledged one by one",
    )
