"""Targets of a batch in memory, and jobs for them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Defaults, Ports
from fanin.app.targets.delivery import Outcome, deliver
from fanin.app.targets.jobs import Job
from fanin.app.targets.records import TargetRecord, read_targets
from fanin.domain.batch import Batch, OpenBatch
from fanin.domain.targets import Target, TargetType, When

QUEUE = "memory:next"
URL = "https://hooks.example.com/x"


def task(token: str = "token", when: When = When.ANY) -> Target:  # noqa: S107
    return Target(TargetType.STEP_FUNCTIONS, when, task_token=token)


class World:
    """A service in memory, whose jobs are done one by one."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.memory = Memory(clock=self.clock)
        self.memory.channels.queues[QUEUE] = []
        self.ports: Ports = self.memory.ports(Defaults(webhook_hosts="hooks.example.com"))
        self.ledger = LedgerService(self.ports)

    def ended(self, *targets: Target, fail: bool = False) -> Batch:
        """A batch with one item and these targets, which has ended and was announced."""
        batch = self.ledger.open(OpenBatch(on_end=targets))
        group = self.ledger.add(batch.batch_id, 1)
        self.ledger.close(batch.batch_id)
        if fail:
            from fanin.domain.acks import Failure

            self.ledger.fail([Failure(group[0], "broken")])
        else:
            self.ledger.ack(list(group))
        row = self.memory.batches.read([batch.batch_id])[batch.batch_id]
        self.ledger.announce(row)
        return row

    def jobs(self) -> list[Job]:
        """The jobs that wait, which are taken."""
        found = [Job.decode(job) for job in self.memory.target_jobs.waiting]
        self.memory.target_jobs.waiting.clear()
        return found

    def do(self, jobs: Sequence[Job]) -> list[Outcome]:
        return [deliver(self.ports, job) for job in jobs]

    def kept(self, batch: Batch) -> list[TargetRecord]:
        return read_targets(self.ports.records, batch.batch_id, range(batch.targets))


@pytest.fixture
def world() -> World:
    return World()
