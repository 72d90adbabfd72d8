"""Simulates concurrent processes in one thread and in virtual time; a seed decides their order."""

import heapq
import random
from collections.abc import Callable, Iterable
from itertools import count

from greenlet import getcurrent, greenlet

LATENCY_MS = (1.0, 5.0)
"""Bounds of the time that a request takes to a row, and again of the time that its answer takes back."""


class Interleaving:
    """Runs actors whose accesses to rows, and the answers, take random times from a seed.

    Pass ``on_call`` to ``Memory``. Before each access and before each answer other actors may run; the
    accesses to a row happen one at a time, as in DynamoDB.

    Args:
        seed: the same seed gives the same order of events.

    Attributes:
        actor: number of the running actor.
    """

    def __init__(self, seed: int) -> None:
        self.actor = -1
        self._random = random.Random(seed)  # noqa: S311
        self._queue: list[tuple[float, int, greenlet]] = []
        self._sequence = count()
        self._now = 0.0
        self._hub = getcurrent()
        self._numbers: dict[greenlet, int] = {}

    def on_call(self, _call: str, _moment: str) -> None:
        if self._numbers:  # outside of run() only the hub makes calls, and it never waits
            self._wait(getcurrent())
            self._hub.switch()

    def run(self, actors: Iterable[Callable[[], None]]) -> None:
        """Run all actors until they have returned; an error of an actor is raised here."""
        for number, actor in enumerate(actors):
            runner = greenlet(actor)
            self._numbers[runner] = number
            self._wait(runner)
        while self._queue:
            self._now, _, runner = heapq.heappop(self._queue)
            self.actor = self._numbers[runner]
            runner.switch()
        self._numbers.clear()

    def _wait(self, runner: greenlet) -> None:
        arrival = self._now + self._random.uniform(*LATENCY_MS)
        heapq.heappush(self._queue, (arrival, next(self._sequence), runner))
