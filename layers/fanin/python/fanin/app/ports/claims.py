"""What the use cases need of the bucket that keeps large payloads."""

from __future__ import annotations

from typing import Protocol

from fanin.domain.scatter import ClaimCheck


class ClaimChecks(Protocol):
    """Keeps payloads that are too large for a record; who replies uploads them itself."""

    def upload(self, key: str, *, size: int, content_type: str) -> ClaimCheck:
        """Let the bearer of the answer put one object of exactly this size."""
        ...

    def download(self, key: str) -> str:
        """A URL that reads the object for a quarter of an hour."""
        ...

    def exists(self, key: str) -> bool:
        """Whether the object was uploaded."""
        ...
