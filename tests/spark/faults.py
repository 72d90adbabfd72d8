"""Tasks that die in the middle, twice each: their worker is gone, as with an executor that is lost.

Tests put what is here in the place of what does not die. A death leaves a file that tells of it.
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
from fanin.client.tracker import Tracker
from fanin.domain.tree import Mark
from fanin.spark.runtime.service import Service

DEATHS = 2


def die(folder: str, what: str) -> None:
    """Die, unless this is an attempt of a task that died often enough."""
    attempt = TaskContext.get().attemptNumber()
    if attempt < DEATHS:
        Path(folder, f"{what}-{attempt}").touch()
        os._exit(1)


def happened(folder: Path) -> set[str]:
    """The deaths so far: ``<what>-<attempt>``."""
    return {path.name for path in folder.iterdir()}


def dying_of(*what: str) -> set[str]:
    """What ``happened`` says when all tasks died as often as they should."""
    return {f"{one}-{attempt}" for one in what for attempt in range(DEATHS)}


def half_way(folder: str, what: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Gives a task half of a page, and lets it die."""

    def through(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for page in pages:
            half = page.num_rows // 2
            yield page.slice(0, half)
            die(folder, what)
            yield page.slice(half)

    return through


def at_page(number: int, folder: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Gives the task of the first partition its pages, and lets it die before one of them."""

    def through(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for at, page in enumerate(pages):
            if at == number and TaskContext.get().partitionId() == 0:
                die(folder, "sending")
            yield page

    return through


@dataclass(frozen=True)
class DyingService(Service):
    """A stack with which tasks die in the middle of what they do to it: after they wrote, before they tell.

    Attributes:
        folder: where deaths are told.
    """

    folder: str

    @classmethod
    def of(cls, service: Service, folder: Path) -> DyingService:
        folder.mkdir()
        return cls(service.environment, str(folder))

    def connection(self) -> Any:
        return _Connection(_Client(self._well.connection().client, self.folder))

    def ledger(self) -> Any:
        return _Ledger(self._well.ledger(), self.folder)

    def tracker(self) -> Tracker:
        return self._well.tracker()

    def meter(self) -> Meter:
        return self._well.meter()

    @property
    def _well(self) -> Service:
        return Service(self.environment)


@dataclass(frozen=True)
class _Client:
    """DynamoDB, to a task that dies when it has read rows."""

    inner: Any
    folder: str

    def scan(self, **request: Any) -> Any:
        answer = self.inner.scan(**request)
        if answer["Items"]:
            die(self.folder, "scan")
        return answer


@dataclass(frozen=True)
class _Connection:
    client: _Client


class _Ledger:
    def __init__(self, inner: Any, folder: str) -> None:
        self._inner = inner
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def mark(self, shares: Mapping[int, Sequence[Mark]]) -> Any:
        """Write a half, in the attempts that die."""
        if TaskContext.get().attemptNumber() < DEATHS:
            self._inner.mark({batch_id: marks[: len(marks) // 2] for batch_id, marks in shares.items()})
            die(self._folder, "mark")
        return self._inner.mark(shares)

    def verify(self, batch_id: int, **how: Any) -> Any:
        verdict = self._inner.verify(batch_id, **how)
        die(self._folder, "verify")
        return verdict

    def failures(self, *asked: Any, **how: Any) -> Any:
        die(self._folder, "failures")
        return self._inner.failures(*asked, **how)
