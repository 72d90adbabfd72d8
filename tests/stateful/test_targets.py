"""Targets under crashes and repeats at every step: none is lost, none is told early, each is marked once.

Processes die before and after every access to a store, queue or target; the SDK repeats every request whose
answer was lost. What the queue of jobs, the stream and the caller's key repeat is repeated here.
"""

from collections.abc import Callable
from itertools import count
from typing import Final

import pytest

from fanin.adapters.memory import Callback, FixedClock, LostAnswer, Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Defaults
from fanin.app.services import Patterns
from fanin.app.targets.delivery import JobOutcome, deliver
from fanin.app.targets.records import TargetJob, read_targets
from fanin.domain.batch import OpenBatch
from fanin.domain.marks import Failure
from fanin.domain.targets import Target, TargetState, TargetType, When
from tests.stateful.fuse import Fuse
from tests.stateful.scheduler import Crash

QUEUE: Final = "memory:next"
TARGETS: Final = (
    Target(TargetType.STEP_FUNCTIONS, task_token="any"),
    Target(TargetType.SQS, When.COMPLETE, queue_url=QUEUE),
    Target(TargetType.WEBHOOK, When.FAILED, url="https://hooks.example.com/x"),
)
PHASES: Final = {"open": 10, "announce": 5, "deliver 0": 4, "deliver 1": 4, "deliver 2": 4}
"""Phase → the least number of moments in which a process can die in it."""


class Lossy:
    """Loses the answer of the access that is so many steps away; the SDK repeats it."""

    def __init__(self) -> None:
        self._left: int | None = None
        self.lost = False

    def on_call(self, _call: str, moment: str) -> None:
        if moment != "after" or self._left is None:
            return
        if self._left == 0:
            self._left, self.lost = None, True
            raise LostAnswer
        self._left -= 1

    def burn(self, steps: int, call: Callable[[], object]) -> None:
        self._left = steps
        try:
            call()
        finally:
            self._left = None


