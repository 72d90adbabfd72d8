"""The records of a scatter: plan, message, recipients in chunks, and names of replies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.adapters.memory import Memory
from fanin.app.ports.records import Records
from fanin.app.scatters import records as scatter_records
from fanin.app.scatters.records import CHUNK, Chunk, Plan
from fanin.domain.batch import Batch
from fanin.domain.scatter import Recipient, Scatter
from fanin.errors import BatchNotFound

BATCH = Batch(7, b"", 0, 0, 2_000_000_000, 1, 1)
PLAN = Plan("mine", 60, 2, 0.5)


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def records(memory: Memory) -> Records:
    return memory.records


def recipients(n: int) -> list[Recipient]:
    return [Recipient(f"car {i}", f"https://sqs/{i}") for i in range(n)]


class TestPlan:
    def test_reads_back(self, records: Records) -> None:
        assert scatter_records.put_plan(records, BATCH, PLAN)
        assert scatter_records.read_plan(records, 7) == PLAN

    def test_of_the_same_scatter_may_be_written_again_and_of_another_not(self, records: Records) -> None:
        scatter_records.put_plan(records, BATCH, PLAN)

        assert scatter_records.put_plan(records, BATCH, PLAN)
        assert not scatter_records.put_plan(records, BATCH, replace(PLAN, correlation_id="other"))
        assert scatter_records.read_plan(records, 7) == PLAN

    def test_that_is_not_there_says_that_the_batch_is_not_a_scatter(self, records: Records) -> None:
        with pytest.raises(BatchNotFound, match="batch 7 is not a scatter"):
            scatter_records.read_plan(records, 7)

    @pytest.mark.parametrize(
        ("quorum", "recipients", "enough"),
        [
            (None, 5, None),
            (3, 5, 3),
            (9, 5, 5),
            (0.5, 5, 3),
            (0.4, 5, 2),
            (0.1, 30, 3),  # in floats, 0.1 * 30 is above 3
            (0.001, 1, 1),
            (0.5, 0, 0),
        ],
    )
    def test_says_how_many_replies_are_enough(
        self, quorum: float | None, recipients: int, enough: int | None
    ) -> None:
        assert replace(PLAN, quorum=quorum).enough(recipients) == enough


class TestChunks:
    @pytest.mark.parametrize(("n", "chunks"), [(0, 0), (1, 1), (CHUNK, 1), (CHUNK + 1, 2), (5 * CHUNK, 5)])
    def test_hold_a_hundred_recipients_each(self, n: int, chunks: int) -> None:
        assert list(scatter_records.chunks(n)) == list(range(chunks))

    def test_have_their_ordinals(self) -> None:
        assert [scatter_records.chunk_of(n) for n in (0, CHUNK - 1, CHUNK)] == [0, 0, 1]
        assert scatter_records.span(2) == range(2 * CHUNK, 3 * CHUNK)

    def test_of_all_recipients_are_read_one_by_one(self, records: Records) -> None:
        to = recipients(CHUNK + 3)
        scatter_records.put_message(records, BATCH, Scatter("hello", to))
        scatter_records.put_recipients(records, BATCH, to)

        scatter, found = scatter_records.read_sending(records, 7, 1)

        assert scatter.body == "hello"
        assert found == {CHUNK + i: to[CHUNK + i] for i in range(3)}

    def test_are_written_once_by_whoever_comes_first(self, records: Records) -> None:
        first = Chunk(tuple(recipients(2)), "page", end=True)

        assert scatter_records.read_chunk(records, BATCH, 0) is None
        assert scatter_records.put_chunk(records, BATCH, 0, first) == (first, True)
        assert scatter_records.put_chunk(records, BATCH, 0, Chunk(())) == (first, False)
        assert scatter_records.read_chunk(records, BATCH, 0) == first

    def test_of_rows_from_before_there_were_pages_are_read(self) -> None:
        assert Chunk.of({"to": [["a", "q"]]}) == Chunk((Recipient("a", "q"),))

    def test_that_are_not_there_are_named(self, records: Records) -> None:
        scatter_records.put_message(records, BATCH, Scatter("hello"))

        with pytest.raises(BatchNotFound, match="chunk 3 of scatter 7"):
            scatter_records.read_sending(records, 7, 3)

    def test_give_the_names_of_some_recipients_with_one_read_each(
        self, memory: Memory, records: Records
    ) -> None:
        scatter_records.put_recipients(records, BATCH, recipients(2 * CHUNK))
        reads = memory.accesses.reads.total()

        names = scatter_records.read_names(records, 7, [0, CHUNK, 5, 2 * CHUNK])

        assert names == {0: "car 0", CHUNK: f"car {CHUNK}", 5: "car 5", 2 * CHUNK: ""}
        assert memory.accesses.reads.total() - reads == 3


class TestMessage:
    def test_reads_back_without_recipients(self, records: Records) -> None:
        scatter = Scatter("hello", type="weekly", attributes={"a": "b"}, topic="cars", where={"k": "v"})
        scatter_records.put_message(records, BATCH, scatter)

        assert scatter_records.read_message(records, 7) == scatter

    def test_that_is_not_there_is_past_its_time(self, records: Records) -> None:
        with pytest.raises(BatchNotFound, match="message of scatter 7"):
            scatter_records.read_message(records, 7)


def test_that_the_jobs_were_queued_is_recorded(records: Records) -> None:
    assert not scatter_records.was_sent(records, BATCH)
    scatter_records.put_sent(records, BATCH)
    assert scatter_records.was_sent(records, BATCH)


def test_names_of_replies_sort_as_ordinals_do() -> None:
    ordinals = [0, 9, 10, 99_999, 2**40 - 1]
    names = [scatter_records.reply_name(ordinal) for ordinal in ordinals]

    assert sorted(names) == names
    assert scatter_records.ordinals_of(names) == ordinals
