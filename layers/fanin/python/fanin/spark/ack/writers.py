"""How many tasks write, how fast each of them may, and how far they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from pyspark import Accumulator
from pyspark.sql import SparkSession

from fanin.domain.limits import shown
from fanin.errors import InvalidRequest
from fanin.spark.runtime.progress import JobProgress
from fanin.spark.runtime.values import whole

LEAST: Final = 1_000
"""Words or failures that are worth a task: one call, or a few."""
_MOST: Final = 25_000
"""Words after which a task says what it has done: a minute's work, if it is alone."""
_STEADY: Final = 200.0
"""Writes a second that a task makes with part of a core, so that a rate needs few tasks at a time."""


@dataclass(frozen=True)
class WriterShare:
    """How writes are divided among tasks.

    Attributes:
        tasks: that mark.
        at_once: how many tasks run at a time, at most.
        writes_per_second: write units a second that each of these may send; None for as many as it can.
        asked: how many tasks the caller asked for, if at all.
    """

    tasks: int
    at_once: int
    writes_per_second: float | None
    asked: int | None

    def tasks_for(self, writes: int) -> int:
        """How many tasks make so many other writes."""
        if self.writes_per_second is not None:
            return min(self.at_once, self.tasks)  # the rate of each was divided among so many
        return self.asked or max(1, min(self.at_once, -(-writes // LEAST)))


def check_writers(writers: Any, per_second: Any) -> tuple[int | None, float | None]:
    """Read how many tasks write, and how fast; refuse what would fail only when everything is coalesced.

    Raises:
        InvalidRequest: the tasks are not a whole number of at least 1, or the rate is not a number of at
            least 1.
    """
    try:
        rate = None if per_second is None else float(per_second)
    except (TypeError, ValueError):
        rate = 0.0
    if rate is not None and not 1 <= rate < math.inf:
        raise InvalidRequest(
            f"max_writes_per_second must be a number of at least 1, not {shown(per_second)}; None sets"
            " no limit"
        )
    return None if writers is None else whole("writers", writers, 1), rate


def share_writers(words: int, most: int, writers: int | None, per_second: float | None) -> WriterShare:
    """Divide the writes of a run among tasks.

    Args:
        words: to clear.
        most: tasks that the cluster may grow to run at the same time.
        writers: tasks that the caller asked for.
        per_second: write units a second of all of them.
    """
    at_once = most if per_second is None else max(1, min(most, int(per_second / _STEADY)))
    if writers:
        at_once = min(at_once, writers)
        tasks = at_once if per_second else writers
    elif at_once < most:
        tasks = at_once  # nothing but the number of tasks keeps more from running
    else:
        tasks = max(min(at_once, -(-words // LEAST)), -(-words // _MOST), 1)
    running = min(at_once, tasks)
    return WriterShare(tasks, at_once, per_second / running if per_second else None, writers)


class WriterReport:
    """How many words and failures of a run are dealt with so far; shown, if at all, inside a ``with`` block.

    Those that were done before count, too, though nothing is written for them.

    Args:
        spark: the session.
        words: to clear.
        failures: to write.
        shown: whether to say on standard error how far they are.

    Attributes:
        count: Spark's own counter, to which tasks add when they end.
    """

    def __init__(self, spark: SparkSession, words: int, failures: int, *, shown: bool) -> None:
        self.count: Accumulator[int] = spark.sparkContext.accumulator(0)
        what = "words and failures" if failures else "words"
        self._shown = JobProgress(what, words + failures, lambda: self.count.value) if shown else None

    def __enter__(self) -> Self:
        if self._shown:
            self._shown.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._shown.__exit__(kind, error, trace)
