"""Bounded buffers under concurrency, under crashes, and at rates that do not match."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from random import Random

import pytest
from greenlet import getcurrent, greenlet
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import FixedClock, Memory
from fanin.adapters.memory.sqs import MessageInFlight
from fanin.app.buffers import service
from fanin.app.buffers.records import BufferRecords
from fanin.app.buffers.service import BufferService
from fanin.app.buffers.slots import Slots, WorkState
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.words import WordKey
from fanin.client.buffers import Producer, Taker
from fanin.domain import ids
from fanin.domain.batch import LIVE, State
from fanin.domain.buffer import Work
from fanin.domain.marks import Failure
from fanin.errors import LimitReached, OutcomeUnknown, ServiceUnavailable, Throttled
from tests.lost_answers import LostAnswers
from tests.stateful import raw_parts
from tests.stateful.fuse import STEPS, Fuse
from tests.stateful.scheduler import Crash, Scheduler

DAY_MS = 86_400_000
HOUR_MS = 3_600_000


def process(memory: Memory) -> BufferService:
    """A process that starts now."""
    ports = memory.ports()
    return BufferService(LedgerService(ports))


def in_use(memory: Memory) -> int:
    """Slots in use at this very moment, from the bits themselves."""
    items = sum(row.items for row in memory.batches._rows.values())
    words = memory.words._words.items()
    return items - sum((memory.tree.full ^ word).bit_count() for key, word in words if key.level == 0)


def has_messages(memory: Memory) -> bool:
    """Whether any queue has a message, hidden or not."""
    received = any(queue._held for queue in memory.queues._queues.values())
    return received or any(memory.channels.queues.values())


def kept(memory: Memory, url: str) -> list[MessageInFlight]:
    """The messages that are in a queue, hidden or not."""
    queue = memory.queues._queue(url)
    queue.counts()  # which drops those past their retention
    return list(queue._held.values())


class Race:
    """32 producers and 8 takers of one buffer, interleaved at every access to a store.

    Attributes:
        most: slots that were in use at a time.
        rejected: puts that found no room.
        accepted: payloads of puts that were answered.
        taken: payloads of work that somebody got.
    """

    SIZES = (1, 10, 3, 1, 7, 2, 10, 1)

    def __init__(self, seed: int, limit: int, crashes: int) -> None:
        self.rng = Random(seed)
        self.limit = limit
        self.clock = FixedClock()
        self.scheduler = Scheduler(self.rng, self.look, crashes=crashes)
        self.memory = Memory(clock=self.clock, on_call=self.scheduler.on_call)
        self.highest: dict[object, int] = {}
        self.most = self.rejected = 0
        self.accepted: set[str] = set()
        self.taken: set[str] = set()
        self.producing = 32
        process(self.memory).define("jobs", limit)

    def look(self) -> None:
        """At every access: the limit holds, and each put that is under way learns how full it is."""
        now = in_use(self.memory)
        assert now <= self.limit
        self.most = max(self.most, now)
        for caller, most in self.highest.items():
            self.highest[caller] = max(most, now)

    def run(self) -> None:
        actors = {f"producer {n}": partial(self.produce, n) for n in range(self.producing)}
        takers = {f"taker {n}": self.consume for n in range(8)}
        self.scheduler.run(actors | takers, between=lambda: self.clock.advance(10))

    def produce(self, name: int) -> None:
        buffers = process(self.memory)
        for number, size in enumerate(self.SIZES):
            while not self.put(buffers, [f"{name}/{number}/{part}" for part in range(size)]):
                self.scheduler.pause()
        self.producing -= 1

    def put(self, buffers: BufferService, payloads: list[str]) -> bool:
        me = object()
        self.highest[me] = in_use(self.memory)
        try:
            buffers.put("jobs", payloads)
        except LimitReached:
            assert self.highest[me] + len(payloads) > self.limit  # full, at a moment of this very call
            self.rejected += 1
            return False
        finally:
            del self.highest[me]
        self.accepted.update(payloads)
        return True

    def consume(self) -> None:
        buffers = process(self.memory)
        while self.producing or has_messages(self.memory):
            if not self.producing:
                self.clock.advance(1_000)  # what was taken by those who died comes again
            if work := buffers.take("jobs", most=self.rng.choice([1, 5, 10]), wait=0):
                self.taken.update(one.payload for one in work)
                buffers.done("jobs", [one.receipt for one in work])
            else:
                self.scheduler.pause()


@pytest.mark.parametrize(("seed", "limit", "crashes"), [(0, 20, 0), (3, 60, 5)])
def test_the_limit_holds_under_32_producers_and_every_rejected_put_found_it_full(seed, limit, crashes):
    # Given 32 producers and 8 takers, some of whom die; each leaks ten slots at the most
    race = Race(seed, limit, crashes)
    # When all have come to their end
    race.run()
    # Then the buffer was full, and never more than full, and no work that was accepted is lost
    assert race.most == limit
    assert race.rejected > 32
    assert race.accepted <= race.taken


"""Writes that the SDK does not repeat, since a repeat would add again."""


class Life:
    """A buffer under a seed: any answer may be lost, and the SDK repeats the write after others have worked.

    Producers put with and without keys, and repeat themselves, soon or late; the limit changes all the while,
    and somebody may end the buffer's batch at any moment.

    Attributes:
        accepted: payloads of puts that were answered, by their keys; those without a key by "".
        taken: payloads of work that somebody got.
        items: their items.
        left: how many puts each producer has still to make.
        leaps: how often much time may pass at once.
        changes: how often the limit may change.
        ends: how often the batch may still be ended.
        ended: whether it was.
    """

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.clock = FixedClock()
        self.scheduler = Scheduler(self.rng, self.look, crashes=self.rng.choice((0, 2, 6)))
        self.memory = Memory(clock=self.clock, on_call=self.scheduler.on_call)
        self.memory.queues.retention = 7_200
        self.losing = self.rng.choice((0.01, 0.05, 0.15))
        self.leaps = 6
        self.changes = 8
        self.ends, self.ended = self.rng.choice((0, 0, 1, 4)), False
        self.accepted: dict[str, set[str]] = defaultdict(set)
        self.taken: set[str] = set()
        self.items: dict[str, str] = {}
        self.left = {f"producer {n}": 6 for n in range(6)}
        process(self.memory).define("jobs", 5)
        LostAnswers(self.memory, self.lossy)

    def lossy(self, call: str) -> Callable[[], object] | None:
        """Lose the answer to a write now and then; others work before it is repeated."""
        if call not in self.memory.accesses.writes or self.rng.random() >= self.losing:
            return None
        return lambda: [self.scheduler.pause() for _ in range(self.rng.choice((1, 10, 100)))]

    def look(self) -> None:
        """At every access: no batch has more pending items than its limit."""
        pending = Counter({row.batch_id: row.items for row in self.memory.batches._rows.values()})
        for key, word in self.memory.words._words.items():
            pending[key.batch_id] -= 0 if key.level else (self.memory.tree.full ^ word).bit_count()
        for row in self.memory.batches._rows.values():
            assert pending[row.batch_id] <= (row.limit or 0)

    def between(self) -> None:
        """Time passes; now and then so much that slots become too old for a message."""
        late = self.leaps and self.rng.random() < 0.01
        self.leaps -= late
        self.clock.advance(360_000 if late else 10)

    def run(self) -> None:
        producers = {name: partial(self.produce, name) for name in self.left}
        takers = {f"taker {n}": self.consume for n in range(3)}
        others = {"operator": self.resize, "ender": self.end}
        self.scheduler.run(producers | takers | others, between=self.between)

    def produce(self, name: str) -> None:
        buffers = process(self.memory)
        while number := self.left[name]:
            payloads = [f"{name}/{number}/{part}" for part in range(1 + number % 3)]
            key = f"{name}/{number}" if self.has_key(payloads[0]) else None
            try:
                buffers.put("jobs", payloads, key=key)
            except LimitReached:
                if not self.messages():
                    self.clock.advance(300_000)  # until what leaked is given up
                self.scheduler.pause()
            except (ServiceUnavailable, OutcomeUnknown, Throttled):
                buffers = process(self.memory)
            else:
                self.accepted[key or ""].update(payloads)
                if key is None or self.rng.random() < 0.7:  # others are repeated, as if nobody had heard
                    self.left[name] -= 1

    def has_key(self, payload: str) -> bool:
        """Whether a payload is put in with a key: every second one."""
        return int(payload.split("/")[1]) % 2 == 1

    def messages(self) -> bool:
        """Whether there are messages, hidden or not; as long as there are, no time must pass unused."""
        return has_messages(self.memory)

    def consume(self) -> None:
        buffers = process(self.memory)
        while any(self.left.values()) or self.messages():
            with suppress(ServiceUnavailable, OutcomeUnknown):
                if work := buffers.take("jobs", most=self.rng.choice([1, 5, 10]), wait=0):
                    self.taken.update(one.payload for one in work)
                    self.items |= {service.read_receipt(one.receipt).item: one.payload for one in work}
                    if self.rng.random() < 0.1:
                        failed = [service.read_receipt(one.receipt).item for one in work]
                        buffers._ledger.mark([Failure(item, "no such customer") for item in failed]).whole()
                    buffers.done("jobs", [one.receipt for one in work])
                    continue
            self.clock.advance(1_000)  # what was taken by those who died comes again
            self.scheduler.wait(lambda: self.messages() or not any(self.left.values()))

    def resize(self) -> None:
        buffers = process(self.memory)
        while self.changes:
            self.changes -= 1
            with suppress(ServiceUnavailable, OutcomeUnknown, Throttled):
                buffers.define("jobs", self.rng.randint(3, 6))
            for _ in range(self.rng.randint(1, 100)):
                self.scheduler.pause()

    def end(self) -> None:
        """End the buffer's batch now and then, as nobody should."""
        while self.ends and any(self.left.values()):
            for _ in range(self.rng.randint(1, 200)):
                self.scheduler.pause()
            self.ends -= 1
            for row in list(self.memory.batches._rows.values()):
                state = self.rng.choice((State.CANCELLED, State.ORPHANED, State.TIMED_OUT))
                with suppress(ServiceUnavailable, OutcomeUnknown):
                    self.ended |= bool(
                        self.memory.batches.end(row.batch_id, state, now=self.clock.now(), sources=LIVE)
                    )

    def finished(self) -> Counter[str]:
        """How often the work of each payload was finished, and not just given up by the service."""
        ports = self.memory.ports()
        slots = Slots(ports, LedgerService(ports), BufferRecords(ports))
        states = slots.states(list(self.items))
        return Counter(self.items[item] for item, state in states.items() if state is WorkState.FINISHED)

    def settle(self) -> None:
        """All is quiet, and answers arrive again."""
        self.losing = 0.0
        self.consume()
        for key in self.accepted.keys() - {""} if self.ended else ():
            process(self.memory).put("jobs", sorted(self.accepted[key]), key=key)
            self.consume()
        limit = process(self.memory).define("jobs", 6).limit
        for _ in range(4):  # what leaked is given up, even before the first mark was made
            self.clock.advance(2 * HOUR_MS)
            with suppress(LimitReached):
                process(self.memory).put("jobs", ["x"] * limit)
                return
        raise AssertionError("the buffer does not come back into use")


