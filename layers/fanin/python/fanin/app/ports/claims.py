"""The bucket of large payloads."""

from __future__ import annotations

from typing import Protocol

from fanin.domain.scatter import ClaimCheck


class ClaimChecks(Protocol):
    """Keeps payloads that are too large for a record; recipients upload them directly."""

    def upload(self, key: str, *, size: int, content_type: str) -> ClaimCheck:
        """A signed URL that accepts one object of exactly this size."""
        ...

    def download(self, key: str) -> str:
        """A signed URL that reads the object, valid for 15 minutes."""
        ...

    def exists(self, key: str) -> bool:
        """Whether the object was uploaded."""
        ...
