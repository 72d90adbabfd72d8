"""A service in memory that is asked why its batches are not finished."""

from typing import Any

import pytest

from fanin.adapters.memory import Memory
from fanin.app.diagnosis.gathering import Facts, gather
from fanin.app.diagnosis.service import DiagnosisService, stall_event
from fanin.app.ports.events import Event
from fanin.app.ports.queues import Figures, QueueReport
from fanin.app.services import Services
from fanin.domain.batch import Batch, OpenBatch
from fanin.domain.diagnosis import Code, Finding, SentItems
from fanin.domain.ids import Group
from fanin.errors import Throttled

URL = "https://sqs/1/work"


def only(code: Code, *rest: Any) -> dict[Code, Finding]:
    """One finding, and no other."""
    return {code: Finding(code, *rest)}


class Scene:
    """Stores in memory, and what is in them."""

    def __init__(self) -> None:
        self._errors: dict[tuple[str, str], BaseException] = {}
        self.memory = Memory(on_call=self._on_call)
        self.accesses, self.clock = self.memory.accesses, self.memory.clock
        self.ports = self.memory.ports()
        self.ledger = Services(self.ports).ledger
        self.diagnostics = DiagnosisService(self.ports)

    def refuse(self, call: str, moment: str = "before", error: BaseException | None = None) -> None:
        """Let the next such access fail; by default, because the store is busy."""
        self._errors[call, moment] = error or Throttled("busy")

    def _on_call(self, call: str, moment: str) -> None:
        if error := self._errors.pop((call, moment), None):
            raise error

    def group(self, items: int, **request: object) -> Group:
        """The items of a new batch, which is open."""
        return self.ledger.add(self.ledger.open(OpenBatch(**request)).batch_id, items)

    def batch(self, items: int, **request: object) -> tuple[Batch, Group]:
        """A new batch, which is closed, and its items."""
        group = self.group(items, **request)
        return self.ledger.close(group.batch_id), group

    def waiting(self, figures: Figures, **request: object) -> Batch:
        """A closed batch whose three messages are noted, and a queue with these figures."""
        batch, _ = self.batch(3, **request)
        self.diagnostics.note_sent(batch.batch_id, SentItems(URL, 0, 3))
        self.report(figures)
        return batch

    def report(self, figures: Figures) -> None:
        """Let the queue have these figures, and no consumer that is known."""
        self.memory.inspection.reports[URL] = QueueReport(URL, figures=figures, consumers=(), troubles=())

    def row(self, batch: Batch) -> Batch:
        """The row as it is stored."""
        return self.ports.batches.read([batch.batch_id])[batch.batch_id]

    def facts(self, batch: Batch) -> Facts:
        return gather(self.ports, self.row(batch))

    def stall(self, batch: Batch) -> Event | None:
        return stall_event(self.ports, self.row(batch))


@pytest.fixture
def scene() -> Scene:
    return Scene()
