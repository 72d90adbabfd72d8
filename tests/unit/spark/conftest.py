"""A stack in memory that stands where jobs have the ``Service``."""

from pathlib import Path
from typing import Any

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Services
from fanin.client import local_stack
from fanin.client.local_stack import FOLDER, Stack
from fanin.client.tracker import Tracker
from tests.unit.local_stacks import STACK


class Sqs:
    """An SQS client that takes messages, but for bodies that it refuses.

    Attributes:
        sent: item id → body, of messages that it took.
        refuses: bodies that it will never take.
    """

    def __init__(self) -> None:
        self.sent: dict[str, str] = {}
        self.refuses: set[str] = set()

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        failed = []
        for entry in Entries:
            if entry["MessageBody"] in self.refuses:
                failed.append({"Id": entry["Id"], "Code": "InvalidMessageContents", "SenderFault": True})
            else:
                (item,) = (one["StringValue"] for one in entry["MessageAttributes"].values())
                self.sent[item] = entry["MessageBody"]
        return {"Failed": failed}


class MemoryStack:
    """What tasks ask of a ``Service``, in this process.

    Args:
        memory: the stores of another stack, which this one reaches from a process of its own.

    Attributes:
        memory: the stores.
        sqs: every queue.
    """

    def __init__(self, memory: Memory | None = None) -> None:
        self.memory = memory or Memory()
        self.sqs = Sqs()
        self._services = Services(self.memory.ports())
        self._tracker = Tracker(self._services, lambda: self.sqs)

    def ledger(self) -> LedgerService:
        return self._services.ledger

    def tracker(self) -> Tracker:
        return self._tracker

    def require(self, *_services: str) -> None:
        """All of it is in this process."""


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stack:
    """A local stack that is found from the current folder; nothing of it runs."""
    (tmp_path / FOLDER).mkdir()
    local_stack.write(tmp_path, STACK)
    monkeypatch.chdir(tmp_path)
    return STACK


@pytest.fixture
def stack() -> MemoryStack:
    return MemoryStack()
