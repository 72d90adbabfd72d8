from __future__ import annotations

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.diagnosis.gathering import MOST_READS
from fanin.app.diagnosis.service import DiagnosisService
from fanin.app.diagnosis.stalls import Stalls
from fanin.app.ledger.reaper import Reaped
from fanin.app.ports.batches import Activity
from fanin.app.ports.inspection import Figures, QueueReport
from fanin.app.services import Services
from fanin.domain.acks import Failure
from fanin.domain.batch import Batch, Kind, OnFailure, OpenBatch
from fanin.domain.diagnosis import Code, Retry, SentItems, Severity

URL = "https://sqs/1/work"
HOUR = 3_600_000


class Died(BaseException):
    """A process dies."""


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def services(memory: Memory) -> Services:
    return Services(memory.ports())


def waiting(services: Services, memory: Memory, figures: Figures, **options: object) -> Batch:
    batch = services.ledger.open(OpenBatch(**options))  # type: ignore[arg-type]
    services.ledger.add(batch.batch_id, 3)
    batch = services.ledger.close(batch.batch_id)
    DiagnosisService(memory.ports()).note_sent(batch.batch_id, SentItems(URL, 0, 3))
    memory.inspection.reports[URL] = QueueReport(URL, figures=figures, consumers=(), troubles=())
    return batch


DELAYED = Figures(0, 0, 3, retention=345_600)
QUIET, BUSY = Figures(3, 0, 0, retention=345_600), Figures(0, 3, 0, retention=345_600)


def test_the_event_has_the_batch_and_the_first_finding(services: Services, memory: Memory) -> None:
    batch = waiting(services, memory, QUIET, user_key="nightly")
    memory.clock.advance(HOUR)

    event = Stalls(memory.ports()).event(batch)

    assert event is not None
    assert (event.id, event.detail_type) == (
        f"{batch.batch_id}.stalled.{batch.touched_at}",
        names.BATCH_STALLED,
    )
    assert event.detail["user_key"] == "nightly"
    assert event.detail["finding"]["code"] == "waiting"  # type: ignore[index]
    assert "salt" not in event.detail


@pytest.mark.parametrize("figures", [BUSY, DELAYED], ids=["in flight", "delayed"])
def test_what_waits_for_a_good_reason_has_not_stalled(
    services: Services, memory: Memory, figures: Figures
) -> None:
    batch = waiting(services, memory, figures)
    memory.clock.advance(HOUR)

    assert Stalls(memory.ports()).event(batch) is None


def test_a_batch_whose_failed_items_are_held_has_not_stalled(services: Services, memory: Memory) -> None:
    # Given a batch of which all is done but for the items that it holds
    batch = services.ledger.open(OpenBatch(on_failure=OnFailure.HOLD))
    items = services.ledger.add(batch.batch_id, 200)
    services.ledger.ack(items[:100])
    services.ledger.fail([Failure(item, "x") for item in items[100:]])
    services.ledger.close(batch.batch_id)
    memory.clock.advance(HOUR)
    batch = memory.ports().batches.read([batch.batch_id])[batch.batch_id]

    # When it is asked why, then they are its first finding, counted as far as a few reads go
    memory.accesses.reads.clear()
    found = DiagnosisService(memory.ports()).why(batch.batch_id).findings
    assert memory.accesses.reads.total() <= MOST_READS
    assert found[0].code is Code.HELD
    assert 0 < found[0].evidence["held"] <= 100

    # And nobody is told of a stall
    assert Stalls(memory.ports()).event(batch) is None


def test_failed_items_that_are_held_have_not_stalled(services: Services, memory: Memory) -> None:
    """Its messages are gone, as they should be: somebody decides about the items."""
    # Given a batch that holds its failed items, all of which were tried, and failed
    batch = services.ledger.open(OpenBatch(on_failure=OnFailure.HOLD))
    group = services.ledger.add(batch.batch_id, 3)
    batch = services.ledger.close(batch.batch_id)
    diagnostics = DiagnosisService(memory.ports())
    diagnostics.note_sent(batch.batch_id, SentItems(URL, 0, 3))
    diagnostics.note_retries([Retry(item, 5, "no such customer") for item in group])
    memory.clock.advance(1_000)
    services.ledger.fail([Failure(item, "dead letter") for item in group])
    empty = Figures(0, 0, 0, retention=345_600)
    memory.inspection.reports[URL] = QueueReport(URL, figures=empty, consumers=(), troubles=())

    # When nobody has decided for an hour
    memory.clock.advance(HOUR)

    # Then that is said, and nothing else
    (found,) = diagnostics.why(batch.batch_id).findings
    assert (found.code, found.severity) == (Code.HELD, Severity.INFO)
    assert Stalls(memory.ports()).event(memory.batches.read([batch.batch_id])[batch.batch_id]) is None


