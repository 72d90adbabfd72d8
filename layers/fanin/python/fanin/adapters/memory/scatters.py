"""The queue of jobs, and the bucket of large payloads, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fanin.adapters.memory.accesses import Accesses
from fanin.domain.scatter import ClaimCheck


class MemoryJobs:
    """A ``Jobs`` that keeps the jobs it is sent.

    Attributes:
        waiting: the jobs, in order.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.waiting: list[Mapping[str, Any]] = []
        self._accesses = accesses

    def send(self, messages: Iterable[Mapping[str, object]]) -> None:
        for message in messages:
            self._accesses.send("jobs.send", lambda: self.waiting.append(message))  # noqa: B023


class MemoryClaims:
    """A ``ClaimChecks`` without objects: tests say which were uploaded.

    Attributes:
        uploaded: keys of the objects that exist.
    """

    def __init__(self) -> None:
        self.uploaded: set[str] = set()

    def upload(self, key: str, *, size: int, content_type: str) -> ClaimCheck:
        headers = {"Content-Type": content_type, "Content-Length": str(size)}
        return ClaimCheck(key, f"memory://claims/{key}", headers, 0)

    def download(self, key: str) -> str:
        return f"memory://claims/{key}"

    def exists(self, key: str) -> bool:
        return key in self.uploaded
