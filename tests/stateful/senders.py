"""Producers, nested batches and redrives whose batches end at any moment, under a seed.

The whole service runs in one process. At each access of anybody a batch may be cancelled, orphaned, timed out
or removed, or whoever asks may die; those who died go on at once, or hours later.

Replay a seed with its trace:

    python -m tests.stateful.senders SEED
"""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from fanin import names
from fanin.app.ports.parts import FailureRow
from fanin.client.messages import ReceivedMessage
from fanin.client.producing import sender
from fanin.domain import ids
from fanin.domain.batch import LIVE, Batch, State
from fanin.errors import BatchClosed, BatchGone, BatchNotFound, FaninError, InvalidRequest, ItemFailed
from fanin.testing import InMemoryService
from fanin.wire.messages import unpack
from tests.stateful import raw_parts
from tests.stateful.model import require

LATER = (timedelta(0), timedelta(minutes=3), timedelta(hours=3))
ENDED = (BatchClosed, BatchGone, BatchNotFound)


class Died(Exception):
    """Whoever makes this access dies; a function is invoked again."""


class AtOnce(Executor):
    """Does at once what it is given, so that a seed always plays the same way."""

    def submit(self, call: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Call it."""
        future: Future[Any] = Future()
        future.set_result(call(*arguments, **options))
        return future


class SendersSimulation:
    """One seed's producer, the consumers that fan out further, and those who redrive what failed.

    Args:
        seed: decides everything.
        trace: gets a line for each access, when a seed is replayed.

    Attributes:
        ended: batch id → the step at which it had ended.
        forced: batches that were ended from outside.
        removed: those of them that were removed.
        late: how many calls began after the end of their batch.
        handled: bodies that were handled, and how often.
        told: whether the producer was told that its batch is over.
    """

    def __init__(self, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self.rng = rng = Random(f"senders/{seed}")
        self.trace = trace
        self.step = 0
        self.playing = False
        self.deaths, self.ends = rng.choice((0, 1, 3, 8)), rng.choice((0, 1, 2, 4))
        self.dying, self.ending = rng.choice((0.003, 0.02, 0.1)), rng.choice((0.003, 0.02, 0.1))
        self.failing = rng.choice((0.0, 0.2, 0.6))
        self.ended: dict[int, int] = {}
        self.forced: set[int] = set()
        self.removed: set[int] = set()
        self.began: list[int] = []
        self.late = 0
        self.handled: Counter[str] = Counter()
        self.told = False

        self.service = InMemoryService(seed=seed, on_call=self.on_call)
        self.memory = self.service._runtime.memory
        self.tracker = self.service.tracker
        self.catalogs = self.service.queue("catalogs", max_receives=4)
        self.rows = self.service.queue("rows", max_receives=4)
        self._send = self.service.sqs.send_message_batch
        self.service.sqs.send_message_batch = self.send
        self.names = [f"c{n}" for n in range(rng.choice((1, 3, 5)))]
        self.block = rng.choice((1, 2, 50))
        self.nested = {name for name in self.names if rng.random() < 0.7}
        if rng.random() < 0.8:
            self.consume()

    def consume(self) -> None:
        self.service.consume(self.catalogs, self.tracker.sqs_handler(self.fan_out))
        self.service.consume(self.rows, self.tracker.sqs_handler(self.handle))

    def batches(self) -> list[Batch]:
        """All batches, those that ended too."""
        return list(self.memory.batches._rows.values())

    # What may happen at any moment.

    def on_call(self, call: str, moment: str) -> None:
        self.look()
        if not self.playing:
            return
        if self.trace:
            self.trace(f"{self.step:5} {call} {moment}")
        if self.ends and self.rng.random() < self.ending:
            self.ends -= 1
            self.playing = False
            self.end()
            self.playing = True
        if self.deaths and self.rng.random() < self.dying:
            self.deaths -= 1
            if self.trace:
                self.trace("DIES")
            raise Died

    def look(self) -> None:
        """Note the step at which each batch was first seen to have ended."""
        self.step += 1
        for row in self.batches():
            if row.state.terminal:
                self.ended.setdefault(row.batch_id, self.step)

    def end(self) -> None:
        live = [row for row in self.batches() if not row.state.terminal]
        if not live:
            return
        batch_id = self.rng.choice(live).batch_id
        state = self.rng.choice((State.CANCELLED, State.ORPHANED, State.TIMED_OUT))
        if self.trace:
            self.trace(f"{batch_id} ends as {state}")
        self.forced.add(batch_id)
        self.memory.ports().batches.end(batch_id, state, now=self.service.clock.now(), sources=LIVE)
        if self.rng.random() < 0.2:
            self.removed.add(batch_id)
            self.tracker.remove(batch_id)
        self.look()

    # Those who send.

    @contextmanager
    def run(self) -> Iterator[None]:
        """Surround the run of a process that sends."""
        self.began.append(self.step)
        try:
            yield
        finally:
            self.began.pop()

    def send(self, **request: Any) -> Any:
        """The call of the client.

        Raises:
            Broken: it sends for a batch that had ended before its process began.
        """
        for entry in request["Entries"]:
            item = entry["MessageAttributes"][names.ITEM_ATTRIBUTE]["StringValue"]
            ended = self.ended.get(batch_of(item), self.step)
            require(ended >= self.began[-1], f"{item} is sent, and its batch had ended before")
        return self._send(**request)

    def produce(self) -> None:
        """Send the messages of a batch; whoever dies begins again, now or later."""
        on_error = self.rng.choice(("leave", None))
        while True:
            with suppress(Died), self.run():
                known = [row for row in self.batches() if row.user_key == "all"]
                over = any(row.state.terminal and row.state is not State.COMPLETE for row in known)
                self.late += over
                try:
                    with self.tracker.batch(user_key="all", key="run", on_error=on_error) as batch:
                        batch.send(self.catalogs, self.names, key="names", block=self.block, workers=1)
                except ENDED:
                    self.told = True
                    return
                require(not over, "the batch had ended before, and the producer was not told")
                return
            self.service.advance(self.rng.choice(LATER))

    def fan_out(self, message: ReceivedMessage) -> None:
        """Handle a catalog; some are sent on, row by row, in a batch of their own."""
        with self.run():
            if message.body in self.nested:
                with self.tracker.batch(parent_item=message.item, user_key=message.body) as child:
                    child.send(self.rows, (f"{message.body}/{n}" for n in range(2)), workers=1)
                    child.send(self.rows, (f"{message.body}/{n}" for n in range(2, 4)), workers=1)
                    if self.rng.random() < self.failing / 4:
                        raise ItemFailed("a bad catalog")
            else:
                self.handle(message)

    def handle(self, message: ReceivedMessage) -> None:
        if self.rng.random() < self.failing:
            if self.rng.random() < 0.3:
                raise Died
            raise ItemFailed("a bad row")
        self.handled[message.body] += 1

    def redrive(self) -> None:
        """Redrive what failed; whoever dies begins again, or leaves it to others."""
        for row in self.batches():
            for _ in range(self.rng.choice((1, 4))):
                try:
                    with suppress(*ENDED, InvalidRequest), self.run():
                        self.tracker.redrive(row.batch_id)
                    break
                except Died:
                    self.service.advance(self.rng.choice(LATER))

    # The course of things.

    def play(self) -> None:
        """Play the seed, with everything that may happen, and then until nothing is left to do.

        Raises:
            Broken: an invariant does not hold.
        """
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sender, "ThreadPoolExecutor", lambda *_, **__: AtOnce())
            self.playing = True
            self.produce()
            self.redrive()
            self.playing = False
            self.consume()
            self.rest()
            self.check_ends()
            self.failing = 0.0
            kept = list(self.kept())
            idle = 0
            while idle < 2:
                idle = 0 if self.redriven() else idle + 1
                self.rest()
            self.check(kept)

    def rest(self) -> None:
        """Let a day pass: what died comes again, and what nobody closes is orphaned."""
        self.service.advance(timedelta(hours=5))

    def redriven(self) -> int:
        """Redrive what is left, without a fault; how many failures were sent."""
        sent = 0
        for row in self.batches():
            with suppress(*ENDED, InvalidRequest), self.run():
                sent += self.tracker.redrive(row.batch_id).items
        return sent

    def kept(self) -> Iterator[tuple[int, int, str]]:
        """Batch, ordinal and body of each failure that has its message."""
        for batch_id in {row.batch_id for row in self.batches()} - self.removed:
            notes = raw_parts.notes(self.memory, batch_id)
            for ordinal in self.failed(batch_id, notes):
                if body := self.body(batch_id, ordinal, notes[ordinal]):
                    yield batch_id, ordinal, body

    def removed_since(self, batch_id: int, ordinal: int) -> bool:
        """Whether the last item under which a failure was sent is in a batch that was removed."""
        while mark := raw_parts.redriven(self.memory, batch_id, [ordinal]).get(ordinal):
            block, ordinal = ids.parse_item(mark.item)
            batch_id = block.batch_id
        return batch_id in self.removed

    def failed(self, batch_id: int, ordinals: Collection[int]) -> set[int]:
        return self.tracker.services.ledger.failed_among(batch_id, list(ordinals))

    def body(self, batch_id: int, ordinal: int, note: FailureRow) -> str | None:
        content = raw_parts.message(self.memory, batch_id, ordinal) if note.kept else None
        return None if content is None else unpack(content).body

    def check_ends(self) -> None:
        """Every batch has ended; and a parent's item is done only if its last child is complete."""
        rows = {row.batch_id: row for row in self.batches()}
        require(
            all(row.state.terminal for row in rows.values()), f"nobody works, and not all have ended: {rows}"
        )
        children = {row.parent_item: row for row in rows.values() if row.parent_item}
        for item, child in children.items():
            parent = rows.get(batch_of(item))
            if parent is None or parent.state is not State.COMPLETE or child.batch_id in self.removed:
                continue
            done = not self.failed(parent.batch_id, [ids.parse_item(item)[1]])
            require(
                not done or child.state is State.COMPLETE, f"{item} is done, and its batch is not: {child}"
            )

    def check(self, kept: list[tuple[int, int, str]]) -> None:
        """Whatever failed with its message was handled at last, and nothing is left to redrive."""
        for batch_id, ordinal, body in kept:
            tried = self.handled[body] or body in self.nested
            require(tried or self.removed_since(batch_id, ordinal), f"{body} of {batch_id} is lost")
        for batch_id in {row.batch_id for row in self.batches()} - self.removed:
            with suppress(FaninError):
                found = self.tracker.redrive(batch_id, dry_run=True)
                require(not found.items, f"{found} is left to redrive")
        if not (self.forced or self.told):
            missing = {name for name in set(self.names) - self.nested if not self.handled[name]}
            require(not missing, f"{missing} were never handled")


def batch_of(item: str) -> int:
    """The batch of an item id."""
    return ids.parse_item(item)[0].batch_id


def simulate(seed: int, trace: Callable[[str], None] | None = None) -> SendersSimulation:
    """Play a seed."""
    played = SendersSimulation(seed, trace)
    played.play()
    return played


if __name__ == "__main__":
    simulate(int(sys.argv[1]), print)
