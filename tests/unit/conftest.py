"""The stores in memory, and the service that stands on some of its own."""

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.testing import InMemoryService


@pytest.fixture
def service() -> InMemoryService:
    return InMemoryService()


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def ledger(memory: Memory) -> LedgerService:
    return LedgerService(memory.ports())
