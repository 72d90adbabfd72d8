"""How long several ways to do the same take, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from bench.figures import Figure

Strategy = Callable[[], object]
ROUNDS = 5


@dataclass(frozen=True)
class Times:
    """How long the runs of one strategy took, in seconds."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.seconds)

    def faster_than(
        self, other: Times, name: str, *, at_least: float | None = None, note: str = ""
    ) -> Figure:
        """How many times as fast as another one: the fastest run of each, and the median of the turns."""
        turns = median(theirs / mine for theirs, mine in zip(other.seconds, self.seconds, strict=True))
        notes = filter(None, [note, f"median of {len(self.seconds)} turns {turns:.2f}"])
        return Figure(name, other.best / self.best, at_least=at_least, note=", ".join(notes))


def compared(strategies: Sequence[Strategy], *, few: Sequence[Strategy] = (), rounds: int = 0) -> list[Times]:
    """Run each strategy some times, in turns, since machines are slow at times.

    Args:
        strategies: what is compared.
        few: the same with few rows, not timed. Java compiles while it runs: what Spark does once for
            each query, however many rows there are, takes twice as long in the fifth as in the thirtieth.
        rounds: how often these are run.
    """
    for _ in range(rounds):
        for run in few:
            run()
    turns = [[_seconds(run) for run in strategies] for _ in range(ROUNDS)]
    return [Times(seconds) for seconds in zip(*turns, strict=True)]


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
