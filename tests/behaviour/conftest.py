"""The behaviour suite's world in memory; that of the deployed stack is in ``tests/e2e/test_behaviour.py``."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TypeVar

import pytest

from fanin import Tracker
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.testing import InMemoryService
from tests.behaviour.world import Told, ends

T = TypeVar("T")
MOMENT = timedelta(seconds=0.25)
REAPER = timedelta(minutes=5)


class InMemoryWorld:
    def __init__(self, service: InMemoryService) -> None:
        self._service = service

    @property
    def tracker(self) -> Tracker:
        return self._service.tracker

    @property
    def ports(self) -> Ports:
        ledger = self._service.services.ledger
        assert isinstance(ledger, LedgerService)
        return ledger.ports

    def queue(self, *, channel: bool = False) -> str:
        return self._service.queue(channel=channel)

    def tracked_queue(self) -> str:
        return self._service.queue("work", max_receives=5)

    def until(self, look: Callable[[], T], within: float = 20) -> T:
        give_up = self._service.clock.seconds() + within
        while not (seen := look()):
            assert self._service.clock.seconds() < give_up, f"not within {within} s; last seen: {seen!r}"
            self._service.advance(MOMENT)
        return seen

    def idle(self, batch_id: int, seconds: int) -> None:
        self._service.advance(timedelta(seconds=seconds) + REAPER)

    def events(self, batch_id: int) -> list[Told]:
        return [Told(event.detail_type, dict(event.detail)) for event in self._service.events_of(batch_id)]

    def only_event(self, batch_id: int, within: float = 20) -> Told:
        (event,) = self.until(lambda: ends(self.events(batch_id)), within)
        return event


@pytest.fixture
def world() -> Iterator[InMemoryWorld]:
    service = InMemoryService()
    yield InMemoryWorld(service)
    assert not service.dead
    ids = [event.id for event in service.events]
    assert len(ids) == len(set(ids))