@pytest.mark.parametrize("seed", range(8))
def test_accepted_work_is_taken_whichever_answers_are_lost_and_the_buffer_comes_back_into_use(seed):
    # Given producers, takers and an operator, some of whom die, over a wire that loses answers
    life = Life(seed)
    # When all have come to their end
    life.run()
    life.settle()
    # Then no work that was accepted is lost, and none that has a key was finished twice
    keyed = {payload for key, payloads in life.accepted.items() for payload in payloads if key}
    assert len(keyed) + len(life.accepted[""]) > 60
    assert keyed <= life.taken
    assert life.ended or life.accepted[""] <= life.taken  # what has no key is lost with a batch that is ended
    finished = life.finished()
    assert {finished[payload] for payload in keyed} == {1}


class BufferMachine(RuleBasedStateMachine):
    """Calls a buffer and a model of plain sets alike; a call may die at any step.

    Attributes:
        sure: payloads that were accepted, and whose messages cannot have expired.
        done: payloads whose work was finished: done, or given up by its consumer.
        slept: whether leaked slots may have been given up.
        limit: of the buffer.
        resized: whether the buffer may drain, and reject puts though it has room.
    """

    LIMIT = 7
    KEYS = 3

    def __init__(self) -> None:
        super().__init__()
        self.clock = FixedClock()
        self.fuse = Fuse()
        self.memory = Memory(clock=self.clock, on_call=self.fuse.on_call)
        self.memory.queues.retention = 3_600
        self.buffers = process(self.memory)
        self.queue = self.buffers.define("jobs", self.LIMIT).queue
        self.numbers = count()
        self.sure: set[str] = set()
        self.done: set[str] = set()
        self.slept = self.resized = False
        self.limit = self.LIMIT
        self.held: list[Work] = []

    def _try(self, die_in: int | None, call: Callable[[BufferService], object]) -> object:
        """Make a call in a process that may die on the way; None if it does."""
        try:
            return self.fuse.burn(die_in, lambda: call(self.buffers))
        except Crash:
            self.buffers = process(self.memory)
            return None

    @rule(n=st.integers(1, 4), die_in=STEPS, fresh=st.booleans())
    def put(self, n: int, die_in: int | None, fresh: bool) -> None:
        if fresh:
            self.buffers = process(self.memory)
        payloads = [str(next(self.numbers)) for _ in range(n)]
        before = in_use(self.memory)
        try:
            if self._try(die_in, lambda buffers: buffers.put("jobs", payloads)):
                self.sure.update(payloads)
                assert self.slept or before + n <= self.LIMIT
        except LimitReached:
            assert self.resized or before + n > self.LIMIT

    @rule(key=st.integers(1, KEYS), die_in=STEPS, fresh=st.booleans())
    def put_once(self, key: int, die_in: int | None, fresh: bool) -> None:
        """Put the work of a key in, or repeat that, however late."""
        if fresh:
            self.buffers = process(self.memory)
        payloads = [f"key {key}/{part}" for part in range(1 + key % 3)]
        with suppress(LimitReached):
            if self._try(die_in, lambda buffers: buffers.put("jobs", payloads, key=f"key {key}")):
                self.sure |= set(payloads) - self.done
        self.done.update(one.payload for one in self.held if self._failed_at_its_consumer(one))

    @rule(most=st.integers(1, 10), die_in=STEPS)
    def take(self, most: int, die_in: int | None) -> None:
        work = self._try(die_in, lambda buffers: buffers.take("jobs", most=most, wait=0))
        if isinstance(work, list):
            assert not {one.payload for one in work} & self.done
            self.held += work

    @rule(data=st.data(), die_in=STEPS)
    def finish(self, data: st.DataObject, die_in: int | None) -> None:
        if not self.held:
            return
        some = data.draw(st.lists(st.sampled_from(self.held), min_size=1, max_size=5, unique_by=id))
        before = in_use(self.memory)
        with self._finishing(some):
            released = self._try(die_in, lambda buffers: buffers.done("jobs", [one.receipt for one in some]))
        if released is not None:
            assert released.done == before - in_use(self.memory)

    @rule(data=st.data(), die_in=STEPS)
    def give_up(self, data: st.DataObject, die_in: int | None) -> None:
        """A consumer, or the dead-letter queue, gives up work that is still pending."""
        pending = [one for one in self.held if self._is_pending(service.read_receipt(one.receipt).item)]
        if not pending:
            return
        one = data.draw(st.sampled_from(pending))
        failure = Failure(
            service.read_receipt(one.receipt).item, "received 5 times from jobs without success"
        )
        with self._finishing([one]):
            self._try(die_in, lambda buffers: buffers._ledger.mark([failure]).whole())

    def _failed_at_its_consumer(self, one: Work) -> bool:
        """Whether a consumer gave work up, if only a note of it: whoever finishes that keeps the note."""
        item = service.read_receipt(one.receipt).item
        block, ordinal = ids.parse_item(item)
        note = raw_parts.notes(self.memory, block.batch_id).get(ordinal)
        return note is not None and not note.given_up and not self._is_pending(item)

    @contextmanager
    def _finishing(self, some: Sequence[Work]) -> Iterator[None]:
        """Note whose work a call finishes, whether or not it dies; it was never finished before."""
        items = {service.read_receipt(one.receipt).item: one.payload for one in some}
        before = {item for item in items if self._is_pending(item)}
        yield
        finished = [items[item] for item in before if not self._is_pending(item)]
        assert len(set(finished)) == len(finished)
        assert not self.done & set(finished)
        self.done.update(finished)

    @rule(limit=st.sampled_from([LIMIT - 1, LIMIT]), die_in=STEPS)
    def resize(self, limit: int, die_in: int | None) -> None:
        """Change the limit, so that another batch follows once the buffer is empty."""
        self.resized = True
        self._try(die_in, lambda buffers: buffers.define("jobs", limit))
        self.limit = process(self.memory).list().buffers[0].limit

    @rule(seconds=st.integers(1, 40))
    def wait(self, seconds: int) -> None:
        self._pass(seconds)

    @rule(seconds=st.sampled_from([301, 1_800, 3_600, 4_600]))
    def sleep(self, seconds: int) -> None:
        self._pass(seconds)
        self.slept = True

    @rule(data=st.data(), die_in=st.none() | st.integers(0, 30), renewed=st.booleans())
    def repeat_late(self, data: st.DataObject, die_in: int | None, renewed: bool) -> None:
        """Repeat the put of a new key that may have died: some of its work is finished, the batch may be new.

        Steps by chance would seldom come in this order.
        """
        key = self.KEYS + next(self.numbers)
        self.put_once(key, die_in, fresh=False)
        self.take(10, None)
        if renewed:
            self._drain()
            self.resize(2 * self.LIMIT - 1 - self.limit, None)
            self.put(1, None, fresh=True)
            self._drain()
        else:
            self.finish(data, None)
            self.sleep(3_600)
        self.put_once(key, None, fresh=True)

    def _drain(self) -> None:
        """Finish all work, also what others took."""
        self._pass(60)
        while work := self.buffers.take("jobs", most=10, wait=0):
            with self._finishing(work):
                self.buffers.done("jobs", [one.receipt for one in work])

    def _pass(self, seconds: int) -> None:
        """Let time pass; messages expire meanwhile."""
        self.clock.advance(seconds * 1000)
        self.sure &= {held.body for held in kept(self.memory, self.queue)} | self.done

    @invariant()
    def never_more_than_the_limit(self) -> None:
        assert in_use(self.memory) <= self.LIMIT

    @invariant()
    def what_is_accepted_and_not_done_holds_a_slot(self) -> None:
        assert len(self.sure - self.done) <= in_use(self.memory)

    @invariant()
    def what_is_accepted_and_not_done_has_a_message_that_counts(self) -> None:
        assert self.sure - self.done <= {
            held.body
            for held in kept(self.memory, self.queue)
            if self._is_pending(held.attributes[names.ITEM_ATTRIBUTE])
        }

    @invariant()
    def what_is_finished_is_not_put_in_again(self) -> None:
        assert not self.done & {
            held.body
            for held in kept(self.memory, self.queue)
            if self._is_pending(held.attributes[names.ITEM_ATTRIBUTE])
        }

    def _is_pending(self, item: str) -> bool:
        block, ordinal = ids.parse_item(item)
        number, position = divmod(ordinal, self.memory.tree.width)
        word = self.memory.words._words.get(WordKey(block.batch_id, 0, number), self.memory.tree.full)
        return bool(word & self.memory.tree.bits[position])

    def teardown(self) -> None:
        """At the end all accepted work is there, and later all slots are free."""
        buffers = self.buffers = process(self.memory)
        self._drain()
        assert self.sure <= self.done
        self.clock.advance(40 * DAY_MS)
        with suppress(LimitReached):
            buffers.put("jobs", ["mark"])
        self.clock.advance(40 * DAY_MS)
        process(self.memory).put("jobs", ["x"] * self.limit)


BufferMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestBufferMachine = BufferMachine.TestCase


class Timeline:
    """Actors that sleep on a simulated clock."""

    def __init__(self, clock: FixedClock) -> None:
        self._clock = clock
        self._hub = getcurrent()
        self._due: list[tuple[int, int, greenlet]] = []
        self._order = count()

    def start(self, actor: Callable[[], object]) -> None:
        heapq.heappush(self._due, (self._clock.at, next(self._order), greenlet(actor, self._hub)))

    def sleep(self, seconds: float) -> None:
        at = self._clock.at + max(1, round(seconds * 1000))
        heapq.heappush(self._due, (at, next(self._order), getcurrent()))
        self._hub.switch()

    def run(self, until: int) -> None:
        while self._due and self._due[0][0] <= until:
            at, _, actor = heapq.heappop(self._due)
            self._clock.at = at
            actor.switch()


@pytest.mark.parametrize(("producing", "consuming"), [(20.0, 4.0), (4.0, 20.0)])
def test_throughput_is_that_of_the_slower_side(producing, consuming):
    # Given ten producers and four takers, the ones five times faster than the others
    limit, seconds = 50, 200
    rng = Random(7)
    clock = FixedClock()
    memory, start = Memory(clock=clock), clock.at
    process(memory).define("jobs", limit)
    timeline = Timeline(clock)
    levels: list[int] = []
    finished = 0

    def produce() -> None:
        backoff = Backoff(base=0.5, cap=10.0, sleep=timeline.sleep, fraction=rng.random)
        producer = Producer(process(memory), "jobs", backoff=backoff)
        while True:
            timeline.sleep(10 / producing)
            producer.put("work")
            levels.append(in_use(memory))

    def consume() -> None:
        nonlocal finished
        taker = Taker(process(memory), "jobs", most=1, wait=0)
        while True:
            if work := taker.take():
                timeline.sleep(4 / consuming)
                finished += taker.done(*work).done
            else:
                timeline.sleep(0.05)

    for _ in range(10):
        timeline.start(produce)
    for _ in range(4):
        timeline.start(consume)
    # When they work for some minutes of the simulated clock
    timeline.run(start + seconds * 1000)
    # Then work is done at the pace of the slower, and the buffer fills to its limit only if that is the taker
    assert finished == pytest.approx(min(producing, consuming) * seconds, rel=0.1)
    assert max(levels) <= limit
    assert (max(levels) == limit) is (producing > consuming)
