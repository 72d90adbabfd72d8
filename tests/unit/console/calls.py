"""The calls that pages make of the service: counted, or answered otherwise."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from fanin.testing import InMemoryService

SERVICES = (
    "ledger",
    "diagnostics",
    "scatters",
    "frames",
    "buffers",
    "directory",
    "routing",
    "redrives",
)


class Calls(Counter[str]):
    """How often each call was made, such as ``scatters.status``; consoles that are made later are counted.

    Args:
        service: whose calls; its trackers are not counted.
        answers: answers of calls, given in place of the service's own: name → function of that answer.
    """

    def __init__(self, service: InMemoryService, answers: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.order: list[str] = []
        _ = service.tracker  # has the services as they are
        replaced = {
            name: _Counted(self, name, getattr(service.services, name), answers or {}) for name in SERVICES
        }
        service.services = SimpleNamespace(**replaced)  # type: ignore[assignment]


class _Counted:
    def __init__(self, calls: Calls, name: str, inner: Any, answers: dict[str, Any]) -> None:
        self._calls = calls
        self._name = name
        self._inner = inner
        self._answers = answers

    def __getattr__(self, method: str) -> Any:
        name = f"{self._name}.{method}"

        def call(*arguments: Any, **options: Any) -> Any:
            self._calls[name] += 1
            self._calls.order.append(name)
            found = getattr(self._inner, method)(*arguments, **options)
            return self._answers[name](found) if name in self._answers else found

        return call


def counted(service: InMemoryService) -> list[str]:
    """The calls that consoles of a service make from now on, in order; clear the list to begin again."""
    return Calls(service).order
