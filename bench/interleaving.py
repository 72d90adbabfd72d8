"""Many processes at once, in one thread and in virtual time: the same seed, the same course of events."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from itertools import count

from greenlet import getcurrent, greenlet

LATENCY_MS = (1.0, 5.0)
"""How long a request, and as long again its answer, is on its way to a row."""


class Interleaving:
    """Runs actors so that each access to a row takes a seeded time to arrive, and its answer to come back.

    Pass ``on_call`` to ``Memory``. Between the two moments of a call, and between calls, any other actor
    may come first; the accesses to a row take place one after the other, as in DynamoDB.

    Attributes:
        actor: number of the actor that is running.
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
        if self._numbers:  # nothing is set up but by the hub, which never waits
            self._wait(getcurrent())
            self._hub.switch()

    def run(self, actors: Iterable[Callable[[], None]]) -> None:
        """Run all actors to their end."""
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
