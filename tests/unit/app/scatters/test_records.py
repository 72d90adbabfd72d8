"""The records of a scatter: what is written is read back, and the first write of a chunk stays."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.adapters.memory import Memory
from fanin.app.ports.records import Records
from fanin.app.scatters import records as scatter_records
from fanin.app.scatters.records import Chunk, ScatterPlan
from fanin.domain.scatter import Recipient, Scatter
from fanin.errors import BatchNotFound
from tests.unit.app.scatters.conftest import BATCH

OTHER = replace(BATCH, batch_id=8)
PLAN = ScatterPlan("c", 120, 2, None)


@pytest.fixture
def records(memory: Memory) -> Records:
    return memory.records


def people(n: int) -> list[Recipient]:
    return [Recipient(f"car {i}", f"https://sqs/car-{i}") for i in range(n)]


class TestEnough:
    @given(thousandths=st.integers(1, 999), recipients=st.integers(1, 100_000))
    def test_a_share_is_met_by_enough_replies_and_not_by_one_less(self, thousandths, recipients):
        enough = replace(PLAN, quorum=thousandths / 1000).enough(recipients)

        assert enough is not None
        assert 1 <= enough <= recipients
        assert Fraction(enough, recipients) >= Fraction(thousandths, 1000) > Fraction(enough - 1, recipients)

    @pytest.mark.parametrize(
        ("quorum", "recipients", "enough"),
        [
            (None, 5, None),
            (4, 5, 4),
            (6, 5, 5),
            (4, 0, 0),
            (0.1, 30, 3),
            (0.7, 10, 7),
            (0.07, 100, 7),
            (0.5, 5, 3),
            (1e-9, 100_000, 1),
            (0.5, 0, 0),
        ],
    )
    def test_a_number_is_enough_or_all_where_there_are_fewer_and_a_share_is_counted_as_it_was_written(
        self, quorum, recipients, enough
    ):
        assert replace(PLAN, quorum=quorum).enough(recipients) == enough


class TestChunks:
    @pytest.mark.parametrize(
        "chunk", [Chunk(()), Chunk((Recipient("", "é"), Recipient('"', "b")), "p", True)]
    )
    def test_a_chunk_survives_its_row(self, chunk):
        assert Chunk.of(json.loads(json.dumps(chunk.value))) == chunk

    def test_the_first_write_of_a_chunk_stays(self, records):
        first, second = Chunk(tuple(people(2)), "page", end=True), Chunk(tuple(people(3)))

        assert scatter_records.put_chunk(records, BATCH, 4, first) == (first, True)
        assert scatter_records.put_chunk(records, BATCH, 4, second) == (first, False)
        assert scatter_records.put_chunk(records, BATCH, 4, first) == (first, False)
        assert scatter_records.read_chunk(records, BATCH, 4) == first
        assert scatter_records.read_chunk(records, BATCH, 3) is None
        assert scatter_records.read_chunk(records, OTHER, 4) is None

    def test_a_chunk_that_expires_while_it_is_written_is_an_error_that_says_so(self, memory, monkeypatch):
        monkeypatch.setattr(memory.records, "put", lambda *_, **__: (None, False))

        with pytest.raises(BatchNotFound, match=r"^chunk 4 of scatter 7 is past its time to live$"):
            scatter_records.put_chunk(memory.records, BATCH, 4, Chunk(()))

    @pytest.mark.parametrize(("recipients", "count"), [(0, 0), (1, 1), (100, 1), (101, 2), (2_000, 20)])
    def test_each_recipient_is_in_one_chunk_and_no_chunk_is_empty(self, recipients, count):
        assert scatter_records.chunks(recipients) == range(count)


@pytest.mark.parametrize("quorum", [None, 3, 0.25])
def test_plan_a_plan_is_read_back_after_a_repeat_and_another_one_that_is_refused(records, quorum):
    plan = ScatterPlan("mine", 5, 0, quorum)

    assert scatter_records.put_plan(records, BATCH, plan)
    assert scatter_records.put_plan(records, BATCH, replace(plan))
    assert not scatter_records.put_plan(records, BATCH, replace(plan, correlation_id="other"))
    assert scatter_records.read_plan(records, 7) == plan


class TestMessage:
    MESSAGE = Scatter("body", type="weekly", attributes={"week": "47"}, topic="cars", where={"kind": "van"})

    def test_what_is_sent_and_to_whom_is_read_back_and_nothing_else(self, records):
        given = replace(self.MESSAGE, recipients=people(2), timeout=5, quorum=1, user_key="mine")

        for _ in range(2):
            scatter_records.put_message(records, BATCH, given)
            assert scatter_records.read_message(records, 7) == self.MESSAGE

    def test_a_message_that_is_not_there_is_refused(self, records):
        scatter_records.put_message(records, BATCH, self.MESSAGE)
        with pytest.raises(BatchNotFound, match=r"^the message of scatter 8 is past its time to live$"):
            scatter_records.read_message(records, 8)


class TestRecipients:
    def put(self, records: Records, count: int) -> None:
        scatter_records.put_message(records, BATCH, Scatter("body"))
        scatter_records.put_recipients(records, BATCH, people(count))

    def test_a_chunk_that_is_not_there_or_has_no_message_is_refused(self, records):
        scatter_records.put_recipients(records, BATCH, people(200))
        with pytest.raises(BatchNotFound, match=r"^chunk 0 of scatter 7 is past its time to live$"):
            scatter_records.read_sending(records, 7, 0, 0)

        scatter_records.put_message(records, BATCH, Scatter("body"))
        with pytest.raises(BatchNotFound, match=r"^chunk 2 of scatter 7 is past its time to live$"):
            scatter_records.read_sending(records, 7, 2, 0)

    def test_names_are_read_by_number_chunk_by_chunk_and_one_that_is_not_there_is_empty(
        self, memory, records
    ):
        scatter_records.put_recipients(records, BATCH, people(205))

        names = scatter_records.read_names(records, 7, [204, 0, 99, 100, 205, 3_000])

        assert names == {204: "car 204", 0: "car 0", 99: "car 99", 100: "car 100", 205: "", 3_000: ""}
        assert scatter_records.read_names(records, 7, []) == {}

        before = memory.accesses.reads["records.read"]
        scatter_records.read_names(records, 7, range(100))
        assert memory.accesses.reads["records.read"] == before + 1

    def test_the_repeat_of_a_wave_goes_to_those_alone_who_wait_for_it(self, records):
        self.put(records, 103)

        scatter_records.put_waiting(records, BATCH, 1, 2, [102, 101])
        assert scatter_records.read_sending(records, 7, 1, 2)[1].keys() == {101, 102}
        scatter_records.put_waiting(records, BATCH, 1, 2, [101])

        assert scatter_records.read_sending(records, 7, 1, 2)[1].keys() == {101}
        assert scatter_records.read_sending(records, 7, 1, 3)[1].keys() == {100, 101, 102}
        assert len(scatter_records.read_sending(records, 7, 0, 2)[1]) == 100


def test_records_expire_with_their_batch():
    memory = Memory()
    records = memory.records
    scatter_records.put_plan(records, BATCH, PLAN)
    scatter_records.put_message(records, BATCH, Scatter("body"))
    scatter_records.put_recipients(records, BATCH, people(1))
    scatter_records.put_chunk(records, BATCH, 1, Chunk(()))
    scatter_records.put_sent(records, BATCH)
    names = ["scatter", "message", "to/000000", "to/000001", "sent"]

    found = records.read("7", names)
    assert {name: record.expires_at for name, record in found.items()} == dict.fromkeys(
        names, BATCH.expires_at
    )
