"""Delivering one target: told, marked, tried again, parked."""

import json
from dataclasses import replace

import pytest

from fanin import names
from fanin.app.ports.queues import ChannelNotice
from fanin.app.targets.delivery import JobOutcome, deliver
from fanin.app.targets.records import change
from fanin.domain.batch import Batch, OpenBatch
from fanin.domain.targets import PATIENCE_MS, Target, TargetState, TargetType, When
from fanin.errors import BatchGone, BatchNotFound, InvalidRequest, ServiceUnavailable, TargetRefused
from fanin.wire.json_types import encode_time
from tests.lost_answers import LostAnswers
from tests.unit.app.targets.conftest import QUEUE, URL, World, task


def test_each_type_is_told_the_event(world):
    # Given a target of each type
    targets = (
        task(),
        Target(TargetType.DURABLE_CALLBACK, callback_id="aGk="),
        Target(TargetType.WEBHOOK, url=URL),
        Target(TargetType.SQS, queue_url=QUEUE),
    )
    batch = world.ended(*targets)
    assert world.do(world.jobs()) == [JobOutcome.DELIVERED] * 4
    assert [told.target for told in world.memory.callbacks.told] == list(targets[:3])
    assert {told.event.id for told in world.memory.callbacks.told} == {f"{batch.batch_id}.complete"}
    assert all(told.succeeded for told in world.memory.callbacks.told)
    (message,) = world.memory.channels.queues[QUEUE]
    body = json.loads(message.body)
    event = world.memory.callbacks.told[0].event
    assert body == {
        "id": f"{batch.batch_id}.complete",
        "detail-type": "Batch Completed",
        "source": "fanin",
        "time": encode_time(world.clock.at),
        "detail": {**json.loads(json.dumps(event.detail)), "id": f"{batch.batch_id}.complete"},
    }
    assert message.attributes == {names.ATTRIBUTE_TYPE: "Batch Completed"}
    for kept in world.kept(batch):
        assert (kept.state, kept.attempts, kept.delivered_at) == (TargetState.DELIVERED, 1, world.clock.at)


def test_a_target_that_was_told_is_not_told_again(world):
    world.ended(task())
    jobs = world.jobs()
    world.do(jobs)
    assert world.do(jobs * 3) == [JobOutcome.NOTHING] * 3
    assert len(world.memory.callbacks.told) == 1


def test_a_target_that_did_not_ask_for_this_end_is_skipped(world):
    batch = world.ended(task("a", When.COMPLETE), task("b", When.FAILED), fail=True)
    assert world.do(world.jobs()) == [JobOutcome.NOTHING, JobOutcome.DELIVERED]
    assert [kept.state for kept in world.kept(batch)] == [TargetState.SKIPPED, TargetState.DELIVERED]
    (told,) = world.memory.callbacks.told
    assert told.succeeded is False


def test_a_target_that_is_down_is_tried_again_and_another_is_told(world):
    world.memory.callbacks.down.add("down")
    world.memory.channels.busy.add(QUEUE)
    batch = world.ended(task("down"), Target(TargetType.SQS, queue_url=QUEUE), task("up"))
    jobs = world.jobs()
    assert world.do(jobs) == [JobOutcome.AGAIN, JobOutcome.AGAIN, JobOutcome.DELIVERED]
    first, second, _ = world.kept(batch)
    assert (first.state, first.attempts, first.last_error) == (TargetState.FAILED, 1, "the target is down")
    assert second.last_error == "the queue did not take the message: the queue is busy"
    world.memory.callbacks.down.clear()
    world.memory.channels.busy.clear()
    assert world.do(jobs) == [JobOutcome.DELIVERED, JobOutcome.DELIVERED, JobOutcome.NOTHING]
    assert world.kept(batch)[0].last_error is None


def test_a_queue_that_was_deleted_is_tried_again_since_it_may_be_made_again(world):
    world.ended(Target(TargetType.SQS, queue_url=QUEUE))
    del world.memory.channels.queues[QUEUE]
    jobs = world.jobs()
    assert world.do(jobs) == [JobOutcome.AGAIN]
    world.memory.channels.queues[QUEUE] = []
    assert world.do(jobs) == [JobOutcome.DELIVERED]


@pytest.mark.parametrize(("late", "outcome"), [(-1, JobOutcome.AGAIN), (0, JobOutcome.PARKED)])
def test_a_target_is_parked_after_a_day(world, late, outcome):
    world.memory.callbacks.down.add("down")
    batch = world.ended(task("down"))
    jobs = world.jobs()
    world.clock.advance(PATIENCE_MS + late)
    assert world.do(jobs) == [outcome]
    assert (world.kept(batch)[0].state is TargetState.PARKED) is (outcome is JobOutcome.PARKED)


def test_a_target_that_refuses_for_good_is_parked_at_once_and_a_later_job_tells_it(world):
    """As an operator's redelivery does, also if its own mark comes later."""
    world.memory.callbacks.refusing.add("never")
    world.ended(task("never"))
    jobs = world.jobs()
    assert world.do(jobs) == [JobOutcome.PARKED]
    world.memory.callbacks.refusing.clear()
    assert world.do(jobs) == [JobOutcome.DELIVERED]


