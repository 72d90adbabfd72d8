"""Jobs: what they carry, and what they do not."""

from __future__ import annotations

import json

import pytest

from fanin.adapters.channels import _body
from fanin.app.ports.events import Event
from fanin.app.ports.queues import ChannelNotice
from fanin.app.targets.jobs import TargetJob, succeeded
from fanin.domain import limits
from fanin.domain.batch import Batch, State
from tests.unit.app.targets.conftest import World, task

EVENT = Event("7.complete", "Batch Completed", {"batch_id": 7, "failed": 0, "failed_more": False}, 5)


def test_a_job_survives_its_queue() -> None:
    job = TargetJob(7, 2, ChannelNotice(EVENT, succeeded=True), 9)
    assert TargetJob.decode(json.loads(json.dumps(job.encode()))) == job


def test_the_largest_event_fits_a_job() -> None:
    """The bus takes 255 KB, with the detail type and the source; a job adds its own fields."""
    event = EVENT
    event = event._replace(
        detail={"text": "x" * (limits.MAX_ENTRY - event._replace(detail={"text": ""}).size)}
    )
    assert event.size == limits.MAX_ENTRY
    job = TargetJob(2**53 - 1, 4, ChannelNotice(event, succeeded=False), 4_102_444_800_000)
    assert len(_body(job.encode()).encode()) <= limits.MAX_QUEUE_BYTES


def test_one_job_a_target_and_no_token_in_it(world: World) -> None:
    world.ended(task("secret-1"), task("secret-2"))
    jobs = list(world.memory.target_jobs.waiting)
    assert [job["target"] for job in jobs] == [0, 1]
    assert "secret" not in repr(jobs)


def test_a_batch_without_targets_makes_no_jobs_and_no_reads(world: World) -> None:
    world.ended()
    assert not world.memory.target_jobs.waiting
    assert not world.memory.accesses.reads["records.read"]
    assert not world.memory.accesses.writes["records.put"]


@pytest.mark.parametrize(
    ("state", "failed", "more", "well"),
    [
        (State.COMPLETE, 0, False, True),
        (State.COMPLETE, 1, False, False),
        (State.COMPLETE, 0, True, False),
        (State.TIMED_OUT, 0, False, False),
    ],
)
def test_only_complete_without_failures_is_a_success(
    state: State, failed: int, more: bool, well: bool
) -> None:
    batch = Batch(7, b"", 1, 1, 1, 60, 60, state=state)
    event = EVENT._replace(detail={"failed": failed, "failed_more": more})
    assert succeeded(batch, event) is well
