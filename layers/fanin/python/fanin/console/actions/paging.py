"""How far one press of a button goes: through so many pages, and for so long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

PAGES: Final = 20
"""Calls that one press makes at most; what is left takes another."""
TIME_MS: Final = 15_000
"""After how long it makes no further call: an answer of API Gateway has 29 seconds."""


def pages(now: Callable[[], int]) -> Iterator[int]:
    """Count the pages that one press may read, from 0."""
    until = now() + TIME_MS
    for page in range(PAGES):
        if page and now() >= until:
            return
        yield page
