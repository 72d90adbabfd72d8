"""The report job in a process whose tasks die; a program, run by a test.

Usage: ``python -m tests.spark.faulty_report FOLDER ARGUMENT…``. The first two attempts of a task that reads
trips die in the middle of its rows, and so do those of a task that gathers replies, after it gave some.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from fanin.app.service import LedgerService
from fanin.spark import reporting
from fanin.spark.jobs.report import JOB
from fanin.spark.service import Service
from fanin.spark.session import session

DEATHS = 2
SETTINGS = {
    "spark.master": f"local[2,{DEATHS + 2}]",
    "spark.sql.shuffle.partitions": "2",
}


def die(folder: str, what: str) -> None:
    """Die, unless this is an attempt of a task that died often enough."""
    attempt = TaskContext.get().attemptNumber()
    if attempt < DEATHS:
        Path(folder, f"{what}-{attempt}").touch()
        os._exit(1)


def dying(folder: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def through(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for page in pages:
            half = page.num_rows // 2
            yield page.slice(0, half)
            die(folder, "reading")
            yield page.slice(half)

    return through


class DyingLedger:
    """A ledger that kills its process where failures are asked for, which is after the silent ones."""

    def __init__(self, ledger: LedgerService, folder: str) -> None:
        self._ledger = ledger
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        if name == "failures":
            die(self._folder, "gathering")
        return getattr(self._ledger, name)


def main(folder: str, *arguments: str) -> int:
    session("faulty", SETTINGS)
    read = reporting.read

    def faulty_read(*given: Any) -> DataFrame:
        rows = read(*given)
        return rows.mapInArrow(dying(folder), rows.schema)

    class DyingService(Service):
        def ledger(self) -> Any:
            return DyingLedger(super().ledger(), folder)

    reporting.read = faulty_read
    reporting.Service = DyingService
    return JOB.main(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
