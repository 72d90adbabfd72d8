"""Targets as callers see them: read, and told again on request."""

from __future__ import annotations

import pytest

from fanin.app.targets.delivery import JobOutcome
from fanin.domain.batch import OpenBatch
from fanin.domain.targets import TargetState
from fanin.errors import BatchGone, BatchNotFound, InvalidRequest
from tests.unit.app.targets.conftest import World, task


@pytest.fixture
def world() -> World:
    return World()


def states(world: World, batch_id: int) -> list[TargetState]:
    return [target.state for target in world.ledger.targets(batch_id).targets]


def test_the_ledger_reads_targets_through_it(world: World) -> None:
    batch = world.ledger.open(OpenBatch(on_end=[task("x" * 40 + "abcd")]))
    (target,) = world.ledger.targets(batch.batch_id).targets
    assert (target.to, target.state) == ("…abcd", TargetState.PENDING)
    assert world.ledger.targets(world.ledger.open(OpenBatch()).batch_id).targets == ()


def test_a_live_batch_is_not_announced_by_a_redelivery(world: World) -> None:
    batch = world.ledger.open(OpenBatch(on_end=[task()]))
    with pytest.raises(InvalidRequest, match="told when it ends"):
        world.ledger.redeliver(batch.batch_id)
    assert not world.memory.target_jobs.waiting


def test_all_targets_that_were_not_told_are_told_again_at_once(world: World) -> None:
    # Given one target that was told, one that is tried, one parked, and one whose job was lost
    world.memory.callbacks.refusing.add("parked")
    world.memory.callbacks.down.add("tried")
    batch = world.ended(task("told"), task("tried"), task("parked"), task("lost"))
    world.do(world.jobs()[:3])
    # When
    world.memory.callbacks.refusing.clear()
    world.ledger.redeliver(batch.batch_id)
    # Then each of the others has a job; that of the one which is tried already is done once
    jobs = world.jobs()
    assert [(job.number, job.once) for job in jobs] == [(1, True), (2, False), (3, False)]
    assert states(world, batch.batch_id)[2:] == [TargetState.PENDING] * 2
    assert world.do(jobs) == [JobOutcome.NOTHING, JobOutcome.DELIVERED, JobOutcome.DELIVERED]
    # And when it is back, it is told, and once more does nothing
    world.memory.callbacks.down.clear()
    world.ledger.redeliver(batch.batch_id)
    world.do(world.jobs())
    assert states(world, batch.batch_id) == [TargetState.DELIVERED] * 4
    world.ledger.redeliver(batch.batch_id)
    assert not world.memory.target_jobs.waiting


@pytest.mark.parametrize(("hours", "lost"), [(25, False), (26, True)])
def test_a_target_that_is_still_tried_after_its_day_has_lost_its_job(
    world: World, hours: int, lost: bool
) -> None:
    # Given a target that is down, and whose job became a dead letter since
    world.memory.callbacks.down.add("token")
    batch = world.ended(task())
    world.do(world.jobs())
    # When
    world.clock.advance(hours * 3_600_000)
    world.ledger.redeliver(batch.batch_id)
    # Then its new job goes on, if no other does
    assert world.do(world.jobs()) == [JobOutcome.AGAIN if lost else JobOutcome.NOTHING]


def test_the_targets_of_a_batch_that_does_not_exist_or_was_removed(world: World) -> None:
    with pytest.raises(BatchNotFound):
        world.ledger.targets(1)
    batch = world.ended(task())
    world.ledger.remove(batch.batch_id)
    with pytest.raises(BatchGone):
        world.ledger.redeliver(batch.batch_id)
    # But the target is told all the same
    world.do(world.jobs())
    assert len(world.memory.callbacks.told) == 1
