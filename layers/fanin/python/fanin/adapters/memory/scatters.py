"""The queue of jobs, and the bucket of large payloads, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fanin.adapters.memory.accesses import Accesses
from fanin.domain.claim_checks import ClaimCheck


class MemoryJobs:
    """A ``Jobs`` that keeps the jobs it is sent.

    Args:
        accesses: counts jobs.
        call: name of its accesses.

    Attributes:
        waiting: the jobs, in order.
    """

    def __init__(self, accesses: Accesses, call: str = "jobs.send") -> None:
        self.waiting: list[Mapping[str, Any]] = []
        self._accesses = accesses
        self._call = call

    def send(self, messages: Iterable[Mapping[str, object]]) -> None:
        for message in messages:
            self._accesses.send(self._call, lambda: self.waiting.append(message))  # noqa: B023


class MemoryClaims:
    """A ``ClaimChecks`` in a dict. Tests say which objects were uploaded through a URL.

    Attributes:
        uploaded: keys of the objects that were uploaded so.
        objects: key → content of the objects that the service itself stored.
    """

    def __init__(self, accesses: Accesses) -> None:
        self.uploaded: set[str] = set()
        self.objects: dict[str, bytes] = {}
        self._accesses = accesses

    def upload(self, key: str, *, size: int, content_type: str) -> ClaimCheck:
        headers = {"Content-Type": content_type, "Content-Length": str(size)}
        return ClaimCheck(key, f"memory://claims/{key}", headers, 0)

    def download(self, key: str) -> str:
        return f"memory://claims/{key}"

    def put(self, key: str, content: bytes) -> None:
        self._accesses.send("claims.put", lambda: self.objects.update({key: content}))

    def put_all(self, contents: Mapping[str, bytes]) -> None:
        for key, content in contents.items():
            self.put(key, content)

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._accesses.send("claims.delete", lambda: self.objects.pop(key, None))  # noqa: B023

    def load(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return {key: self.objects[key] for key in keys if key in self.objects}

    def exists(self, key: str) -> bool:
        return key in self.uploaded or key in self.objects
