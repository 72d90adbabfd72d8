from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.adapters.memory import Memory
from fanin.app.diagnosis.service import DiagnosisService
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.inspection import Consumer, Figures, QueueReport
from fanin.app.ports.parts import RetryRow, SentRow
from fanin.domain import ids
from fanin.domain.batch import OpenBatch
from fanin.domain.diagnosis import Code, Known, Retry, SentItems
from fanin.errors import BatchNotFound, InvalidItemId, InvalidRequest, RequestTooLarge

URL = "https://sqs/1/work"


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def ledger(memory: Memory) -> LedgerService:
    return LedgerService(memory.ports())


@pytest.fixture
def diagnostics(memory: Memory) -> DiagnosisService:
    return DiagnosisService(memory.ports())


def test_findings_and_ranges_stand_on_what_was_noted_and_seen(
    memory: Memory, ledger: LedgerService, diagnostics: DiagnosisService
) -> None:
    # Given a batch whose messages wait in a queue with a disabled mapping
    batch = ledger.open(OpenBatch())
    ledger.add(batch.batch_id, 10)
    ledger.close(batch.batch_id)
    diagnostics.note_sent(batch.batch_id, SentItems(URL, 0, 10))
    figures = Figures(10, 0, 0, retention=60)
    consumers = (Consumer("importer", False, "Disabled"),)
    memory.inspection.reports[URL] = QueueReport(URL, figures=figures, consumers=consumers, troubles=())

    diagnosis = diagnostics.why(batch.batch_id)

    assert [one.code for one in diagnosis.findings] == [Code.WAITING]
    assert [one.known for one in diagnosis.missing] == [Known.WAITING]


def test_an_unknown_batch_is_not_found(diagnostics: DiagnosisService) -> None:
    with pytest.raises(BatchNotFound):
        diagnostics.why(5)


class TestSent:
    def test_a_note_costs_one_write_and_repeating_it_changes_nothing(
        self, memory: Memory, ledger: LedgerService, diagnostics: DiagnosisService
    ) -> None:
        batch = ledger.open(OpenBatch())
        ledger.add(batch.batch_id, 10)
        before = memory.accesses.writes.total()

        diagnostics.note_sent(batch.batch_id, SentItems(URL, 0, 5))
        assert memory.accesses.writes.total() == before + 1
        for stop in (10, 10, 5):
            diagnostics.note_sent(batch.batch_id, SentItems(URL, 0, stop))

        now = memory.clock.now()
        assert memory.parts.sent(batch.batch_id, upto=0, limit=9) == ([SentRow(URL, 0, 10, now, now)], False)

    @pytest.mark.parametrize(
        ("start", "stop", "why"),
        [
            (0, 0, "^to must be a whole number from 1 to"),
            (-1, 3, "^from must be a whole number from 0 to"),
            (3, 3, "^to must be a whole number from 4 to"),
            (0, 11, "has 10 items, so none up to 11"),
            (0, ids.MAX_ITEMS + 1, f"^to must be a whole number from 1 to {ids.MAX_ITEMS},"),
            (ids.MAX_ITEMS + 1, 0, f"^from must be a whole number from 0 to {ids.MAX_ITEMS},"),
        ],
    )
    def test_a_range_that_was_never_added_is_refused(
        self, ledger: LedgerService, diagnostics: DiagnosisService, start: int, stop: int, why: str
    ) -> None:
        batch = ledger.open(OpenBatch())
        ledger.add(batch.batch_id, 10)

        with pytest.raises(InvalidRequest, match=why):
            diagnostics.note_sent(batch.batch_id, SentItems(URL, start, stop))

    @pytest.mark.parametrize("queue", ["", "x" * 1_025])
    def test_a_queue_has_a_name(
        self, ledger: LedgerService, diagnostics: DiagnosisService, queue: str
    ) -> None:
        batch = ledger.open(OpenBatch())
        ledger.add(batch.batch_id, 10)

        with pytest.raises(InvalidRequest, match=r"^queue must be text of 1 to 1024 characters"):
            diagnostics.note_sent(batch.batch_id, SentItems(queue, 0, 10))

    def test_the_shortest_name_of_a_queue_and_a_single_item_are_noted(
        self, memory: Memory, ledger: LedgerService, diagnostics: DiagnosisService
    ) -> None:
        batch = ledger.open(OpenBatch())
        ledger.add(batch.batch_id, 10)

        diagnostics.note_sent(batch.batch_id, SentItems("q", 9, 10))

        assert memory.parts.sent(batch.batch_id, upto=9, limit=9)[0][0][:3] == ("q", 9, 10)

    def test_items_that_were_added_since_the_batch_was_read_can_be_noted(
        self, memory: Memory, ledger: LedgerService, diagnostics: DiagnosisService
    ) -> None:
        batch = ledger.open(OpenBatch())
        for stop in (5, 10):
            ledger.add(batch.batch_id, 5)
            diagnostics.note_sent(batch.batch_id, SentItems(URL, 0, stop))

        assert memory.parts.sent(batch.batch_id, upto=9, limit=9)[0][0].stop == 10

    def test_of_a_batch_that_has_ended_nothing_is_noted(
        self, memory: Memory, ledger: LedgerService, diagnostics: DiagnosisService
    ) -> None:
        batch = ledger.open(OpenBatch())
        ledger.add(batch.batch_id, 10)
        ledger.cancel(batch.batch_id)

        diagnostics.note_sent(batch.batch_id, SentItems(URL, 0, 10))

        assert memory.accesses.writes["parts.put_sent"] == 0