class Life:
    """One batch with three targets, from its opening until each target is settled.

    Args:
        phase: which part of its life is disturbed.
        steps: how many moments pass until it is.
        lose: lose an answer instead of dying.
        fail: whether an item fails.
    """

    def __init__(self, phase: str, steps: int, *, lose: bool, fail: bool) -> None:
        self.phase, self.steps, self.lose, self.fail = phase, steps, lose, fail
        self.fuse, self.lossy = Fuse(), Lossy()
        self.clock = FixedClock()
        self.memory = Memory(clock=self.clock, on_call=self._on_call)
        self.memory.channels.queues[QUEUE] = []
        self.ports = self.memory.ports(Defaults(webhook_hosts="hooks.example.com"))
        self.disturbed = False
        self.batch_id: int | None = None

    def _on_call(self, call: str, moment: str) -> None:
        if moment == "after" and call in {"callbacks.call", "target_jobs.send"}:
            self._not_early()
        self.fuse.on_call(call, moment)
        self.lossy.on_call(call, moment)

    def _not_early(self) -> None:
        """Nobody is told, and no job is made, before the batch has ended."""
        rows = list(self.memory.batches._rows.values())
        assert rows
        assert all(row.state.terminal for row in rows if row.targets)

    def process(self) -> LedgerService:
        return LedgerService(self.ports, Patterns(self.ports))

    def mortal(self, phase: str, call: Callable[[], object]) -> None:
        """Make a call; in the phase that is disturbed, disturb it, and then repeat it undisturbed."""
        if phase != self.phase or self.disturbed:
            call()
            return
        if self.lose:
            self.lossy.burn(self.steps, call)
            self.disturbed = self.lossy.lost
            return
        try:
            self.fuse.burn(self.steps, call)
        except Crash:
            self.disturbed = True
            call()

    def run(self) -> None:
        self.mortal("open", self._open)
        assert self.batch_id is not None
        self._end()
        row = self.memory.batches._rows[self.batch_id]
        assert row.state.terminal
        self.mortal("announce", lambda: self.process().announce(row))
        self._work()
        self._check()

    def _open(self) -> None:
        self.batch_id = self.process().open(OpenBatch(on_end=TARGETS), key="k").batch_id

    def _end(self) -> None:
        assert self.batch_id is not None
        ledger = self.process()
        items = list(ledger.add(self.batch_id, 1))
        ledger.close(self.batch_id)
        if self.fail:
            ledger.mark([Failure(item, "broken") for item in items]).whole()
        else:
            ledger.mark(items).whole()

    def _work(self) -> None:
        """Do the jobs as their queue hands them over: at least once, until none is left."""
        waiting = self.memory.target_jobs.waiting
        while waiting:
            job = TargetJob.decode(waiting[0])
            self.mortal(f"deliver {job.number}", lambda job=job: deliver(self.ports, job))
            assert deliver(self.ports, job) is JobOutcome.NOTHING  # a copy finds nothing left to do
            waiting.pop(0)

    def _check(self) -> None:
        """Each target that asked for this end was told it, and its record says so once."""
        assert self.batch_id is not None
        found = read_targets(self.ports.records, self.batch_id, range(3))
        wanted = [target.wants(not self.fail) for target in TARGETS]
        assert [kept.state is TargetState.DELIVERED for kept in found] == wanted
        assert [kept.state is TargetState.SKIPPED for kept in found] == [not one for one in wanted]
        for kept in found:
            told = self._told(kept.target)
            marks = self._marks(kept.number)
            assert bool(told) is wanted[kept.number]
            assert marks == 1
            if not self.disturbed:
                assert len(told) <= 1

    def _told(self, target: Target) -> list[object]:
        if target.type is TargetType.SQS:
            return list(self.memory.channels.queues[QUEUE])
        calls: list[Callback] = self.memory.callbacks.told
        return [told for told in calls if told.target == target]

    def _marks(self, number: int) -> int:
        """How often the record became settled: a later write of a settled record would be a second mark."""
        return sum(
            new is not None
            and new.name == f"target/{number}"
            and new.value["state"] in {"delivered", "skipped"}
            for _, _, new in self.memory.records.changes
        )


def lives(phase: str, *, lose: bool, fail: bool) -> int:
    """Live through a disturbance at each step of a phase; returns how many steps it has."""
    for steps in count():
        life = Life(phase, steps, lose=lose, fail=fail)
        life.run()
        if not life.disturbed:
            return steps
    raise AssertionError


@pytest.mark.parametrize("fail", [False, True])
@pytest.mark.parametrize("phase", PHASES)
def test_a_process_that_dies_at_any_step_loses_no_target(phase, fail):
    assert lives(phase, lose=False, fail=fail) >= PHASES[phase]


@pytest.mark.parametrize("fail", [False, True])
@pytest.mark.parametrize("phase", PHASES)
def test_a_request_that_the_sdk_repeats_marks_no_target_twice(phase, fail):
    assert lives(phase, lose=True, fail=fail) >= 2


def test_an_opening_that_was_never_finished_calls_nobody_back():
    # Given processes that die at every step of an opening without a key, which nobody repeats
    for steps in count():
        life = Life("open", steps, lose=False, fail=False)
        try:
            life.fuse.burn(steps, lambda life=life: life.process().open(OpenBatch(on_end=TARGETS)))
        except Crash:
            # When time passes, and the reaper ends what is there
            life.clock.advance(40 * 86_400_000)
            life.process().reap()
            rows = life.memory.batches._rows.values()
            # Then targets are told only of a batch that there is
            assert not life.memory.target_jobs.waiting
            assert all(row.targets == 3 for row in rows)
        else:
            return


