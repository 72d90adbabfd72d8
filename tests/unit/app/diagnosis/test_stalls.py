from __future__ import annotations

import pytest

from fanin import names
from fanin.app.diagnosis.gathering import MOST_READS
from fanin.app.ledger.reaper import Reaped
from fanin.app.ports.queues import Figures
from fanin.app.services import Services
from fanin.domain.batch import OnFailure
from fanin.domain.diagnosis import Code, Retry, Severity
from fanin.domain.marks import Failure
from tests.unit.app.conftest import Crash
from tests.unit.app.diagnosis.conftest import Scene

HOUR = 3_600_000
DELAYED = Figures(0, 0, 3, retention=345_600)
QUIET, BUSY = Figures(3, 0, 0, retention=345_600), Figures(0, 3, 0, retention=345_600)
EMPTY = Figures(0, 0, 0, retention=345_600)


def test_the_event_has_the_batch_and_the_first_finding(scene: Scene) -> None:
    batch = scene.waiting(QUIET, user_key="nightly")
    scene.clock.advance(HOUR)

    event = scene.stall(batch)

    assert event is not None
    assert (event.id, event.detail_type) == (
        f"{batch.batch_id}.stalled.{batch.touched_at}",
        names.BATCH_STALLED,
    )
    assert event.detail["user_key"] == "nightly"
    assert event.detail["finding"]["code"] == "waiting"  # type: ignore[index]
    assert "salt" not in event.detail


@pytest.mark.parametrize("figures", [BUSY, DELAYED], ids=["in flight", "delayed"])
def test_what_waits_for_a_good_reason_has_not_stalled(scene: Scene, figures: Figures) -> None:
    batch = scene.waiting(figures)
    scene.clock.advance(HOUR)

    assert scene.stall(batch) is None


def test_a_batch_whose_failed_items_are_held_has_not_stalled(scene: Scene) -> None:
    # Given a batch of which all is done but for the items that it holds
    batch, items = scene.batch(200, on_failure=OnFailure.HOLD)
    scene.ledger.mark(items[:100]).whole()
    scene.ledger.mark([Failure(item, "x") for item in items[100:]]).whole()
    scene.clock.advance(HOUR)

    # When it is asked why, then they are its first finding, counted as far as a few reads go
    scene.accesses.reads.clear()
    found = scene.diagnostics.why(batch.batch_id).findings
    assert scene.accesses.reads.total() <= MOST_READS
    assert found[0].code is Code.HELD
    assert 0 < found[0].evidence["held"] <= 100

    # And nobody is told of a stall
    assert scene.stall(batch) is None


def test_failed_items_that_are_held_have_not_stalled(scene: Scene) -> None:
    """Its messages are gone, as they should be: somebody decides about the items."""
    # Given a batch that holds its failed items, all of which were tried, and failed
    batch = scene.waiting(EMPTY, on_failure=OnFailure.HOLD)
    (missing,) = scene.ledger.missing(batch.batch_id).ranges
    items = [f"{missing.group}:{n}" for n in range(3)]
    scene.diagnostics.note_retries([Retry(item, 5, "no such customer") for item in items])
    scene.clock.advance(1_000)
    scene.ledger.mark([Failure(item, "dead letter") for item in items]).whole()

    # When nobody has decided for an hour
    scene.clock.advance(HOUR)

    # Then that is said, and nothing else
    (found,) = scene.diagnostics.why(batch.batch_id).findings
    assert (found.code, found.severity) == (Code.HELD, Severity.INFO)
    assert scene.stall(batch) is None


class TestReaper:
    def test_tells_of_a_stall_once(self, scene: Scene) -> None:
        scene.waiting(QUIET)

        scene.clock.advance(HOUR)
        first = scene.ledger.reap()
        for _ in range(20):
            scene.clock.advance(HOUR // 12)
            assert scene.ledger.reap().stalled == 0

        assert first == Reaped(seen=1, stalled=1)
        assert len(scene.memory.events.published) == 1

    def test_looks_ever_less_often_at_what_waits_for_days(self, scene: Scene) -> None:
        """Each look costs reads of rows, and requests to queues and metrics."""
        _, items = scene.batch(3, on_failure=OnFailure.HOLD)
        scene.ledger.mark([Failure(item, "no such customer") for item in items]).whole()

        looks = 0
        for _ in range(6 * 48):  # for six days, every half an hour
            scene.clock.advance(HOUR // 2)
            looks += scene.ledger.reap().seen

        assert 5 <= looks <= 12

    @pytest.mark.parametrize("call", ["events.publish", "batches.tell_stall"])
    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_that_dies_has_told_it_or_tells_it_again_with_the_same_id(
        self, scene: Scene, call: str, moment: str
    ) -> None:
        batch = scene.waiting(QUIET)
        scene.clock.advance(HOUR)

        scene.refuse(call, moment, Crash())
        with pytest.raises(Crash):
            scene.ledger.reap()
        Services(scene.ports).ledger.reap()

        row = scene.row(batch)
        assert row.stall_told == row.touched_at
        told = {event.id for event in scene.memory.events.published}
        assert told == {f"{batch.batch_id}.stalled.{row.touched_at}"}

    def test_looks_again_at_what_waits_for_a_good_reason(self, scene: Scene) -> None:
        scene.waiting(BUSY)
        scene.clock.advance(HOUR)
        assert scene.ledger.reap() == Reaped(seen=1)
        assert scene.ledger.reap() == Reaped()

        scene.report(QUIET)
        scene.clock.advance(HOUR)

        assert scene.ledger.reap() == Reaped(seen=1, stalled=1)
