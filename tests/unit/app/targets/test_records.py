"""The records of targets."""

from __future__ import annotations

from fanin.app.targets.records import TargetRecord, change, put_targets, read_targets
from fanin.domain.batch import Batch
from fanin.domain.targets import TargetState
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
