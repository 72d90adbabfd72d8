"""Runs actors as greenlets; at every access to a store, a seed decides who goes on and who crashes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from greenlet import getcurrent, greenlet

T = TypeVar("T")

WEIGHTS = (1.0, 1.0, 1.0, 8.0, 0.02)
"""How eager an actor is. The last stalls between two accesses while the others get far."""


class Crash(BaseException):
    """The process dies here; no handler of errors sees it."""


class Stuck(AssertionError):
    """Nobody can go on, or it takes for ever."""


class Scheduler:
    """Interleaves actors at the accesses of the stores in memory (their ``on_call``).

    Args:
        rng: decides everything.
        onlooker: called at every access, by whoever makes it.
        crashes: how many crashes are left to happen.
        trace: gets a line for each access and switch, when a seed is replayed.
    """

    def __init__(
        self,
        rng: Random,
        onlooker: Callable[[], None],
        *,
        crashes: int,
        trace: Callable[[str], None] | None = None,
    ) -> None:
        self._rng = rng
        self._onlooker = onlooker
        self._crashes = crashes
        self._trace = trace
        self._hub = getcurrent()
        self._names: dict[greenlet, str] = {}
        self._awaited: dict[greenlet, Callable[[], object]] = {}
        self._switching = rng.choice((0.1, 0.3, 0.7))
        self._crashing = rng.choice((0.0, 0.01, 0.03, 0.1))

    def on_call(self, call: str, moment: str) -> None:
        """The hook of the stores: look, then crash, let another actor go on, or just return."""
        self._onlooker()
        me = getcurrent()
        if me is self._hub:
            return
        self.tell(f"{call} {moment}")
        if self._crashes and self._rng.random() < self._crashing:
            self._crashes -= 1
            self.tell("CRASH")
            raise Crash
        if self._rng.random() < self._switching:
            self._hub.switch()

    @property
    def acts(self) -> bool:
        """Whether an actor is asking, and not a test that looks at the stores."""
        return getcurrent() is not self._hub

    def wait(self, condition: Callable[[], T]) -> T:
        """Let the others go on until the condition is truthy."""
        while not (value := condition()):
            me = getcurrent()
            self._awaited[me] = condition
            self._hub.switch()
            self._awaited.pop(me, None)
        return value

    def pause(self) -> None:
        """Let another actor go on."""
        self._hub.switch()

    def run(self, actors: dict[str, Callable[[], None]], *, between: Callable[[], None]) -> None:
        """Run actors until all have returned.

        Args:
            actors: by name. One that crashes is started again from the beginning.
            between: called now and then between two accesses (it moves the clock).

        Raises:
            Stuck: they do not come to an end.
        """
        rng = self._rng
        live = [greenlet(lambda a=actor: self._persist(a)) for actor in actors.values()]
        self._names |= dict(zip(live, actors, strict=True))
        weights = {task: rng.choice(WEIGHTS) for task in live}
        for _ in range(200_000):
            if not live:
                return
            task = self._choose(live, weights)
            if not self._ready(task):
                task = self._choose([task for task in live if self._ready(task)], weights)
            task.switch()
            if task.dead:
                live.remove(task)
            if rng.random() < 0.03:
                between()
        raise Stuck(f"still running: {[self._names[task] for task in live]}")

    def _ready(self, task: greenlet) -> object:
        awaited = self._awaited.get(task)
        return awaited is None or awaited()

    def _choose(self, tasks: list[greenlet], weights: dict[greenlet, float]) -> greenlet:
        if not tasks:
            raise Stuck(f"all wait for each other: {[self._names[task] for task in self._awaited]}")
        return self._rng.choices(tasks, [weights[task] for task in tasks])[0]

    def tell(self, line: str) -> None:
        """Add a line to the trace."""
        if self._trace:
            self._trace(f"{self._names.get(getcurrent(), '-'):12} {line}")

    @staticmethod
    def _persist(actor: Callable[[], None]) -> None:
        while True:
            try:
                return actor()
            except Crash:
                continue
