"""Paths that Spark takes for patterns, and how to name a place whose name looks like one."""

from __future__ import annotations

from typing import Final

_GLOB: Final = frozenset("*?[]{}\\")


def is_pattern(path: str) -> bool:
    """Whether Spark would take a path for a pattern."""
    return bool(_GLOB & set(path))


def escaped(path: str) -> str:
    """A path that Spark does not take for a pattern."""
    return "".join(f"\\{letter}" if letter in _GLOB else letter for letter in path)
