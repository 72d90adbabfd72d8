"""The audit job in a process of its own, whose tasks die after half their work, each kind of them twice.

``python -m tests.spark.dying_audit <folder of markers> <arguments of the job>``
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fanin.spark.jobs import audit
from fanin.spark.service import Service
from fanin.spark.session import session

DEATHS = 2


def die(folder: str, name: str) -> None:
    """End this worker, unless it has happened often enough."""
    for death in range(DEATHS):
        try:
            os.close(os.open(f"{folder}/{name}-{death}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        os._exit(1)


@dataclass(frozen=True)
class Client:
    """DynamoDB, to a task that dies when it has read a page."""

    inner: Any
    deaths: str

    def scan(self, **request: Any) -> Any:
        answer = self.inner.scan(**request)
        if answer["Items"]:
            die(self.deaths, "scan")
        return answer


@dataclass(frozen=True)
class Connection:
    client: Client


@dataclass(frozen=True)
class Ledger:
    """The ledger, to a task that dies when it has verified and repaired, before it can tell."""

    inner: Any
    deaths: str

    def verify(self, batch_id: int, **how: Any) -> Any:
        verdict = self.inner.verify(batch_id, **how)
        die(self.deaths, "verify")
        return verdict


@dataclass(frozen=True)
class DyingService(Service):
    deaths: str = ""

    def connection(self) -> Any:
        return Connection(Client(_well(self).connection().client, self.deaths))

    def ledger(self) -> Any:
        return Ledger(_well(self).ledger(), self.deaths)


def _well(service: Service) -> Service:
    return Service(service.environment)


class Deadly:
    """Stands for the class ``Service`` in the job."""

    @staticmethod
    def from_env() -> Service:
        return DyingService(Service.from_env().environment, sys.argv[1])


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir()
    audit.Service = Deadly  # type: ignore[attr-defined, misc, assignment]
    settings = {"spark.master": "local[2,4]", "spark.sql.shuffle.partitions": "2"}
    session("a process whose tasks die", settings)
    sys.exit(audit.JOB.main(sys.argv[2:]))