def test_a_job_whose_batch_is_long_gone_is_dropped(world):
    world.ended(task())
    (job,) = world.jobs()
    assert deliver(world.ports, replace(job, batch_id=1)) is JobOutcome.NOTHING
    assert not world.memory.callbacks.told


def test_a_failure_that_is_noted_late_does_not_undo_a_delivery(world):
    # Given two copies of a job; while the first fails, the second tells the target
    batch = world.ended(task())
    (job,) = world.jobs()

    def other_copy() -> None:
        deliver(world.ports, job)
        raise ServiceUnavailable("no answer")

    world.at("callbacks.call", "before", other_copy)
    assert deliver(world.ports, job) is JobOutcome.NOTHING
    assert world.kept(batch)[0].state is TargetState.DELIVERED


def note_failure(world: World, batch: Batch) -> None:
    """Another job fails to tell the target, and notes it."""
    (kept,) = world.kept(batch)
    change(world.ports.records, batch.batch_id, kept, state=TargetState.FAILED, attempts=kept.attempts + 1)


def test_a_delivery_is_marked_although_a_failure_was_noted_meanwhile(world):
    batch = world.ended(task())
    (job,) = world.jobs()

    world.at("callbacks.call", "after", lambda: note_failure(world, batch))
    assert deliver(world.ports, job) is JobOutcome.DELIVERED
    (kept,) = world.kept(batch)
    assert (kept.state, kept.attempts) == (TargetState.DELIVERED, 2)


def test_a_target_whose_record_others_change_all_the_time_is_told_again_later(world):
    # Given other copies of the job that note failures before every write
    batch = world.ended(task())
    (job,) = world.jobs()

    def fails_elsewhere() -> None:
        note_failure(world, batch)
        world.at("records.put", "before", fails_elsewhere)

    world.at("records.put", "before", fails_elsewhere)
    # When the target was told, then the job is not taken for done, since nothing says that it was told
    with pytest.raises(ServiceUnavailable, match="target 0 of batch"):
        deliver(world.ports, job)
    assert world.kept(batch)[0].state is TargetState.FAILED


def test_a_long_error_is_cut(world, monkeypatch):
    batch = world.ended(task())

    def refuse(_target: Target, _notice: ChannelNotice) -> None:
        raise TargetRefused("x" * 300)

    monkeypatch.setattr(world.memory.callbacks, "call", refuse)
    world.do(world.jobs())

    assert world.kept(batch)[0].last_error == "x" * 256


@pytest.mark.parametrize("call", ["records.put", "callbacks.call"])
def test_a_lost_answer_marks_once(world, call):
    batch = world.ended(task())
    jobs = world.jobs()
    LostAnswers(world.memory).lose(call)
    assert world.do(jobs) == [JobOutcome.DELIVERED]
    (kept,) = world.kept(batch)
    assert (kept.state, kept.attempts) == (TargetState.DELIVERED, 1)


# Targets as callers see them: read, and told again on request.


def states(world: World, batch_id: int) -> list[TargetState]:
    return [target.state for target in world.ledger.targets(batch_id).targets]


def test_the_ledger_reads_targets_through_it(world):
    batch = world.ledger.open(OpenBatch(on_end=[task("x" * 40 + "abcd")]))
    (target,) = world.ledger.targets(batch.batch_id).targets
    assert (target.to, target.state) == ("…abcd", TargetState.PENDING)
    assert world.ledger.targets(world.ledger.open(OpenBatch()).batch_id).targets == ()


def test_a_live_batch_is_not_announced_by_a_redelivery(world):
    batch = world.ledger.open(OpenBatch(on_end=[task()]))
    with pytest.raises(InvalidRequest, match="told when it ends"):
        world.ledger.redeliver(batch.batch_id)
    assert not world.memory.target_jobs.waiting


def test_all_targets_that_were_not_told_are_told_again_at_once(world):
    # Given one target that was told, one that is tried, one parked, and one whose job was lost
    world.memory.callbacks.refusing.add("parked")
    world.memory.callbacks.down.add("tried")
    batch = world.ended(task("told"), task("tried"), task("parked"), task("lost"))
    world.do(world.jobs()[:3])
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
def test_a_target_that_is_still_tried_after_its_day_has_lost_its_job(world, hours, lost):
    # Given a target that is down, and whose job became a dead letter since
    world.memory.callbacks.down.add("token")
    batch = world.ended(task())
    world.do(world.jobs())
    world.clock.advance(hours * 3_600_000)
    world.ledger.redeliver(batch.batch_id)
    # Then its new job goes on, if no other does
    assert world.do(world.jobs()) == [JobOutcome.AGAIN if lost else JobOutcome.NOTHING]


def test_the_targets_of_a_batch_that_does_not_exist_or_was_removed(world):
    with pytest.raises(BatchNotFound):
        world.ledger.targets(1)
    batch = world.ended(task())
    world.ledger.remove(batch.batch_id)
    with pytest.raises(BatchGone):
        world.ledger.redeliver(batch.batch_id)
    # But the target is told all the same
    world.do(world.jobs())
    assert len(world.memory.callbacks.told) == 1
