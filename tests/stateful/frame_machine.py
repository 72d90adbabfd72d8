"""Guaranteed delivery as a state machine: Hypothesis chooses what is sent, lost, doubled, and who dies."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fanin.errors import BufferFull
from tests.stateful.frame_world import CHANNEL, LEASE, MOST, TTL, FrameWorld, Receiver
from tests.stateful.fuse import STEPS

MONTHS = 40 * 86_400
MOODS = ("able", "able", "able", "able", "broken", "unwilling")
SELDOM = st.one_of(st.none(), st.none(), st.none(), st.none(), STEPS)
PATIENCE = 60
"""Rounds, of six seconds, within which everything is delivered once nothing fails any more."""


class FrameMachine(FrameWorld, RuleBasedStateMachine):
    """A sender with a buffer in a file, receivers, and the functions behind them. Each may die at any access
    to a store, senders also at their buffer's writes, receivers also with an envelope in their hands.
    """

    # The sender.

    @initialize(n=st.integers(1, 5))
    def first(self, n: int) -> None:
        """Put something and send it, so that there is something to receive."""
        self.put(n, None)
        self.flush(None)

    @rule(n=st.integers(1, 3), die_in=st.sampled_from((None, None, None, 0, 1)))
    def put(self, n: int, die_in: int | None) -> None:
        for _ in range(n):
            payload = str(self.put_so_far).encode()
            self.put_so_far += 1
            full = len(self.held()) == MOST
            try:
                alive = self.sender(die_in, lambda repeater: repeater.put(payload))  # noqa: B023
            except BufferFull:
                assert full
                return
            assert not (alive and full)
            if alive or payload in {there for _, _, there in self.held()}:
                self.kept.add(payload)

    @precondition(lambda self: self.store.waiting)
    @rule(die_in=STEPS)
    def flush(self, die_in: int | None) -> None:
        self.sender(die_in, lambda repeater: repeater.flush())

    @rule(die_in=STEPS)
    def tick(self, die_in: int | None) -> None:
        self.sender(die_in, lambda repeater: repeater.tick())

    @rule(size=st.integers(1, 4), away=st.sampled_from((0, 0, 0, 0, MONTHS)))
    def restart(self, size: int, away: int) -> None:
        """The sender is killed and begins again, maybe much later, maybe with frames of another size."""
        self.store.close()
        self.clock.advance(away * 1000)
        self.size = size
        self.begin()

    # The way.

    @rule(fault=st.sampled_from((None, None, "all", "some")))
    def weather(self, fault: str | None) -> None:
        self.fault = fault

    @precondition(lambda self: self.wire)
    @rule(data=st.data(), copies=st.sampled_from((0, 2)))
    def lose_or_double(self, data: st.DataObject, copies: int) -> None:
        at = data.draw(st.integers(0, len(self.wire) - 1))
        self.wire += [self.wire.pop(at)] * copies

    @precondition(lambda self: self.memory.channels.queues[CHANNEL])
    @rule(data=st.data(), copies=st.sampled_from((0, 2)))
    def lose_or_double_a_notice(self, data: st.DataObject, copies: int) -> None:
        queue = self.memory.channels.queues[CHANNEL]
        queue += [queue.pop(data.draw(st.integers(0, len(queue) - 1)))] * copies

    # The receivers.

    @precondition(lambda self: self.wire)
    @rule(data=st.data(), mood=st.sampled_from(MOODS), slow=st.booleans(), fresh=st.booleans(), die_in=SELDOM)
    def receive(self, data: st.DataObject, mood: str, slow: bool, fresh: bool, die_in: int | None) -> None:
        """Somebody receives a few of the messages, in any order."""
        places = data.draw(st.lists(st.integers(0, len(self.wire) - 1), min_size=1, max_size=3, unique=True))
        envelopes = [self.wire[place] for place in places]
        self.wire = [envelope for place, envelope in enumerate(self.wire) if place not in places]
        process = self.process() if fresh else self.old
        receiver = Receiver(self, envelopes, process, mood=mood, slow=slow)
        if not receiver.step(die_in):
            self.busy.append(receiver)

    @precondition(lambda self: self.busy)
    @rule(data=st.data(), die_in=SELDOM)
    def go_on(self, data: st.DataObject, die_in: int | None) -> None:
        receiver = self.busy.pop(data.draw(st.integers(0, len(self.busy) - 1)))
        if not receiver.step(die_in):
            self.busy.append(receiver)

    @precondition(lambda self: self.busy)
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        """A receiver dies with an envelope in its hands."""
        self.busy.pop(data.draw(st.integers(0, len(self.busy) - 1))).die()

    @precondition(lambda self: self.busy)
    @rule(data=st.data())
    def stall(self, data: st.DataObject) -> None:
        """A receiver is so slow that its lease runs out and its messages come again."""
        self.clock.advance(LEASE * 1000)
        self.wire += data.draw(st.sampled_from(self.busy)).envelopes

    # Time, and the functions behind streams and schedules.

    @rule(seconds=st.sampled_from((1, 6, 6, LEASE, LEASE, TTL + 1)))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds * 1000)

    @precondition(lambda self: self.overdue())
    @rule(die_in=STEPS)
    def reap(self, die_in: int | None) -> None:
        self.function(die_in, lambda ledger: ledger.reap())

    @precondition(lambda self: len(self.memory.words.finished) > self.healed)
    @rule(die_in=STEPS, again=st.booleans())
    def heal(self, die_in: int | None, again: bool) -> None:
        words = self.memory.words.finished[self.healed :]
        if self.function(die_in, lambda ledger: ledger.heal(words)) and not again:
            self.healed += len(words)

    @precondition(lambda self: self.ended())
    @rule(die_in=STEPS, again=st.booleans())
    def announce(self, die_in: int | None, again: bool) -> None:
        row = self.ended()[0]
        if row.gone(self.clock.at):  # a stream does not keep its records for so long
            self.told += 1
            return
        self.told += self.function(die_in, lambda ledger: ledger.announce(row)) and not again

    @invariant()
    def agree(self) -> None:
        self.check()

    def teardown(self) -> None:
        """Nothing fails any more: soon all is delivered, and nothing is kept."""
        self.fault = None
        for _ in range(PATIENCE):
            if not (self.held() or self.wire or self.busy):
                break
            self.tick(None)
            if self.store.waiting:
                self.flush(None)
            while self.busy:
                self.go_on_to_the_end(self.busy.pop())
            if self.wire:
                envelopes, self.wire = self.wire, []
                self.go_on_to_the_end(Receiver(self, envelopes, self.process(), mood="able", slow=False))
            while self.ended():
                self.announce(None, False)
            self.reap(None)
            self.check()
            self.clock.advance(6_000)
        left = self.held(), self.wire, self.busy
        self.store.close()
        self.folder.cleanup()
        assert left == ([], [], [])
        assert self.kept <= set(self.effects.values()) | self.failed

    def go_on_to_the_end(self, receiver: Receiver) -> None:
        while not receiver.step(None):
            pass
