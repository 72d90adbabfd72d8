"""The records of targets."""

import json
from typing import Any

import pytest

from fanin.adapters.channels import _body
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Defaults
from fanin.app.ports.events import Event
from fanin.app.ports.queues import ChannelNotice
from fanin.app.scatters.service import ScatterService
from fanin.app.targets.records import (
    TargetJob,
    TargetRecord,
    change,
    checked_targets,
    put_targets,
    read_targets,
    succeeded,
)
from fanin.domain import limits
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.scatter import Recipient, Scatter
from fanin.domain.targets import Target, TargetState, TargetType
from fanin.errors import ChannelRefused, InvalidRequest, NotConfigured
from tests.lost_answers import LostAnswers
from tests.unit.app.targets.conftest import QUEUE, URL, task

BATCH = Batch(7, b"", 1, 1, 4_000_000_000, 60, 60)


def test_a_batch_that_drew_the_same_id_does_not_overwrite_them(world):
    put_targets(world.ports.records, BATCH, [task("mine")])

    assert not put_targets(world.ports.records, BATCH, [task("theirs")])

    assert read_targets(world.ports.records, 7, [0])[0].target == task("mine")


def test_a_change_whose_answer_was_lost_meets_its_own_write(world):
    put_targets(world.ports.records, BATCH, [task()])
    (before,) = read_targets(world.ports.records, 7, [0])
    LostAnswers(world.memory).lose("records.put")

    later = change(world.ports.records, 7, before, state=TargetState.DELIVERED)

    assert later is not None
    assert later.state is TargetState.DELIVERED


def test_a_report_masks_where_it_points():
    kept = TargetRecord(2, task("x" * 600 + "abcd"), TargetState.FAILED, 3, "the target is down", None, 5, 6)
    report = kept.report
    assert (report.number, report.to, report.state, report.attempts) == (2, "…abcd", TargetState.FAILED, 3)
    assert (report.last_error, report.delivered_at) == ("the target is down", None)


def test_writing_them_again_changes_nothing(world):
    # Given a target that was told meanwhile
    put_targets(world.ports.records, BATCH, [task()])
    (kept,) = read_targets(world.ports.records, 7, [0])
    change(world.ports.records, 7, kept, state=TargetState.DELIVERED)
    assert put_targets(world.ports.records, BATCH, [task()])
    assert read_targets(world.ports.records, 7, [0])[0].state is TargetState.DELIVERED


def test_targets_are_read_as_they_were_declared_and_outlive_their_batch(world):
    declared = (task(), Target(TargetType.SQS, queue_url="memory:next"))

    assert put_targets(world.ports.records, BATCH, declared)

    found = read_targets(world.ports.records, 7, range(5))
    assert set(world.ports.records.read("7", ["target/0", "target/1"])) == {"target/0", "target/1"}
    assert [kept.target for kept in found] == list(declared)
    assert {kept.expires_at for kept in found} == {BATCH.expires_at + 2 * 24 * 3600}


def test_a_change_misses_a_record_that_has_changed_since(world):
    put_targets(world.ports.records, BATCH, [task()])
    (before,) = read_targets(world.ports.records, 7, [0])
    assert change(world.ports.records, 7, before, attempts=1) is None

    later = change(world.ports.records, 7, before, attempts=9)

    assert later is not None
    assert later.attempts == 1


# Jobs: what they carry, and what they do not.


EVENT = Event("7.complete", "Batch Completed", {"batch_id": 7, "failed": 0, "failed_more": False}, 5)


def test_a_job_survives_its_queue():
    job = TargetJob(7, 2, ChannelNotice(EVENT, succeeded=True), 9)
    assert TargetJob.decode(json.loads(json.dumps(job.encode()))) == job


