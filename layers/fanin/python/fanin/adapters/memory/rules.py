"""Rules of a bus in a dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fanin.adapters.memory.accesses import Accesses
from fanin.domain import patterns


class MemoryRules:
    """A ``Rules`` that refuses the patterns that EventBridge refuses.

    Attributes:
        patterns: route → pattern.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.patterns: dict[str, Mapping[str, Any]] = {}
        self._accesses = accesses

    def check(self, pattern: Mapping[str, Any]) -> None:
        patterns.check(pattern)
        patterns.check_operators(pattern)

    def matching(self, event: Mapping[str, Any]) -> list[str]:
        """The routes whose rules an event matches."""
        return [route for route, one in self.patterns.items() if patterns.matches(one, event)]

    def put(self, route: str, pattern: Mapping[str, Any]) -> None:
        self.check(pattern)
        self._accesses.send("rules.put", lambda: self.patterns.update({route: pattern}))

    def delete(self, route: str) -> None:
        self._accesses.send("rules.delete", lambda: self.patterns.pop(route, None))
