from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.app.ports.parts import SentRow
from fanin.app.ports.queues import Figures, QueueMapping
from fanin.domain import ids
from fanin.domain.diagnosis import Code, Known, Retry, SentItems
from fanin.errors import InvalidItemId, InvalidRequest, RequestTooLarge
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