def test_the_largest_event_fits_a_job():
    """The bus takes 255 KB, with the detail type and the source; a job adds its own fields."""
    event = EVENT
    event = event._replace(
        detail={"text": "x" * (limits.MAX_ENTRY - event._replace(detail={"text": ""}).size)}
    )
    assert event.size == limits.MAX_ENTRY
    job = TargetJob(2**53 - 1, 4, ChannelNotice(event, succeeded=False), 4_102_444_800_000)
    assert len(_body(job.encode()).encode()) <= limits.MAX_QUEUE_BYTES


def test_one_job_a_target_and_no_token_in_it(world):
    world.ended(task("secret-1"), task("secret-2"))
    jobs = list(world.memory.target_jobs.waiting)
    assert [job["target"] for job in jobs] == [0, 1]
    assert "secret" not in repr(jobs)


def test_a_batch_without_targets_makes_no_jobs_and_no_reads(world):
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
def test_only_complete_without_failures_is_a_success(state, failed, more, well):
    batch = Batch(7, b"", 1, 1, 1, 60, 60, state=state)
    event = EVENT._replace(detail={"failed": failed, "failed_more": more})
    assert succeeded(batch, event) is well


# Bad targets are refused before anything is written.


def test_as_many_and_as_short_as_may_be(world):
    world.memory.channels.queues["q"] = []
    targets = (task("t"), task(), task(), task(), Target(TargetType.SQS, queue_url="q"))

    assert checked_targets(world.ports, targets) == targets


def bad(kind: str, **fields: Any) -> Target:
    return Target(TargetType(kind), **fields)


@pytest.mark.parametrize(
    ("targets", "error", "why"),
    [
        ([task()] * 6, InvalidRequest, "at most 5"),
        ([bad("sqs")], InvalidRequest, r"on_end\[0\] has the type sqs, which needs queue_url"),
        ([task(), bad("sqs", url=URL)], InvalidRequest, r"on_end\[1\].*it has url"),
        ([bad("sqs", queue_url=QUEUE, url=URL)], InvalidRequest, "it has queue_url and url"),
        ([task("t" * 2_049)], InvalidRequest, "task_token"),
        ([task("")], InvalidRequest, "task_token"),
        ([bad("durable_callback", callback_id="not base64!")], InvalidRequest, "callback_id"),
        ([bad("durable_callback", callback_id="a" * 1_025)], InvalidRequest, "callback_id"),
        ([bad("sqs", queue_url="memory:nobody")], ChannelRefused, "tag"),
        ([bad("sqs", queue_url="memory:a.fifo")], ChannelRefused, "FIFO"),
        ([bad("webhook", url="https://127.0.0.1/")], InvalidRequest, "IP address"),
        ([bad("webhook", url="https://evil.example/")], InvalidRequest, "webhook_hosts"),
    ],
)
def test_a_bad_target_is_refused_and_nothing_is_written(world, targets, error, why):
    scatter = Scatter("hello", [Recipient("", QUEUE)], on_end=targets)
    with pytest.raises(error, match=why):
        world.ledger.open(OpenBatch(on_end=targets), key="once")
    with pytest.raises(error, match=why):
        ScatterService(world.ledger).start(scatter, key="twice")
    assert not world.memory.accesses.writes
    assert not world.memory.accesses.sends


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (Target("pager", callback_id="t"), "needs a type of step_functions"),
        (Target(TargetType.SQS, "later", queue_url=QUEUE), "when of complete"),
    ],
)
def test_a_type_or_an_end_that_there_is_not_is_refused(world, target, why):
    with pytest.raises(InvalidRequest, match=why) as refused:
        checked_targets(world.ports, [target])
    assert str(refused.value) == (
        "on_end[0] needs a type of step_functions, durable_callback, sqs, webhook,"
        " and when of complete, failed, any, failing, waiting, progress"
    )


def test_a_process_that_does_not_know_the_queue_of_targets_says_so(world):
    ledger = LedgerService(world.memory.ports(Defaults(targets=False)))
    with pytest.raises(NotConfigured, match="FANIN_TARGETS_QUEUE_URL"):
        ledger.open(OpenBatch(on_end=[task()]))
    ledger.open(OpenBatch())
    assert not world.memory.records._namespaces
