"""The world of the frame machine: a sender, receivers, the way between them, and what must be true of all."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import FixedClock, Memory
from fanin.app.frames import FrameService
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Patterns, Services
from fanin.client.consuming.acknowledging import LedgerAcknowledger
from fanin.client.frames.envelopes import OCTETS, Envelope, Notice
from fanin.client.frames.receiver import Delivery, Disposition, IdempotentReceiver
from fanin.client.frames.repeat_buffer import SqliteRepeatBuffer
from fanin.client.frames.repeater import Repeater
from fanin.client.tracker import Tracker
from fanin.domain.batch import Batch, State
from fanin.domain.frames import OpenFrame
from fanin.domain.tree import Tree
from fanin.errors import ItemFailed
from tests.stateful.fuse import Fuse
from tests.stateful.model import Model, ordinal_of
from tests.stateful.scheduler import Crash

CHANNEL = "https://sqs/replies"
MOST = 8
"""Envelopes that the sender's buffer holds at the most."""
BUFFER = "buffer.db"
LEASE = 10
TTL = 60


@cache
def empty_buffer() -> bytes:
    """The file of a buffer without entries; to make it anew for each example costs waiting for the disk."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / BUFFER
        SqliteRepeatBuffer(path).close()
        return path.read_bytes()


class MortalBuffer:
    """A repeat buffer around whose writes the process may die."""

    def __init__(self, buffer: SqliteRepeatBuffer, fuse: Fuse) -> None:
        self._buffer = buffer
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._buffer, name)

    def _write(self, name: str, *values: object, **options: object) -> Any:
        self._fuse.on_call(f"buffer.{name}", "before")
        answer = getattr(self._buffer, name)(*values, **options)
        self._fuse.on_call(f"buffer.{name}", "after")
        return answer

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        self._write("put", payload, content_type)

    def assign(self, frame: int, size: int) -> None:
        self._write("assign", frame, size)

    def drop(self, frame: int) -> None:
        self._write("drop", frame)

    def release(self, frame: int, missing: Sequence[tuple[int, int]], **options: object) -> Any:
        return self._write("release", frame, missing, **options)


class FrameWorld:
    """Stores in memory, a sender whose buffer is a file, and receivers that can be stopped in mid-handling.

    Attributes:
        wire: envelopes on their way, in no order.
        busy: receivers that are in the middle of something.
        fault: what the transport does: nothing, ``all`` or ``some`` of the envelopes are not sent.
        kept: payloads whose put has returned.
        effects: item id → the payload, stored under it by a handler.
        failed: payloads that a handler has failed for good.
        leases: item id → end of the lease of the latest who handled it; seconds.
        overlaps: items that were handled under somebody else's lease.
        places: (frame, index) → the payload that was ever sent so.
    """

    width = 2

    def __init__(self) -> None:
        super().__init__()
        self.fuse = Fuse()
        self.clock = FixedClock()
        self.memory = Memory(tree=Tree(self.width), clock=self.clock, on_call=self.fuse.on_call)
        self.memory.channels.queues[CHANNEL] = []
        self.raw = Model()
        self.raw.watch(self.memory)
        self.folder = TemporaryDirectory()
        (Path(self.folder.name) / BUFFER).write_bytes(empty_buffer())
        self.wire: list[Envelope] = []
        self.busy: list[Receiver] = []
        self.fault: str | None = None
        self.kept: set[bytes] = set()
        self.effects: dict[str, bytes] = {}
        self.failed: set[bytes] = set()
        self.leases: dict[str, int] = {}
        self.overlaps: list[str] = []
        self.places: dict[tuple[int, int], bytes] = {}
        self.put_so_far = self.healed = self.told = 0
        self.size = 3
        self.begin()
        self.old = self.process()

    # The sender.

    def begin(self) -> None:
        """A sender starts, and finds what another has left in the buffer."""
        self.store = SqliteRepeatBuffer(Path(self.folder.name) / BUFFER, max_envelopes=MOST)
        self.store._database.execute("PRAGMA synchronous = OFF")  # no machine loses its power here
        self.repeater = Repeater(
            self.process()[1],
            self.transport,
            MortalBuffer(self.store, self.fuse),
            template=OpenFrame(self.size, reply_to=CHANNEL, ttl=TTL),
            notices=self.notices,
            backoff=Backoff(base=5, cap=20, fraction=lambda: 0.5),
            clock=self.seconds,
        )

    def sender(self, die_in: int | None, call: Callable[[Repeater], object]) -> bool:
        """Let the sender do something; False if it died over it, and another has begun."""
        try:
            self.fuse.burn(die_in, lambda: call(self.repeater))
        except Crash:
            self.store.close()
            self.begin()
            return False
        return True

    def transport(self, envelopes: Sequence[Envelope]) -> None:
        for number, envelope in enumerate(envelopes):
            if self.fault and (self.fault == "all" or number % 2):
                raise OSError("the way is closed")
            self.fuse.on_call("send", "before")
            place = envelope.frame, envelope.index
            assert self.places.setdefault(place, envelope.payload) == envelope.payload
            self.wire.append(envelope)

    def notices(self) -> list[Notice]:
        messages = self.memory.channels.queues[CHANNEL]
        bodies = [json.loads(message.body) for message in messages]
        messages.clear()
        return [Notice(body["type"], body["frame_id"]) for body in bodies]

    # The service.

    def process(self) -> tuple[LedgerService, FrameService]:
        """A process that starts now."""
        ports = self.memory.ports()
        ledger = LedgerService(ports, Patterns(ports))
        return ledger, FrameService(ledger)

    def function(self, die_in: int | None, call: Callable[[LedgerService], object]) -> bool:
        """Run one of the functions behind streams and schedules; False if it died."""
        try:
            self.fuse.burn(die_in, lambda: call(self.process()[0]))
        except Crash:
            return False
        return True

    def seconds(self) -> float:
        return self.clock.at / 1000

    # What is there, read without the code under test.

    def rows(self) -> dict[int, Batch]:
        return self.memory.batches._rows

    def held(self) -> list[tuple[int | None, int | None, bytes]]:
        """The sender's buffer: frame, place, payload."""
        held = "SELECT frame, place, payload FROM envelopes WHERE frame IS NOT -1"
        return self.store._database.execute(held).fetchall()

    def given_up(self, frame: int) -> bool:
        """Whether what is missing of a frame may be delivered anew."""
        row = self.rows()[frame]
        return row.gone(self.clock.at) or row.state not in {State.CLOSED, State.COMPLETE}

    def marked(self, envelope: Envelope) -> bool:
        return envelope.index in self.raw.marked(self.rows()[envelope.frame])

    def ended(self) -> list[Batch]:
        """The rows of ends that were not told of."""
        changes = self.memory.batches.changes
        ends = [new for old, new in changes if new.state.terminal and old and not old.state.terminal]
        return ends[self.told :]

    def overdue(self) -> bool:
        rows, due = self.rows(), self.memory.batches._due
        return any(not rows[batch_id].state.terminal for batch_id, at in due.items() if at < self.clock.at)

    # What must be true at any time.

    def check(self) -> None:
        held = self.held()
        assert self.store.usage.envelopes == len(held) <= MOST
        assert self.store.usage.bytes == sum(len(payload) for _, _, payload in held)
        lost = self.kept - {payload for _, _, payload in held} - set(self.effects.values()) - self.failed
        assert not lost, f"{lost} are neither kept nor handled"
        assert not self.overlaps, f"{self.overlaps} were handled by two at once"
        for frame, place, payload in held:
            if frame is not None and place is not None:
                assert self.places.get((frame, place), payload) == payload
        lasting: dict[bytes, int] = {}
        for item, payload in self.effects.items():
            frame, _ = ordinal_of(item)
            if not self.given_up(frame):
                assert lasting.setdefault(payload, frame) == frame, f"{payload!r} had two effects"