class TestRetries:
    def test_notes_of_several_batches_are_written_together(
        self, memory: Memory, ledger: LedgerService, diagnostics: DiagnosisService
    ) -> None:
        groups = [ledger.add(ledger.open(OpenBatch()).batch_id, 3) for _ in range(2)]

        diagnostics.note_retries([Retry(group[1], 4, "no", "work") for group in groups])

        for group in groups:
            rows = memory.parts.retries(group.batch_id, [0, 1])
            assert rows == {1: RetryRow(1, 4, "no", "work", memory.clock.now())}

    def test_a_forged_id_is_refused_and_nothing_is_written(
        self, memory: Memory, ledger: LedgerService, diagnostics: DiagnosisService
    ) -> None:
        group = ledger.add(ledger.open(OpenBatch()).batch_id, 3)
        other = ledger.add(ledger.open(OpenBatch()).batch_id, 3)
        forged = f"{group.batch_id}:{other.id}:0"

        with pytest.raises(InvalidItemId):
            diagnostics.note_retries([Retry(group[0], 2, "no"), Retry(forged, 2, "no")])

        assert memory.accesses.writes["parts.put_retries"] == 0

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
    def test_what_is_out_of_bounds_is_refused(
        self, ledger: LedgerService, diagnostics: DiagnosisService, attempt: Retry, why: str
    ) -> None:
        group = ledger.add(ledger.open(OpenBatch()).batch_id, 3)

        with pytest.raises(InvalidRequest, match=why):
            diagnostics.note_retries([replace(attempt, item=group[0])])

    @pytest.mark.parametrize("attempt", [1, 2**31 - 1])
    def test_the_first_attempt_and_the_last_that_can_be_counted_are_noted(
        self, memory: Memory, ledger: LedgerService, diagnostics: DiagnosisService, attempt: int
    ) -> None:
        group = ledger.add(ledger.open(OpenBatch()).batch_id, 3)

        diagnostics.note_retries([Retry(group[0], attempt, "")])

        assert memory.parts.retries(group.batch_id, [0])[0].attempt == attempt

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_items_that_were_added_since_the_batch_was_read_can_be_noted(
        self, memory: Memory, ledger: LedgerService, diagnostics: DiagnosisService, order: tuple[int, int]
    ) -> None:
        # Given a batch that was read when it had its first three items
        batch = ledger.open(OpenBatch())
        groups = [ledger.add(batch.batch_id, 3)]
        diagnostics.note_retries([Retry(groups[0][2], 2, "")])
        groups.append(ledger.add(batch.batch_id, 3))

        # When attempts at earlier and later items are noted together, in either order
        diagnostics.note_retries([Retry(groups[n][0], 2, "") for n in order])

        assert set(memory.parts.retries(batch.batch_id, range(6))) == {0, 2, 3}

    def test_there_are_a_thousand_at_most(self, ledger: LedgerService, diagnostics: DiagnosisService) -> None:
        group = ledger.add(ledger.open(OpenBatch()).batch_id, 1)

        with pytest.raises(RequestTooLarge, match="1001 failed attempts"):
            diagnostics.note_retries([Retry(group[0], 2, "")] * 1_001)

    def test_batches_that_have_ended_are_left_out(
        self, memory: Memory, ledger: LedgerService, diagnostics: DiagnosisService
    ) -> None:
        group = ledger.add(ledger.open(OpenBatch()).batch_id, 1)
        ledger.cancel(group.batch_id)

        diagnostics.note_retries([Retry(group[0], 2, "")])

        assert memory.accesses.writes["parts.put_retries"] == 0
