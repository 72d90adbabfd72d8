"""Scatter-gather as a state machine beside a model of plain sets: Hypothesis chooses calls, and who dies."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fanin.app.scatters.service import ScatterService
from fanin.domain import ids
from fanin.domain.batch import State
from fanin.domain.scatter import Reply
from fanin.errors import ChannelRefused, CorrelationIdAlive, InvalidItemId
from tests.stateful.fuse import STEPS
from tests.stateful.scatter_model import Start, Wish
from tests.stateful.scatter_world import CARS, TIMEOUT, Said, ScatterWorld, channel

SCATTERS = 3  # enough that one has ended while two live
WISHES = st.builds(
    Wish,
    cars=st.one_of(st.none(), st.lists(st.integers(0, CARS - 1), max_size=CARS, unique=True).map(tuple)),
    correlation_id=st.sampled_from((None, "mine", "mine", "yours")),
    max_retries=st.integers(0, 2),
    quorum=st.sampled_from((None, None, 1, 2, 2, 3, 0.5)),
    keyed=st.booleans(),
)


class ScatterMachine(ScatterWorld, RuleBasedStateMachine):
    """Calls a service and its model alike. Calls come from a process that lives on, or from one that starts
    with the call; each may die at any access to a store, and what comes from a queue then comes again.
    """

    # The caller.

    @initialize(cars=st.integers(1, CARS), wish=WISHES)
    def first(self, cars: int, wish: Wish) -> None:
        """Start a scatter, and send all of it, so that there is something to reply to."""
        self.start(wish._replace(cars=tuple(range(cars)), correlation_id=None), None, False)
        for job in list(self.memory.jobs.waiting):
            self.work(job, None, True, False)

    @precondition(lambda self: len(self.plain) < SCATTERS)
    @rule(wish=WISHES, die_in=STEPS, fresh=st.booleans())
    def start(self, wish: Wish, die_in: int | None, fresh: bool) -> None:
        """Start a scatter to cars, or to the topic."""
        self.begin(self.start_of(wish), die_in, fresh)

    @precondition(lambda self: self.unsure)
    @rule(data=st.data(), die_in=STEPS, fresh=st.booleans())
    def start_again(self, data: st.DataObject, die_in: int | None, fresh: bool) -> None:
        """A caller who died over it comes back with the same key."""
        self.begin(self.unsure.pop(data.draw(st.integers(0, len(self.unsure) - 1))), die_in, fresh)

    def begin(self, start: Start, die_in: int | None, fresh: bool) -> None:
        rows, jobs, mine = set(self.rows()), len(self.memory.jobs.waiting), start.opened
        alive = mine is None and self.alive(start)
        reachable = mine is not None or start.request.topic is not None or all(map(self.there, start.cars))
        try:
            died, scattered = self.run(
                die_in, fresh, lambda ledger: ScatterService(ledger).start(start.request, key=start.key)
            )
        except (CorrelationIdAlive, ChannelRefused) as error:
            refusals = {CorrelationIdAlive: alive, ChannelRefused: not reachable}
            assert refusals[type(error)], error  # noqa: PT017
            assert set(self.rows()) == rows
            return
        start.jobs |= {(job["batch_id"], job["chunk"]) for job in self.memory.jobs.waiting[jobs:]}
        new = [self.opened(start, batch_id, died) for batch_id in set(self.rows()) - rows]
        assert not (new and (alive or not reachable or mine))
        if died:
            self.haunt(start)
            if start.key is not None:
                self.unsure.append(start)
            return
        assert reachable
        assert not alive
        assert start.opened is not None
        assert scattered.batch.batch_id == start.opened.batch_id
        assert scattered.correlation_id == start.opened.correlation_id
        if start.opened.live:
            chunks = range(-(-len(start.cars) // 2))
            assert start.jobs == {(start.opened.batch_id, chunk) for chunk in chunks}

    @precondition(lambda self: len(self.plain) == SCATTERS)
    @rule(data=st.data(), die_in=STEPS)
    def cancel(self, data: st.DataObject, die_in: int | None) -> None:
        """Another part of the API ends a scatter; one of them at most, so that some go on."""
        plain = data.draw(st.sampled_from(list(self.plain.values())[-1:]))
        died, _ = self.run(die_in, True, lambda ledger: ledger.cancel(plain.batch_id))
        if plain.live:
            after = plain.face._replace(state=State.CANCELLED)
            plain.expected = {after, plain.face} if died else {after}

    # The worker that sends.

    @precondition(lambda self: self.memory.jobs.waiting)
    @rule(data=st.data(), die_in=STEPS, fresh=st.booleans(), repeated=st.booleans())
    def send(self, data: st.DataObject, die_in: int | None, fresh: bool, repeated: bool) -> None:
        """The queue of jobs delivers one of them, maybe twice, in any order."""
        jobs = self.memory.jobs.waiting
        self.work(data.draw(st.sampled_from(jobs)), die_in, fresh, repeated)

    def work(self, job: Mapping[str, Any], die_in: int | None, fresh: bool, repeated: bool) -> None:
        plain = self.plain[job["batch_id"]]
        due = []
        if plain.live and job["wave"] >= plain.face.retries:
            due = [n for n in plain.missing if n // 2 == job["chunk"]]

        died, sent = self.run(
            die_in,
            fresh,
            lambda ledger: ScatterService(ledger).send(plain.batch_id, job["chunk"], job["wave"]),
        )
        asked = self.read_inboxes()

        reached = [(plain, n) for n in due if self.open(plain.cars[n])]
        refused = {n for n in due if not self.open(plain.cars[n])}
        if died:
            assert asked == reached[: len(asked)]
            failed = self.failed_of(plain) - plain.failed
            assert failed <= refused
            plain.limping = plain.limping or bool(refused)
            plain.unsettled = plain.unsettled or plain.limping
        else:
            assert asked == reached
            assert (sent.sent, sent.refused) == (len(reached), len(refused))
            failed = refused
            if not repeated:
                self.memory.jobs.waiting.remove(job)
        plain.done |= failed
        plain.failed |= failed

    @rule(car=st.integers(0, 1))
    def scrap(self, car: int) -> None:
        """A car's queue is gone for good; whoever is sent to then has failed."""
        self.memory.channels.queues.pop(channel(car), None)
        self.seen[car] = 0

    @rule(car=st.integers(2, 3))
    def lock(self, car: int) -> None:
        """A car's queue is there, and refuses every message with a code that nobody foresaw."""
        self.memory.channels.refusing[channel(car)] = "the queue refuses messages (KMS.Surprise)"

    # Those who reply.

    @precondition(lambda self: self.inbox)
    @rule(data=st.data(), die_in=STEPS, fresh=st.booleans())
    def reply(self, data: st.DataObject, die_in: int | None, fresh: bool) -> None:
        """Some cars reply, to one scatter or to several, some of them twice, and maybe other things."""
        one = st.tuples(st.sampled_from(self.inbox), st.sampled_from(("a", "b")))
        said = [(*whose, words) for whose, words in data.draw(st.lists(one, min_size=1, max_size=4))]
        self.say(said, die_in, fresh)

    @precondition(lambda self: self.silent())
    @rule(data=st.data(), die_in=st.one_of(st.none(), st.integers(6, 16)), fresh=st.booleans())
    def answer(self, data: st.DataObject, die_in: int | None, fresh: bool) -> None:
        """One that has not replied does, also if it is too late; who dies over it does so about its mark."""
        plain, number = data.draw(st.sampled_from(self.silent()))
        self.say([(plain, number, "a")], die_in, fresh)

    @precondition(lambda self: self.owed)
    @rule(data=st.data(), die_in=STEPS, fresh=st.booleans())
    def repeat(self, data: st.DataObject, die_in: int | None, fresh: bool) -> None:
        """The queue delivers again what somebody died over."""
        number = data.draw(st.integers(0, len(self.owed) - 1))
        self.say(self.owed.pop(number), die_in, fresh)

    def say(self, said: Said, die_in: int | None, fresh: bool) -> None:
        replies = [Reply(plain.items[number], words) for plain, number, words in said]
        died, receipts = self.run(die_in, fresh, lambda ledger: ScatterService(ledger).reply(replies))
        if died:
            self.owed.append(said)
            self.discover(said)
        else:
            self.take(said, receipts)
        owing = {plain for lost in self.owed for plain, _, _ in lost}
        for plain, _, _ in said:
            plain.unsettled = plain.limping or plain in owing

    @precondition(lambda self: self.inbox)
    @rule(data=st.data(), salt=st.binary(min_size=16, max_size=16), fresh=st.booleans())
    def forge(self, data: st.DataObject, salt: bytes, fresh: bool) -> None:
        """A reply under an id that nobody was given spoils the whole call, and changes nothing."""
        plain, number = data.draw(st.sampled_from(self.inbox))
        prefix = ids.issue(plain.batch_id, 0, len(plain.cars), salt).prefix
        replies = [Reply(plain.items[number], "a"), Reply(f"{prefix}:{number}", "b")]
        try:
            answer = self.run(None, fresh, lambda ledger: ScatterService(ledger).reply(replies))
        except InvalidItemId:
            return
        raise AssertionError(answer)

    # Time, and the functions behind streams, alarms and schedules.

    @rule(seconds=st.sampled_from((1, 5, 25, 61)))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds * 1000)

    @precondition(lambda self: self.memory.timers.alarms)
    @rule()
    def wait_for_the_next_alarm(self) -> None:
        self.clock.at = max(self.clock.at, min(self.memory.timers.alarms.values()))

    @precondition(
        lambda self: self.ringing or min(self.memory.timers.alarms.values(), default=1e99) <= self.clock.at
    )
    @rule(die_in=STEPS, again=st.booleans())
    def ring(self, die_in: int | None, again: bool) -> None:
        """An alarm rings, maybe twice."""
        self.ringing += self.memory.timers.ring(self.clock.at)
        died = self.look(self.ringing[0], die_in)
        if not died and not again:
            self.ringing.pop(0)

    @precondition(lambda self: self.plain)
    @rule(data=st.data(), die_in=STEPS)
    def ring_at_any_time(self, data: st.DataObject, die_in: int | None) -> None:
        """A stale alarm rings, or one that came late."""
        self.look(data.draw(st.sampled_from(list(self.plain))), die_in)

    def look(self, batch_id: int, die_in: int | None) -> bool:
        jobs = len(self.memory.jobs.waiting)
        died, _ = self.run(die_in, True, lambda ledger: ledger.meet_deadline(batch_id))
        if batch_id in self.plain:
            self.plain[batch_id].rings(self.clock.at, died=died)
        self.only_missing(jobs)
        return died

    @precondition(lambda self: any(self.overdue()))
    @rule(die_in=STEPS)
    def reap(self, die_in: int | None) -> None:
        """The reaper stands in for alarms that were lost, a minute later."""
        jobs = len(self.memory.jobs.waiting)
        due = list(self.overdue())
        died, _ = self.run(die_in, True, lambda ledger: ledger.reap())
        for plain in due:
            plain.rings(self.clock.at, died=died)
        self.only_missing(jobs)

    @precondition(lambda self: len(self.memory.words.finished) > self.healed)
    @rule(die_in=STEPS, again=st.booleans())
    def heal(self, die_in: int | None, again: bool) -> None:
        """The stream of finished words brings some, maybe twice."""
        words = self.memory.words.finished[self.healed :]
        died, _ = self.run(die_in, True, lambda ledger: ledger.heal(words))
        if not died and not again:
            self.healed += len(words)

    @precondition(lambda self: self.ended())
    @rule(die_in=STEPS, again=st.booleans())
    def announce(self, die_in: int | None, again: bool) -> None:
        """The stream of the batches brings an end, maybe twice."""
        published = self.memory.events.published
        row = self.ended()[0]
        told = len(published)
        died, _ = self.run(die_in, True, lambda ledger: ledger.announce(row))
        for event in published[told:]:
            self.hear(self.plain[row.batch_id], event)
        assert died or len(published) == told + 1
        if not died:
            assert row.batch_id not in self.held().values()
            self.announced += not again

    # What must always be true.

    @invariant()
    def agree(self) -> None:
        self.the_stores_agree()
        self.the_service_agrees()

    def teardown(self) -> None:
        """Nobody dies any more: what is owed is repeated, time passes, and all scatters end."""
        while self.owed:
            self.say(self.owed.pop(), None, True)
            self.agree()
        while any(plain.live for plain in self.plain.values()):
            before = self.steps_left()
            for job in list(self.memory.jobs.waiting):
                self.work(job, None, True, False)
                self.agree()
            self.clock.advance(TIMEOUT * 1000 + 61_000)
            self.reap(None)
            self.agree()
            assert self.steps_left() < before
        while self.ended():
            self.announce(None, False)
        assert self.told.keys() == self.plain.keys()
        assert not self.plain.keys() & set(self.held().values())
        self.agree()

    def steps_left(self) -> int:
        """Deadlines until all scatters have ended, at the most."""
        return sum(plain.max_retries + 1 - plain.face.retries for plain in self.plain.values() if plain.live)