class Receiver:
    """A receiver at work, that stops before and after each effect if it is slow.

    Args:
        world: where it is.
        envelopes: what it has received.
        process: its ledger and its frames.
        mood: whether its handler does the work (``able``), raises something (``broken``), or fails the item
            for good (``unwilling``).
        slow: whether it stops.
    """

    def __init__(
        self,
        world: FrameWorld,
        envelopes: list[Envelope],
        process: tuple[LedgerService, FrameService],
        *,
        mood: str,
        slow: bool,
    ) -> None:
        self._world = world
        self.envelopes = envelopes
        self._mood = mood
        self._slow = slow
        ledger, frames = process
        self._receiver = IdempotentReceiver(
            frames,
            self._handle,
            LedgerAcknowledger(Tracker(Services(ledger.ports))),
            lease=LEASE,
            clock=world.seconds,
        )
        self._hub = getcurrent()
        self._task = greenlet(lambda: self._receiver.receive(envelopes))

    def step(self, die_in: int | None) -> bool:
        """Go on to the next stop; True if it is through, or dead."""
        world = self._world
        try:
            dispositions = world.fuse.burn(die_in, self._task.switch)
        except Crash:
            world.wire += self.envelopes
            return True
        if not self._task.dead:
            return False
        for envelope, disposition in zip(self.envelopes, dispositions, strict=True):
            if disposition is Disposition.REDELIVER:
                world.wire.append(envelope)
            else:
                assert world.marked(envelope) or world.given_up(envelope.frame), f"{envelope}: {disposition}"
        return True

    def die(self) -> None:
        """Die where it has stopped; its messages come again."""
        with suppress(GreenletExit):
            self._task.throw(GreenletExit)
        self._world.wire += self.envelopes

    def _handle(self, delivery: Delivery) -> None:
        world, item = self._world, delivery.item
        if world.leases.get(item, 0) > world.seconds():
            world.overlaps.append(item)  # an error raised here would only bring it again
        world.leases[item] = delivery.fencing_token
        self._stop()
        if self._mood == "broken":
            raise RuntimeError("the handler's own fault")
        if self._mood == "unwilling":
            world.failed.add(delivery.payload)
            raise ItemFailed("not this one")
        world.effects.setdefault(item, delivery.payload)
        self._stop()

    def _stop(self) -> None:
        if self._slow:
            self._hub.switch()
