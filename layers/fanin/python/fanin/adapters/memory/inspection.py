"""Looking at queues, for tests of use cases: a test says what is seen."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from fanin.adapters.memory.accesses import Accesses
from fanin.app.ports.queues import QueueReport


class MemoryInspection:
    """A ``QueueInspection`` that reports what it was given.

    Attributes:
        reports: URL → report; another queue cannot be looked at.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.reports: dict[str, QueueReport] = {}
        self._accesses = accesses

    def look(self, queues: Collection[str]) -> list[QueueReport]:
        return [self._accesses.send("inspection.look", partial(self._report, queue)) for queue in queues]

    def _report(self, queue: str) -> QueueReport:
        return self.reports.get(queue, QueueReport(queue, unseen=("its figures (no report)",)))
