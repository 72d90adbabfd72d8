"""Rules of a bus in a dict, with the basic part of EventBridge's pattern language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fanin.adapters.memory.accesses import Accesses
from fanin.errors import InvalidRequest


class MemoryRules:
    """A ``Rules`` that supports exact values, ``prefix``, ``exists`` and ``anything-but``.

    Attributes:
        patterns: route → pattern.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.patterns: dict[str, Mapping[str, Any]] = {}
        self._accesses = accesses

    def matches(self, pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
        if not pattern:
            raise InvalidRequest("an event pattern must name at least one field")
        found = [_matches(wanted, event.get(field)) for field, wanted in pattern.items()]
        return all(found)  # evaluates all parts, so that each is validated

    def put(self, route: str, pattern: Mapping[str, Any]) -> None:
        self.matches(pattern, {})
        self._accesses.send("rules.put", lambda: self.patterns.update({route: pattern}))

    def delete(self, route: str) -> None:
        self._accesses.send("rules.delete", lambda: self.patterns.pop(route, None))


def _matches(wanted: Any, value: Any) -> bool:
    if isinstance(wanted, Mapping):
        inner = value if isinstance(value, Mapping) else {}
        found = [_matches(part, inner.get(field)) for field, part in wanted.items()]
        return all(found)
    if not isinstance(wanted, list) or not wanted:
        raise InvalidRequest("the leaves of an event pattern must be lists, not empty, of accepted values")
    values = value if isinstance(value, list) else [value]
    found = [_one_of(choice, values) for choice in wanted]
    return any(found)


def _one_of(choice: Any, values: list[Any]) -> bool:
    if not isinstance(choice, Mapping):
        return choice in values
    match dict(choice):
        case {"prefix": str(prefix)}:
            return any(isinstance(value, str) and value.startswith(prefix) for value in values)
        case {"exists": bool(wanted)}:
            return wanted is (values != [None])
        case {"anything-but": but}:
            refused = but if isinstance(but, list) else [but]
            return values != [None] and not any(value in refused for value in values)
    raise InvalidRequest(
        f"{choice!r} is not supported in memory; use a value, prefix, exists or anything-but"
    )