class TestReaper:
    def test_tells_of_a_stall_once(self, services: Services, memory: Memory) -> None:
        waiting(services, memory, QUIET)

        memory.clock.advance(HOUR)
        first = services.ledger.reap()
        for _ in range(20):
            memory.clock.advance(HOUR // 12)
            assert services.ledger.reap().stalled == 0

        assert first == Reaped(seen=1, stalled=1)
        assert len(memory.events.published) == 1

    def test_claims_no_stall_before_it_is_certain(self, services: Services, memory: Memory) -> None:
        """The last activity may be a step later than the row says."""
        batch = waiting(services, memory, QUIET)
        certain = batch.touched_at + batch.step + 1_800_000

        memory.clock.at = certain - 1
        assert services.ledger.reap().stalled == 0
        memory.clock.at = certain + 1
        assert services.ledger.reap().stalled == 1

    def test_looks_again_at_what_waits_for_a_good_reason(self, services: Services, memory: Memory) -> None:
        waiting(services, memory, BUSY)
        memory.clock.advance(HOUR)
        assert services.ledger.reap() == Reaped(seen=1)
        assert services.ledger.reap() == Reaped()

        memory.inspection.reports[URL] = QueueReport(URL, figures=QUIET, consumers=(), troubles=())
        memory.clock.advance(HOUR)

        assert services.ledger.reap() == Reaped(seen=1, stalled=1)

    def test_looks_ever_less_often_at_what_waits_for_days(self, services: Services, memory: Memory) -> None:
        """Each look costs reads of rows, and requests to queues and metrics."""
        batch = services.ledger.open(OpenBatch(on_failure=OnFailure.HOLD))
        items = services.ledger.add(batch.batch_id, 3)
        services.ledger.fail([Failure(item, "no such customer") for item in items])
        services.ledger.close(batch.batch_id)

        looks = 0
        for _ in range(6 * 48):  # for six days, every half an hour
            memory.clock.advance(HOUR // 2)
            looks += services.ledger.reap().seen

        assert 5 <= looks <= 12

    @pytest.mark.parametrize("call", ["events.publish", "batches.tell_stall"])
    @pytest.mark.parametrize("moment", ["before", "after"])
    def test_that_dies_has_told_it_or_tells_it_again_with_the_same_id(self, call: str, moment: str) -> None:
        plans = [(call, moment)]

        def die(name: str, when: str) -> None:
            if plans and (name, when) == plans[0]:
                plans.clear()
                raise Died

        memory = Memory(on_call=die)
        services = Services(memory.ports())
        batch = waiting(services, memory, QUIET)
        memory.clock.advance(HOUR)

        with pytest.raises(Died):
            services.ledger.reap()
        Services(memory.ports()).ledger.reap()

        row = memory.batches.read([batch.batch_id])[batch.batch_id]
        assert row.stall_told == row.touched_at
        assert {event.id for event in memory.events.published} == {
            f"{batch.batch_id}.stalled.{row.touched_at}"
        }

    def test_activity_just_before_the_mark_leaves_the_next_stall_to_be_told(
        self, services: Services, memory: Memory
    ) -> None:
        batch = waiting(services, memory, QUIET)
        memory.clock.advance(HOUR)
        acked = Services(memory.ports()).ledger
        group = acked.missing(batch.batch_id).ranges[0].group
        seen = memory.batches.read([batch.batch_id])[batch.batch_id]
        acked.ack([f"{group}:0"])

        told = memory.batches.tell_stall(batch.batch_id, Activity(seen.touched_at, seen.due_at))

        assert told is False
        assert memory.batches.read([batch.batch_id])[batch.batch_id].stall_told is None

    @pytest.mark.parametrize("kind", [Kind.FRAME, Kind.BUFFER, Kind.SCATTER])
    def test_patterns_watch_over_their_waiting_themselves(
        self, services: Services, memory: Memory, kind: Kind
    ) -> None:
        services.ledger.open(OpenBatch(kind=kind))

        memory.clock.advance(HOUR + 1)

        assert services.ledger.reap().stalled == 0

    def test_a_batch_that_is_due_to_end_ends_instead(self, services: Services, memory: Memory) -> None:
        services.ledger.open(OpenBatch(idle_ttl=60))
        memory.clock.advance(HOUR)

        assert services.ledger.reap() == Reaped(seen=1, orphaned=1)
