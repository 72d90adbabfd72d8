from __future__ import annotations

from dataclasses import replace

import pytest

from fanin import names
from fanin.app.diagnosis.gathering import MOST_READS
from fanin.app.ledger.reaper import Reaped
from fanin.app.ports.parts import SentRow
from fanin.app.ports.queues import Figures, QueueMapping
from fanin.app.services import Services
from fanin.domain import ids
from fanin.domain.batch import OnFailure
from fanin.domain.diagnosis import Code, Known, Retry, SentItems, Severity
from fanin.domain.marks import Failure
from fanin.errors import InvalidItemId, InvalidRequest, RequestTooLarge
from tests.unit.app.conftest import Crash
from tests.unit.app.diagnosis.conftest import URL, Scene


class TestSent:
    def test_a_note_costs_one_write_and_repeating_it_changes_nothing(self, scene: Scene) -> None:
        batch_id = scene.group(10).batch_id
        before = scene.accesses.writes.total()

        scene.diagnostics.note_sent(batch_id, SentItems(URL, 0, 5))
        assert scene.accesses.writes.total() == before + 1
        for stop in (10, 10, 5):
            scene.diagnostics.note_sent(batch_id, SentItems(URL, 0, stop))

        now = scene.clock.now()
        found = scene.memory.parts.sent(batch_id, upto=0, limit=9)
        assert found == ([SentRow(URL, 0, 10, now, now)], False)

    @pytest.mark.parametrize(
        ("sent", "why"),
        [
            (SentItems(URL, 0, 0), "^to must be a whole number from 1 to"),
            (SentItems(URL, -1, 3), "^from must be a whole number from 0 to"),
            (SentItems(URL, 3, 3), "^to must be a whole number from 4 to"),
            (SentItems(URL, 0, 11), "has 10 items, so none up to 11"),
            (SentItems(URL, 0, ids.MAX_ITEMS + 1), f"^to must be a whole number from 1 to {ids.MAX_ITEMS},"),
            (SentItems(URL, ids.MAX_ITEMS + 1, 0), f"^from must be .* from 0 to {ids.MAX_ITEMS},"),
            (SentItems("", 0, 10), "^queue must be text of 1 to 1024 characters"),
            (SentItems("x" * 1_025, 0, 10), "^queue must be text of 1 to 1024 characters"),
        ],
    )
    def test_what_was_never_added_or_has_no_queue_is_refused(
        self, scene: Scene, sent: SentItems, why: str
    ) -> None:
        group = scene.group(10)

        with pytest.raises(InvalidRequest, match=why):
            scene.diagnostics.note_sent(group.batch_id, sent)


class TestRetries:
    def test_a_forged_id_is_refused_and_nothing_is_written(self, scene: Scene) -> None:
        group, other = scene.group(3), scene.group(3)
        forged = f"{group.batch_id}:{other.id}:0"

        with pytest.raises(InvalidItemId):
            scene.diagnostics.note_retries([Retry(group[0], 2, "no"), Retry(forged, 2, "no")])

        assert scene.accesses.writes["parts.put_retries"] == 0

    @pytest.mark.parametrize(
        ("attempt", "why"),
        [
            (Retry("", 0, ""), "^attempt must be a whole number from 1 to 2147483647"),
            (Retry("", 2**31, ""), "^attempt must be a whole number from 1 to 2147483647"),
            (Retry("", 2, "x" * 1_025), "^error must be text of 0 to 1024 characters"),
            (Retry("", 2, "\ud800"), "^error has one half of a surrogate pair"),
            (Retry("", 2, "", "x" * 1_025), "^queue must be text of 0 to 1024 characters"),
        ],
    )
    def test_what_is_out_of_bounds_is_refused(self, scene: Scene, attempt: Retry, why: str) -> None:
        with pytest.raises(InvalidRequest, match=why):
            scene.diagnostics.note_retries([replace(attempt, item=scene.group(3)[0])])

    def test_there_are_a_thousand_at_most(self, scene: Scene) -> None:
        with pytest.raises(RequestTooLarge, match="1001 failed attempts"):
            scene.diagnostics.note_retries([Retry(scene.group(1)[0], 2, "")] * 1_001)

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_items_that_were_added_since_the_batch_was_read_can_be_noted(
        self, scene: Scene, order: tuple[int, int]
    ) -> None:
        # Given a batch that was read when it had its first three items
        groups = [scene.group(3)]
        batch_id = groups[0].batch_id
        scene.diagnostics.note_retries([Retry(groups[0][2], 2, "")])
        groups.append(scene.ledger.add(batch_id, 3))

        # When attempts at earlier and later items are noted together, in either order
        scene.diagnostics.note_retries([Retry(groups[n][0], 2, "") for n in order])

        assert set(scene.memory.parts.retries(batch_id, range(6))) == {0, 2, 3}


def test_of_a_batch_that_has_ended_nothing_is_noted(scene: Scene) -> None:
    group = scene.group(10)
    scene.ledger.cancel(group.batch_id)

    scene.diagnostics.note_sent(group.batch_id, SentItems(URL, 0, 10))
    scene.diagnostics.note_retries([Retry(group[0], 2, "")])

    assert scene.accesses.writes["parts.put_sent"] == scene.accesses.writes["parts.put_retries"] == 0


def test_findings_and_ranges_stand_on_what_was_noted_and_seen(scene: Scene) -> None:
    # Given a batch whose messages wait in a queue with a disabled mapping
    batch = scene.waiting(Figures(10, 0, 0, retention=60))
    reports = scene.memory.inspection.reports
    reports[URL] = replace(reports[URL], consumers=(QueueMapping("importer", False, "Disabled"),))

    diagnosis = scene.diagnostics.why(batch.batch_id)

    assert [one.code for one in diagnosis.findings] == [Code.WAITING]
    assert [one.known for one in diagnosis.missing] == [Known.WAITING]


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
