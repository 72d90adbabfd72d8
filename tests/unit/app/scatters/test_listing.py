"""Listing the recipients of a topic, in turns and from several processes."""

from __future__ import annotations

import pytest

from fanin.app.scatters import gather
from fanin.app.scatters import records as scatter_records
from fanin.app.scatters.listing import Listing
from fanin.app.scatters.service import ScatterService
from fanin.domain import limits
from fanin.domain.batch import State
from fanin.domain.scatter import Scatter
from tests.unit.app.scatters.conftest import Town


@pytest.mark.usefixtures("small")
class TestLargeTopic:
    def test_it_is_starting_until_the_worker_has_listed_it(self, town: Town) -> None:
        town.register(*range(8))

        started = town.ask(timeout=60)

        assert (started.starting, started.batch.items, started.ready) == (True, 0, False)
        town.clock.advance(20_000)
        found = town.settled(started)
        assert (found.starting, found.batch.items, found.missing) == (False, 8, 8)
        assert found.batch.deadline == town.clock.at + 60_000
        assert [len(town.got(i)) for i in range(8)] == [1] * 8
        for i in range(8):
            town.reply(i, i)
        assert town.said(started) == {f"car-{i:03}": i for i in range(8)}
        assert town.row(started.batch).state is State.COMPLETE

    @pytest.mark.parametrize("cars", range(13))
    def test_the_last_chunk_may_be_full_or_not(self, town: Town, cars: int) -> None:
        town.register(*range(cars))
        assert town.settled(town.ask(at_once=1)).batch.items == cars

    def test_the_worker_stops_in_time_and_goes_on_by_another_job(
        self, town: Town, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        town.register(*range(20))
        turns: list[int] = []
        put = scatter_records.put_chunk

        def slow(*args: object) -> object:
            town.clock.advance(9_000)
            turns.append(len(town.memory.jobs.waiting))
            return put(*args)  # type: ignore[arg-type]

        monkeypatch.setattr("fanin.app.scatters.listing.put_chunk", slow)

        assert town.settled(town.ask()).batch.items == 20
        assert len(turns) == 7
        assert [len(town.got(i)) for i in range(20)] == [1] * 20

    def test_nobody_is_listed_twice_while_instances_come_and_go(self, town: Town) -> None:
        # Given two workers on the same job, and a town that changes between their writes
        town.register(*range(0, 40, 4))
        started = town.ask()
        job = town.memory.jobs.waiting[0]

        def other() -> None:
            town.register(1, 13, 39)
            town.leave(20)
            ScatterService(town.fresh()).work(job["batch_id"], None, 0)

        town.at("records.put", "before", other)
        found = town.settled(started)
        # Then all who stayed are asked once
        assert town.happened
        asked = [i for i in range(40) if town.memory.channels.queues.get(f"https://sqs/car-{i}")]
        assert set(range(0, 40, 4)) - {20} <= set(asked)
        assert len(asked) == found.batch.items == len(town.asked())
        assert set(town.asked().values()) == {1}

    def test_a_job_that_comes_again_sends_nothing(self, town: Town) -> None:
        town.register(*range(8))
        started = town.ask()
        job = town.memory.jobs.waiting[0]
        town.work()

        ScatterService(town.fresh()).work(job["batch_id"], None, 0)

        assert town.memory.jobs.waiting == []
        town.ledger.cancel(started.batch.batch_id)
        ScatterService(town.fresh()).work(job["batch_id"], None, 0)
        assert town.memory.jobs.waiting == []

    def test_an_alarm_asks_for_the_listing_that_nobody_did(self, town: Town) -> None:
        town.register(*range(8))
        started = town.ask(max_retries=0)
        town.memory.jobs.waiting.clear()

        town.ring(gather.RESTART_MS // 1000)
        found = town.settled(started)

        assert (found.batch.items, found.retries) == (8, 0)

    def test_a_listing_that_never_ends_is_given_up(self, town: Town) -> None:
        town.register(*range(8))
        started = town.ask()
        for _ in range(gather.RESTARTS + 1):
            town.memory.jobs.waiting.clear()
            town.ring(gather.RESTART_MS // 1000)

        assert town.row(started.batch).state is State.TIMED_OUT
        assert town.told(started).detail_type == "Batch Timed Out"

    def test_too_many_are_told_at_once_or_cancelled(
        self, town: Town, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "MAX_RECIPIENTS", 9)
        town.register(*range(10))

        assert town.settled(town.ask()).batch.state is State.CANCELLED
        town.leave(9)
        assert town.settled(town.ask()).batch.items == 9

    def test_items_that_are_no_recipients_end_it(self, town: Town) -> None:
        town.register(*range(8))
        started = town.ask()
        town.ledger.add(started.batch.batch_id, 1)

        assert town.settled(started).batch.state is State.CANCELLED

    def test_a_share_is_of_those_who_were_listed(self, town: Town) -> None:
        town.register(*range(8))
        started = town.ask(quorum=0.5)
        assert town.settled(started).quorum == 4
        for i in range(4):
            town.reply(i)

        assert town.row(started.batch).state is State.COMPLETE


@pytest.mark.usefixtures("small")
class TestListing:
    def test_it_lists_as_many_chunks_as_it_may_and_is_resumed(self, town: Town) -> None:
        # Given a topic of eight, in chunks of three
        town.register(*range(8))
        batch, scatter = town.batch()[0], Scatter("x", topic="town")
        later = town.clock.at + 1_000

        # When it is listed in turns of one chunk, by a new process each
        counts = [Listing(town.ports).resume(batch, scatter, until=later, most=1) for _ in range(4)]

        # Then the last turn knows how many there are, and so does everyone after
        assert counts == [None, None, 8, 8]
        chunks = [scatter_records.read_chunk(town.ports.records, batch, n) for n in range(3)]
        assert [[to.name for to in chunk.recipients] for chunk in chunks if chunk] == [
            ["car-000", "car-001", "car-002"],
            ["car-003", "car-004", "car-005"],
            ["car-006", "car-007"],
        ]

    def test_it_stops_in_time(self, town: Town) -> None:
        town.register(*range(8))
        batch = town.batch()[0]

        assert Listing(town.ports).resume(batch, Scatter("x", topic="town"), until=town.clock.at) is None
        assert scatter_records.read_chunk(town.ports.records, batch, 0) is None

    def test_a_finished_listing_does_not_grow(self, town: Town) -> None:
        town.register(1, 2)
        batch, scatter = town.batch()[0], Scatter("x", topic="town")
        Listing(town.ports).resume(batch, scatter, until=town.clock.at + 1)
        town.register(3)

        assert Listing(town.ports).resume(batch, scatter, until=town.clock.at + 1) == 2

    @pytest.mark.parametrize("cars", [0, 1, 3, 20])
    def test_the_place_to_resume_is_found_by_few_reads(self, town: Town, cars: int) -> None:
        town.register(*range(cars))
        batch, scatter = town.batch()[0], Scatter("x", topic="town")
        Listing(town.ports).resume(batch, scatter, until=town.clock.at + 1)
        reads = town.accesses.reads["records.read"]

        assert Listing(town.ports).resume(batch, scatter, until=town.clock.at + 1) == cars
        assert town.accesses.reads["records.read"] - reads <= 20
