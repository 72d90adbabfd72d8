"""A person at a console with buttons, over a service in memory."""

import pytest

from fanin import KeptMessage
from fanin.domain.batch import Batch
from fanin.domain.marks import Failure
from fanin.testing import InMemoryService
from tests.unit.console.pressing import Person


@pytest.fixture
def person(service: InMemoryService) -> Person:
    return Person(service)


class Makes:
    """Makes batches in states that actions are about."""

    def __init__(self, service: InMemoryService) -> None:
        self.tracker = service.tracker
        self.ledger = service.services.ledger
        self.queue = service.queue("work")
        self.ids: dict[int, list[str]] = {}

    def batch(self, items: int, done: int = 0, **options: object) -> tuple[Batch, list[str]]:
        """An open batch, of which the first items are done."""
        batch = self.tracker.open(**options)
        ids = list(self.tracker.add(batch.batch_id, items)) if items else []
        self.ids[batch.batch_id] = ids
        if done:
            self.tracker.ack(ids[:done])
        return batch, ids

    def failed(
        self,
        reasons: list[str],
        *,
        more: int = 0,
        kept: bool = True,
        source: str | None = None,
        **options: object,
    ) -> Batch:
        """A batch whose first items failed for reasons; more are done. One that does not hold is closed."""
        batch, ids = self.batch(len(reasons) + more, **options)
        self.fail(dict(zip(ids, reasons, strict=False)), kept=kept, source=source)
        if not batch.holds:
            self.tracker.ack(ids[len(reasons) :])
            self.tracker.close(batch.batch_id)
        return self.ledger.status(batch.batch_id).batch

    def fail(self, reasons: dict[str, str], *, kept: bool = True, source: str | None = None) -> None:
        """Fail items, each for a reason."""
        message = KeptMessage("body") if kept else None
        place = self.queue if source is None else source
        self.ledger.mark(
            [Failure(item, reason, message=message, source=place) for item, reason in reasons.items()]
        ).whole()


@pytest.fixture
def makes(service: InMemoryService) -> Makes:
    return Makes(service)
