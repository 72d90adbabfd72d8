"""A service that notes the calls that a console makes of it."""

from __future__ import annotations

from typing import Any

from fanin.testing import InMemoryService


class Counted:
    """The eight services, with a list of the calls that were made of them: ``ledger.status``.

    Args:
        inner: answers the calls.
    """

    def __init__(self, inner: Any, calls: list[str] | None = None, room: str = "") -> None:
        self._inner = inner
        self._room = room
        self.calls: list[str] = [] if calls is None else calls

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not self._room:
            return Counted(found, self.calls, f"{name}.")

        def called(*given: Any, **more: Any) -> Any:
            self.calls.append(self._room + name)
            return found(*given, **more)

        return called


def counted(service: InMemoryService) -> list[str]:
    """The calls that consoles of a service make from now on; clear the list to begin again."""
    service.services = counting = Counted(service.services)  # type: ignore[assignment]
    return counting.calls
