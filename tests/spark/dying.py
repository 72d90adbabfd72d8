"""An application whose tasks die half-way, for the stack of its environment.

    python -m tests.spark.dying INPUT WORK


The first two calls that mark words write a half of them, and then their worker process is gone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fanin.app.service import LedgerService
from fanin.domain.tree import Mark
from fanin.spark.acking import acknowledge
from fanin.spark.parquet import Files
from fanin.spark.service import Service
from fanin.spark.session import session

DEATHS = 2


@dataclass(frozen=True)
class Dying(Service):
    """A stack whose ledger kills the first processes that mark.

    Attributes:
        folder: has a file for every death.
    """

    folder: str

    def ledger(self) -> LedgerService:
        return Ledger(super().ledger(), Path(self.folder))  # type: ignore[return-value]


class Ledger:
    def __init__(self, ledger: LedgerService, folder: Path) -> None:
        self._ledger = ledger
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def mark(self, shares: Mapping[int, Sequence[Mark]]) -> Any:
        for death in range(DEATHS):
            try:
                (self._folder / f"death-{death}").touch(exist_ok=False)
            except FileExistsError:
                continue
            self._ledger.mark({batch_id: marks[: len(marks) // 2] for batch_id, marks in shares.items()})
            os._exit(1)
        return self._ledger.mark(shares)


def main(folder: str, work: str) -> None:
    spark = session("dying", {"spark.master": "local[2,4]", "spark.sql.shuffle.partitions": "2"})
    service = Dying(Service.from_env().environment, work)
    Path(work).mkdir()
    done = acknowledge(spark.read.parquet(folder), service, work=work, files=Files(folder))
    (Path(work) / "summary.json").write_text(json.dumps(done.summary()))


if __name__ == "__main__":
    main(*sys.argv[1:])
