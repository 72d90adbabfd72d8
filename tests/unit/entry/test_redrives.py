"""The queue of redrives."""

from __future__ import annotations

from typing import Any

from fanin.entry.redrives import WORK_MS, redrive
from fanin.errors import Throttled
from tests.unit.entry.test_queues import event, failed


class Service:
    """Takes jobs; some fail."""

    def __init__(self, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.done: list[tuple[Any, ...]] = []

    def work(self, batch_id: int, name: str, owner: str, *, until: int) -> None:
        error = self.errors.pop(0)
        if error:
            raise error
        self.done.append((batch_id, name, owner, until))


JOB = {"batch_id": 7, "redrive": "redrive/x/000000", "owner": "me"}


def test_one_job_that_fails_spares_the_others() -> None:
    # Given four jobs, of which one is not JSON, one meets an overload, and one a defect
    service = Service(Throttled("busy"), ValueError("a defect"), None)
    # When they are run
    answer = redrive(event("{", JOB, JOB, JOB), service, lambda: 1_000)  # type: ignore[arg-type]
    # Then those three come again
    assert failed(answer) == ["m0", "m1", "m2"]
    assert service.done == [(7, "redrive/x/000000", "me", 1_000 + WORK_MS)]
