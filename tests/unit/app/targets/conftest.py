"""Targets of a batch in memory, and jobs for them."""

from collections.abc import Sequence

import pytest

from fanin.app.ports import Defaults
from fanin.app.targets.delivery import JobOutcome, deliver
from fanin.app.targets.records import TargetJob, TargetRecord, read_targets
from fanin.domain.batch import Batch
from fanin.domain.marks import Failure
from fanin.domain.targets import Target, TargetType, When
from tests.unit.app import conftest

QUEUE = "memory:next"
URL = "https://hooks.example.com/x"


def task(token: str = "token", when: When = When.ANY) -> Target:
    return Target(TargetType.STEP_FUNCTIONS, when, task_token=token)


class World(conftest.World):
    """A service in memory, whose jobs are done one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.memory.channels.queues[QUEUE] = []
        self.ports = self.memory.ports(Defaults(webhook_hosts="hooks.example.com"))
        self.ledger = self.fresh()

    def ended(self, *targets: Target, fail: bool = False) -> Batch:
        """A batch with one item and these targets, which has ended and was announced."""
        batch, (group,) = self.batch(1, closed=True, on_end=targets)
        if fail:
            self.ledger.mark([Failure(group[0], "broken")]).whole()
        else:
            self.ledger.mark(list(group)).whole()
        row = self.row(batch)
        self.ledger.announce(row)
        return row

    def jobs(self) -> list[TargetJob]:
        """The jobs that wait, which are taken."""
        found = [TargetJob.decode(job) for job in self.memory.target_jobs.waiting]
        self.memory.target_jobs.waiting.clear()
        return found

    def do(self, jobs: Sequence[TargetJob]) -> list[JobOutcome]:
        return [deliver(self.ports, job) for job in jobs]

    def kept(self, batch: Batch) -> list[TargetRecord]:
        return read_targets(self.ports.records, batch.batch_id, range(batch.targets))


@pytest.fixture
def world() -> World:
    return World()
