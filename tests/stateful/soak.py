"""The simulation for a long time, on all cores; what fails is kept, and played first the next time.

python -m tests.stateful.soak [--seeds 1000000] [--minutes 60]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

from tests.stateful.simulation import simulate

WIDTHS: Final = (2, 3, 4, 64)
BLOCK: Final = 100
"""Seeds that a process plays before it reports."""
NOTES: Final = Path(__file__).parents[2] / ".soak.json"


class Seed(NamedTuple):
    """One play of the simulation."""

    width: int
    number: int

    @property
    def replay(self) -> str:
        """The command that plays it alone, with a trace."""
        return f"python -m tests.stateful.simulation {self.width} {self.number}"


@dataclass
class Notes:
    """What one run leaves to the next.

    Attributes:
        first: number of the first seed that no run has played.
        failing: seeds that failed, and have not passed since.
    """

    first: int = 0
    failing: list[Seed] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Notes:
        if not path.exists():
            return cls()
        known = json.loads(path.read_text())
        return cls(known["first"], [Seed(*seed) for seed in known["failing"]])

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


def failures(seeds: Sequence[Seed]) -> list[tuple[Seed, str]]:
    """Play seeds; returns those that fail, and how."""
    failed = []
    for seed in seeds:
        try:
            simulate(*seed)
        except Exception as error:  # noqa: BLE001 - a seed that raises anything has failed
            failed.append((seed, f"{type(error).__name__}: {error}"))
    return failed


def soak(
    path: Path,
    *,
    seeds: int,
    minutes: float | None = None,
    processes: int | None = None,
    first: int | None = None,
) -> bool:
    """Play the seeds that failed before, and then new ones, until there were enough or the time is over.

    Args:
        path: file of the notes.
        seeds: how many to play.
        minutes: how long to go on; None goes on for as long as it takes.
        processes: how many to play in; None takes one for each core.
        first: number of the first new seed; None for that of the notes.

    Returns:
        Whether all passed.
    """
    notes, start, played = Notes.read(path), time.monotonic(), 0
    notes.first = notes.first if first is None else first
    end = None if minutes is None else start + 60 * minutes
    processes = processes or os.cpu_count() or 1
    with ProcessPoolExecutor(processes, get_context("fork")) as pool:
        again, notes.failing = notes.failing, []
        blocks = _blocks(again, notes, seeds)
        running = {pool.submit(failures, block): block for block in islice(blocks, processes)}
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                played += len(running.pop(one))
                for seed, reason in one.result():
                    notes.failing.append(seed)
                    _tell(f"{reason}\n  replay it: {seed.replay}")
                if (end is None or time.monotonic() < end) and (block := next(blocks, None)):
                    running[pool.submit(failures, block)] = block
            waiting = [seed for block in running.values() for seed in block if seed in again]
            Notes(notes.first, notes.failing + waiting).write(path)
    seconds = time.monotonic() - start
    _tell(f"{played:,} seeds in {seconds:,.0f} s, {len(notes.failing)} failed; they are kept in {path}")
    return not notes.failing


def _blocks(again: Sequence[Seed], notes: Notes, seeds: int) -> Iterator[list[Seed]]:
    """What to play, a block at a time: the seeds of ``again``, and then new ones."""
    if again:
        yield list(again)
    new = (Seed(width, number) for number in count(notes.first) for width in WIDTHS)
    left = seeds - len(again)
    while left > 0:
        block = list(islice(new, min(BLOCK, left)))
        left -= len(block)
        notes.first = block[-1].number + 1
        yield block


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=lambda text: float(text) if text else None, default=None)
    parser.add_argument("--first", type=int, help="number of the first seed, whatever was played before")
    options = parser.parse_args()
    sys.exit(not soak(NOTES, **vars(options)))
