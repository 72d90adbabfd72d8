"""Tasks that die in the middle, twice each: their worker is gone, as if an executor were lost.

Tests use these in place of the real ones. Each death leaves a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from fanin.adapters.dynamodb.metering import Meter
from fanin.app.ledger.clearing import NO_VALUES, Values
from fanin.client.tracker import Tracker
from fanin.domain.tree import Bits
from fanin.spark.runtime.service import Service

DEATHS = 2


def die(folder: str, what: str) -> None:
    """Die, unless the task has died often enough."""
    attempt = TaskContext.get().attemptNumber()
    if attempt < DEATHS:
        Path(folder, f"{what}-{attempt}").touch()
        os._exit(1)


def happened(folder: Path) -> set[str]:
    """The deaths so far: ``<what>-<attempt>``."""
    return {path.name for path in folder.iterdir()}


def dying_of(*what: str) -> set[str]:
    """What ``happened`` gives if all tasks died as often as they should."""
    return {f"{one}-{attempt}" for one in what for attempt in range(DEATHS)}


def half_way(folder: str, what: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Give a task half of a page, then let it die."""

    def through(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for page in pages:
            half = page.num_rows // 2
            yield page.slice(0, half)
            die(folder, what)
            yield page.slice(half)

    return through


def at_page(number: int, folder: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Give the task of the first partition its pages, and let it die before one of them."""

    def through(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for at, page in enumerate(pages):
            if at == number and TaskContext.get().partitionId() == 0:
                die(folder, "sending")
            yield page

    return through


@dataclass(frozen=True, kw_only=True)
class DyingService(Service):
    """A stack on which tasks die in the middle of their work: after they wrote, before they say so.

    Attributes:
        folder: gets a file for each death.
    """

    folder: str

    @classmethod
    def of(cls, service: Service, folder: Path) -> DyingService:
        folder.mkdir()
        return cls(service.environment, service.most_writes, folder=str(folder))

    def connection(self) -> Any:
        return _Connection(self._well.connection(), self.folder)

    def ledger(self) -> Any:
        return _Ledger(self._well.ledger(), self.folder)

    def tracker(self) -> Any:
        return _Tracker(self._well.tracker(), self.folder)

    def meter(self) -> Meter:
        return self._well.meter()

    @property
    def _well(self) -> Service:
        return Service(self.environment, self.most_writes)


@dataclass(frozen=True)
class _Connection:
    """A connection to DynamoDB, for a task that dies when it has read rows."""

    inner: Any
    folder: str

    def scan(self, request: Mapping[str, Any]) -> Any:
        items, after = self.inner.scan(request)
        if items:
            die(self.folder, "scan")
        return items, after


class _Ledger:
    def __init__(self, inner: Any, folder: str) -> None:
        self._inner = inner
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def clear(self, shares: Mapping[int, Sequence[Bits]], *, values: Values = NO_VALUES) -> Any:
        """Write a half, in the attempts that die."""
        if TaskContext.get().attemptNumber() < DEATHS:
            half = {batch_id: marks[: len(marks) // 2] for batch_id, marks in shares.items()}
            words = {(batch_id, mark.number) for batch_id, marks in half.items() for mark in marks}
            brought = {
                batch_id: {n: one for n, one in own.items() if (batch_id, n // 64) in words}
                for batch_id, own in values.items()
            }
            self._inner.clear(half, values=brought)
            die(self._folder, "mark")
        return self._inner.clear(shares, values=values)

    def verify(self, batch_id: int, **how: Any) -> Any:
        verdict = self._inner.verify(batch_id, **how)
        die(self._folder, "verify")
        return verdict


class _Tracker:
    """A tracker, to a task that dies when it asks which recipients of a scatter failed."""

    def __init__(self, inner: Tracker, folder: str) -> None:
        self._inner = inner
        self.scatters = _Scatters(inner.scatters, folder)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Scatters:
    def __init__(self, inner: Any, folder: str) -> None:
        self._inner = inner
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def failed_recipients(self, batch_id: int) -> Iterator[Any]:
        die(self._folder, "failures")
        yield from self._inner.failed_recipients(batch_id)
