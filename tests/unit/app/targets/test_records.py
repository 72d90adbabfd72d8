"""The records of targets."""

from __future__ import annotations

from fanin.app.targets.records import TargetRecord, change, put_targets, read_targets
from fanin.domain.batch import Batch
from fanin.domain.targets import Target, TargetState, TargetType
from tests.lost_answers import LostAnswers
from tests.unit.app.targets.conftest import World, task

BATCH = Batch(7, b"", 1, 1, 4_000_000_000, 60, 60)


def test_a_batch_that_drew_the_same_id_does_not_overwrite_them(world: World) -> None:
    put_targets(world.ports.records, BATCH, [task("mine")])

    assert not put_targets(world.ports.records, BATCH, [task("theirs")])

    assert read_targets(world.ports.records, 7, [0])[0].target == task("mine")


def test_a_change_whose_answer_was_lost_meets_its_own_write(world: World) -> None:
    put_targets(world.ports.records, BATCH, [task()])
    (before,) = read_targets(world.ports.records, 7, [0])
    LostAnswers(world.memory).lose("records.put")

    later = change(world.ports.records, 7, before, state=TargetState.DELIVERED)

    assert later is not None
    assert later.state is TargetState.DELIVERED


def test_a_report_masks_where_it_points() -> None:
    kept = TargetRecord(2, task("x" * 600 + "abcd"), TargetState.FAILED, 3, "the target is down", None, 5, 6)
    report = kept.report
    assert (report.number, report.to, report.state, report.attempts) == (2, "…abcd", TargetState.FAILED, 3)
    assert (report.last_error, report.delivered_at) == ("the target is down", None)


def test_writing_them_again_changes_nothing(world: World) -> None:
    # Given a target that was told meanwhile
    put_targets(world.ports.records, BATCH, [task()])
    (kept,) = read_targets(world.ports.records, 7, [0])
    change(world.ports.records, 7, kept, state=TargetState.DELIVERED)
    # When the opening is repeated
    assert put_targets(world.ports.records, BATCH, [task()])
    # Then it is still told
    assert read_targets(world.ports.records, 7, [0])[0].state is TargetState.DELIVERED


def test_targets_are_read_as_they_were_declared_and_outlive_their_batch(world: World) -> None:
    declared = (task(), Target(TargetType.SQS, queue_url="memory:next"))

    assert put_targets(world.ports.records, BATCH, declared)

    found = read_targets(world.ports.records, 7, range(5))
    assert set(world.ports.records.read("7", ["target/0", "target/1"])) == {"target/0", "target/1"}
    assert [kept.target for kept in found] == list(declared)
    assert {kept.expires_at for kept in found} == {BATCH.expires_at + 2 * 24 * 3600}


def test_a_change_misses_a_record_that_has_changed_since(world: World) -> None:
    put_targets(world.ports.records, BATCH, [task()])
    (before,) = read_targets(world.ports.records, 7, [0])
    assert change(world.ports.records, 7, before, attempts=1) is None

    later = change(world.ports.records, 7, before, attempts=9)

    assert later is not None
    assert later.attempts == 1
