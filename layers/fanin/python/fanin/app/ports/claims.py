"""The bucket of large payloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from fanin.domain.claim_checks import ClaimCheck


class ClaimChecks(Protocol):
    """Keeps payloads that are too large for a record; recipients upload them directly."""

    def upload(self, key: str, *, size: int, content_type: str) -> ClaimCheck:
        """A signed URL that accepts one object of exactly this size."""
        ...

    def download(self, key: str) -> str:
        """A signed URL that reads the object, valid for 15 minutes."""
        ...

    def put(self, key: str, content: bytes) -> None:
        """Store an object; storing it again changes nothing, since its key follows from its content.

        Raises:
            NotConfigured, AccessDenied: this process has no bucket, or may not write to it.
        """
        ...

    def put_all(self, contents: Mapping[str, bytes]) -> None:
        """Store objects by their keys, in parallel; raises like ``put``, and some may be stored then."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; those that do not exist are ignored."""
        ...

    def load(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Read objects, in parallel; those that do not exist are left out."""
        ...

    def exists(self, key: str) -> bool:
        """Whether the object was uploaded."""
        ...
