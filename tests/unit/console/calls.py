"""The calls that pages make of the service: counted, or answered otherwise."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from fanin.testing import InMemoryService

SERVICES = ("ledger", "diagnostics", "scatters", "frames", "buffers", "directory", "routing", "redrives")


class Calls(Counter[str]):
    """How often each call was made, such as ``scatters.status``.

    Args:
        service: whose calls, if consoles that are made later are to be counted; its trackers are not counted.
        answers: answers of calls, given in place of the service's own: name → function of that answer.
    """

    def __init__(self, service: InMemoryService | None = None, answers: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.order: list[str] = []
        self._answers = answers or {}
        if service is not None:
            _ = service.tracker  # has the services as they are
            service.services = self.of(service.services)

    def of(self, fanin: Any) -> Any:
        """Fanin, whose calls are counted."""
        return SimpleNamespace(**{name: _Counted(self, name, getattr(fanin, name)) for name in SERVICES})

    def call(self, name: str, made: Callable[[], Any]) -> Any:
        """Count a call, and make it."""
        self[name] += 1
        self.order.append(name)
        answer = made()
        return self._answers[name](answer) if name in self._answers else answer


class _Counted:
    def __init__(self, calls: Calls, name: str, inner: Any) -> None:
        self._calls = calls
        self._name = name
        self._inner = inner

    def __getattr__(self, method: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            made = partial(getattr(self._inner, method), *arguments, **options)
            return self._calls.call(f"{self._name}.{method}", made)

        return call


def counted(service: InMemoryService) -> list[str]:
    """The calls that consoles of a service make from now on, in order; clear the list to begin again."""
    return Calls(service).order