def test_two_processes_with_one_key_write_one_set_of_targets():
    # Given a process that pauses after each access while another makes the same call
    for pause in range(12):
        life = Life("none", 0, lose=False, fail=False)
        left = [pause]
        opened: list[int] = []

        def meanwhile(
            _call: str, moment: str, left: list[int] = left, life: Life = life, opened: list[int] = opened
        ) -> None:
            if moment == "after" and left:
                if left[0] == 0:
                    left.clear()
                    request = OpenBatch(on_end=TARGETS)
                    opened.append(life.process().open(request, key="k").batch_id)
                else:
                    left[0] -= 1

        life.memory.accesses._on_call = meanwhile
        first = life.process().open(OpenBatch(on_end=TARGETS), key="k").batch_id
        life.memory.accesses._on_call = lambda _call, _moment: None
        # Then both have the same batch, whose targets are as declared
        assert set(opened) <= {first}
        found = read_targets(life.ports.records, first, range(5))
        assert [kept.target for kept in found] == list(TARGETS)


class Parked(Life):
    """A batch one of whose targets has refused, until somebody has it told again."""

    def __init__(self, phase: str = "none", steps: int = 0, *, lose: bool = False) -> None:
        super().__init__(phase, steps, lose=lose, fail=False)
        self._open()
        self._end()
        assert self.batch_id is not None
        self.process().announce(self.memory.batches._rows[self.batch_id])
        self.memory.callbacks.refusing.add("any")
        self._deliver()
        assert self._state() is TargetState.PARKED
        self.memory.callbacks.refusing.clear()

    def _state(self) -> TargetState:
        assert self.batch_id is not None
        return read_targets(self.ports.records, self.batch_id, [0])[0].state

    def redeliver(self) -> None:
        assert self.batch_id is not None
        self.process().redeliver(self.batch_id)

    def _deliver(self) -> None:
        waiting = self.memory.target_jobs.waiting
        while waiting:
            self.mortal("deliver", lambda: deliver(self.ports, TargetJob.decode(waiting[0])))
            waiting.pop(0)

    def live(self) -> None:
        self.mortal("redeliver", self.redeliver)
        self._deliver()
        self.settled()

    def settled(self) -> None:
        """The target was told, and says so; a copy of its job, or another request, does nothing more."""
        assert self._state() is TargetState.DELIVERED
        told = len(self._told(TARGETS[0]))
        assert told >= 1
        self.redeliver()
        assert not self.memory.target_jobs.waiting
        assert (len(self._told(TARGETS[0])), self._marks(0)) == (told, 1)


@pytest.mark.parametrize("lose", [False, True])
@pytest.mark.parametrize(("phase", "least"), [("redeliver", 3), ("deliver", 3)])
def test_a_parked_target_is_told_again_whatever_dies_or_is_repeated(phase, least, lose):
    for steps in count():
        life = Parked(phase, steps, lose=lose)
        life.live()
        if not life.disturbed:
            assert steps >= least
            return


@pytest.mark.parametrize("down", [False, True])
def test_a_redelivery_meanwhile_loses_no_target_and_undoes_no_mark(down):
    """A job tells a target, or fails to, while somebody presses the button; at each of its steps."""
    for pause in count():
        life, left = Parked(), [pause]
        life.redeliver()
        if down:
            life.memory.callbacks.down.add("any")

        def meanwhile(_call: str, moment: str, left: list[int] = left, life: Parked = life) -> None:
            if moment == "before" and left:
                if left[0] == 0:
                    left.clear()
                    life.redeliver()
                else:
                    left[0] -= 1

        job = TargetJob.decode(life.memory.target_jobs.waiting.pop(0))
        life.memory.accesses._on_call = meanwhile
        outcome = deliver(life.ports, job)
        life.memory.accesses._on_call = lambda _call, _moment: None
        life.memory.callbacks.down.clear()
        if outcome is JobOutcome.AGAIN:
            deliver(life.ports, job)
        life._deliver()
        life.settled()
        if left:
            return
