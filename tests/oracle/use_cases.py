"""Every use case that writes, each with the world that it begins in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from fanin.adapters.memory import Memory
from fanin.app.services import Services
from fanin.domain.batch import Batch, Mode, OpenBatch
from fanin.domain.directory import PutRoute, Register
from fanin.domain.frames import OpenFrame, Ticket
from fanin.domain.ids import Group
from fanin.domain.marks import Count, Done, Failure, ItemRange
from fanin.domain.scatter import Recipient, Reply, Scatter

QUEUE = "https://sqs/car"
MINUTE = 60_000
ITEMS = 130
"""Items of a batch: two whole words, and a part of a third."""


@dataclass
class Scene:
    """A world, and a process in it that has just started.

    Attributes:
        memory: clock, queues, alarms and rules.
        services: the process.
    """

    memory: Memory
    services: Services

    def batch(self, items: int = ITEMS, *, closed: bool = False, **request: Any) -> tuple[Batch, Group]:
        ledger = self.services.ledger
        row = ledger.open(OpenBatch(**request))
        group = ledger.add(row.batch_id, items)
        return (ledger.close(row.batch_id) if closed else row), group

    def scatter(self, **options: Any) -> int:
        """A scatter to two cars, whose jobs wait."""
        self.memory.channels.queues.setdefault(QUEUE, [])
        to = [Recipient(f"car {i}", QUEUE) for i in range(2)]
        return self.services.scatters.start(Scatter("report!", to, **options)).batch.batch_id

    def buffer(self, *work: str) -> list[str]:
        """A buffer with work, which is taken; returns the receipts."""
        buffers = self.services.buffers
        buffers.define("jobs", 3)
        if work:
            buffers.put("jobs", work)
        return [one.receipt for one in buffers.take("jobs", most=10, wait=0)] if work else []

    def topic(self) -> None:
        self.memory.channels.queues.setdefault(QUEUE, [])
        self.services.directory.register(Register("fleet", "car", QUEUE))


class UseCase(NamedTuple):
    """One call.

    Attributes:
        given: makes what it needs, and returns the call.
        told: whether its answer must be the same whatever was lost. Other answers tell who was first, and a
            repeat cannot know that.
        once: whether its writes are sent only once, so that its caller may get an error.
        again: whether whoever makes the same call again finds it done.
        whole: whether all of its effects are there after such an error; slots without messages are given up
            later.
    """

    given: Callable[[Scene], Callable[[], object]]
    told: bool = True
    once: bool = False
    again: bool = True
    whole: bool = True


def _open(scene: Scene, **options: Any) -> Callable[[], object]:
    request = OpenBatch(deadline=scene.memory.clock.now() + MINUTE, metadata={"a": "b"})
    return lambda: scene.services.ledger.open(request, **options)


def _add(scene: Scene, *, limit: int | None = None, key: str | None = None) -> Callable[[], object]:
    row = scene.services.ledger.open(OpenBatch(limit=limit))
    return lambda: scene.services.ledger.add(row.batch_id, 5, key=key)


def _add_to_full(scene: Scene, key: str | None = None) -> Callable[[], object]:
    row, group = scene.batch(6, limit=8)
    scene.services.ledger.mark(list(group[:4])).whole()
    return lambda: scene.services.ledger.add(row.batch_id, 5, key=key)


def _ack(scene: Scene, **options: Any) -> Callable[[], object]:
    _, group = scene.batch(**options)
    return lambda: scene.services.ledger.mark(list(group[:])).whole()


def _ack_range(scene: Scene, *, closed: bool) -> Callable[[], object]:
    _, group = scene.batch(closed=closed)
    return lambda: scene.services.ledger.mark([ItemRange(group.prefix)]).whole()


def _ack_totals(scene: Scene, **options: Any) -> Callable[[], object]:
    """Every item brings something; some were marked before, with other values."""
    _, group = scene.batch(totals=("rows", "cents"), **options)
    scene.services.ledger.mark([Done(item, {"rows": 1_000}) for item in group[60:70]]).whole()
    results = [Done(item, {"rows": 1, "cents": -n}) for n, item in enumerate(group[:])]
    return lambda: scene.services.ledger.mark(results).whole()


def _close_totals(scene: Scene) -> Callable[[], object]:
    row, group = scene.batch(totals=("rows",))
    scene.services.ledger.mark([Done(item, {"rows": 1}) for item in group[:]]).whole()
    return lambda: scene.services.ledger.close(row.batch_id)


def _ack_count(scene: Scene) -> Callable[[], object]:
    row, _ = scene.batch(mode=Mode.ESTIMATED)
    return lambda: scene.services.ledger.mark([Count(row.batch_id, 7)]).whole()


def _fail(scene: Scene) -> Callable[[], object]:
    """The last items that are pending, of two words."""
    _, group = scene.batch(closed=True)
    scene.services.ledger.mark([*group[:62], *group[66:]]).whole()
    return lambda: scene.services.ledger.mark(
        [Failure(item, "it would not") for item in group[62:66]]
    ).whole()


def _close(scene: Scene) -> Callable[[], object]:
    row, group = scene.batch()
    scene.services.ledger.mark(list(group[:])).whole()
    return lambda: scene.services.ledger.close(row.batch_id)


def _cancel(scene: Scene) -> Callable[[], object]:
    row, _ = scene.batch()
    return lambda: scene.services.ledger.cancel(row.batch_id)


def _remove(scene: Scene) -> Callable[[], object]:
    row, _ = scene.batch()
    scene.services.ledger.cancel(row.batch_id)
    return lambda: scene.services.ledger.remove(row.batch_id)


def _deadline(scene: Scene) -> Callable[[], object]:
    row, _ = scene.batch(deadline=scene.memory.clock.now() + MINUTE)
    scene.memory.clock.advance(MINUTE)
    return lambda: scene.services.ledger.meet_deadline(row.batch_id)


def _reap(scene: Scene) -> Callable[[], object]:
    scene.batch(idle_ttl=60)
    scene.memory.clock.advance(2 * MINUTE)
    return lambda: scene.services.ledger.reap().seen


def _scatter(scene: Scene, key: str | None = None, **options: Any) -> Callable[[], object]:
    scene.memory.channels.queues.setdefault(QUEUE, [])
    request = Scatter("report!", [Recipient(f"car {i}", QUEUE) for i in range(2)], **options)
    return lambda: scene.services.scatters.start(request, key=key)


def _scatter_topic(scene: Scene) -> Callable[[], object]:
    scene.topic()
    return lambda: scene.services.scatters.start(Scatter("report!", topic="fleet"), key="week 47")


def _reply(scene: Scene, **options: Any) -> Callable[[], object]:
    batch_id = scene.scatter(**options)
    (missing,) = scene.services.ledger.missing(batch_id).ranges
    replies = [Reply(f"{missing.group}:{i}", payload={"n": i}) for i in range(2)]
    return lambda: scene.services.scatters.reply(replies)


def _open_frame(scene: Scene) -> Callable[[], object]:
    return lambda: scene.services.frames.open(OpenFrame(10, "orders", "billing", None, 60))


def _claim(scene: Scene) -> Callable[[], object]:
    frame = scene.services.frames.open(OpenFrame(10, "orders", "billing", None, 60))
    return lambda: scene.services.frames.claim([Ticket(frame.frame_id, 3)])


def _define(scene: Scene, limit: int = 3) -> Callable[[], object]:
    if limit != 3:
        scene.buffer()
    return lambda: scene.services.buffers.define("jobs", limit)


def _put(scene: Scene, key: str | None = None) -> Callable[[], object]:
    scene.buffer()
    return lambda: scene.services.buffers.put("jobs", ["a", "b"], key=key)


def _done(scene: Scene) -> Callable[[], object]:
    receipts = scene.buffer("a", "b")
    return lambda: scene.services.buffers.done("jobs", receipts)


def _delete_buffer(scene: Scene) -> Callable[[], object]:
    scene.buffer()
    return lambda: scene.services.buffers.delete("jobs")


def _register(scene: Scene, *, again: bool = False) -> Callable[[], object]:
    if again:
        scene.topic()
        scene.memory.clock.advance(MINUTE)
    return scene.topic


def _deregister(scene: Scene) -> Callable[[], object]:
    scene.topic()
    return lambda: scene.services.directory.deregister("fleet", "car")


def _route(scene: Scene) -> PutRoute:
    scene.topic()
    return PutRoute("orders", {"source": ["shop"]}, "fleet")


def _put_route(scene: Scene) -> Callable[[], object]:
    route = _route(scene)
    return lambda: scene.services.routing.put(route)


def _delete_route(scene: Scene) -> Callable[[], object]:
    scene.services.routing.put(_route(scene))
    return lambda: scene.services.routing.delete("orders")


USE_CASES = {
    "open": UseCase(_open, again=False),
    "open under a key": UseCase(lambda scene: _open(scene, key="k")),
    "add": UseCase(_add, once=True, again=False),
    "add under a key": UseCase(lambda scene: _add(scene, key="k")),
    "add to a bounded batch": UseCase(lambda scene: _add(scene, limit=8), once=True, again=False),
    "add to a bounded batch under a key": UseCase(lambda scene: _add(scene, limit=8, key="k")),
    "add where room must be counted": UseCase(_add_to_full, once=True, again=False),
    "add where room must be counted, under a key": UseCase(lambda scene: _add_to_full(scene, key="k")),
    "ack": UseCase(_ack, told=False),
    "ack the last": UseCase(lambda scene: _ack(scene, closed=True), told=False),
    "ack a range": UseCase(lambda scene: _ack_range(scene, closed=False)),
    "ack a range that is all": UseCase(lambda scene: _ack_range(scene, closed=True)),
    "ack with totals": UseCase(_ack_totals, told=False),
    "ack the last with totals": UseCase(lambda scene: _ack_totals(scene, closed=True), told=False),
    "close with totals": UseCase(_close_totals),
    "ack a count": UseCase(_ack_count, once=True, again=False),
    "fail": UseCase(_fail, told=False),
    "close": UseCase(_close),
    "cancel": UseCase(_cancel),
    "remove": UseCase(_remove, told=False),
    "meet a deadline": UseCase(_deadline),
    "reap": UseCase(_reap),
    "scatter": UseCase(_scatter, again=False),
    "scatter under a key": UseCase(lambda scene: _scatter(scene, key="week 47")),
    "scatter to a topic": UseCase(_scatter_topic),
    "reply": UseCase(_reply, told=False),
    "reply to a quorum": UseCase(lambda scene: _reply(scene, quorum=1), told=False),
    "open a frame": UseCase(_open_frame, again=False),
    "claim": UseCase(_claim, told=False),
    "define a buffer": UseCase(_define, again=False),
    "define a buffer anew": UseCase(lambda scene: _define(scene, limit=5)),
    "put": UseCase(_put, once=True, again=False, whole=False),
    "put under a key": UseCase(lambda scene: _put(scene, key="k")),
    "done": UseCase(_done, told=False),
    "delete a buffer": UseCase(_delete_buffer),
    "register": UseCase(_register),
    "heartbeat": UseCase(lambda scene: _register(scene, again=True)),
    "deregister": UseCase(_deregister, told=False),
    "put a route": UseCase(_put_route),
    "delete a route": UseCase(_delete_route, told=False),
}
