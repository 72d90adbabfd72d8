"""Compares how long several strategies take for the same work."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from bench.figures import Figure

Strategy = Callable[[], object]
TURNS = 5


@dataclass(frozen=True)
class Times:
    """How long the runs of one strategy took, in seconds."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.seconds)

    def faster_than(
        self,
        other: Times,
        name: str,
        *,
        at_least: float | None = None,
        note: str = "",
        in_turns: bool = False,
    ) -> Figure:
        """How many times as fast as another one, by the fastest run of each.

        Args:
            other: the other one.
            name: of the figure.
            at_least: its bound.
            note: comes first in its note.
            in_turns: take the median of the turns: a machine may be slow for longer than a long run.
        """
        best = other.best / self.best
        turns = median(theirs / mine for theirs, mine in zip(other.seconds, self.seconds, strict=True))
        told = f"of {len(self.seconds)} turns the fastest {best:.2f}, the median {turns:.2f}"
        return Figure(
            name, turns if in_turns else best, at_least=at_least, note=", ".join(filter(None, [note, told]))
        )


def compared(
    strategies: Mapping[str, Strategy], *, warm_up: Mapping[str, Strategy], times: int, turns: int = TURNS
) -> dict[str, Times]:
    """Time each strategy several times. They take turns, so that a slow minute of the machine hits all.

    Args:
        strategies: what is compared, by name.
        warm_up: the same strategies on few rows, not timed. Java compiles while it runs: what Spark does once
            for each query takes twice as long in the fifth run as in the thirtieth.
        times: how often the warm-up is run.
        turns: how often each strategy is timed.

    Returns:
        The times by the strategy's name.
    """
    for _ in range(times):
        for run in warm_up.values():
            run()
    took = [[_seconds(run) for run in strategies.values()] for _ in range(turns)]
    return dict(zip(strategies, map(Times, zip(*took, strict=True)), strict=True))


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
