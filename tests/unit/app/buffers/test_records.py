"""The records of buffers: read back as written, remembered for a while, never written over unseen."""

import pytest

from fanin.app.buffers.records import GRAVE, BufferRecords, WorkEntry, check_name, entry_of
from fanin.app.fresh import FRESH_MS
from fanin.app.ports.records import FOREVER, Record
from fanin.domain.buffer import Buffer
from fanin.errors import BufferNotFound, InvalidRequest
from tests.unit.app.conftest import World

ENTRY = WorkEntry(
    Buffer("jobs", 3, "https://sqs/jobs", owned=True, batch_id=7), renew_at=1_000, retention=60, born=5
)


@pytest.fixture
def records(world: World) -> BufferRecords:
    return BufferRecords(world.ports)


@pytest.fixture
def other(world: World) -> BufferRecords:
    """Another process."""
    return BufferRecords(world.ports)


def reads(world: World) -> int:
    return world.accesses.reads["directory.read"]


def written(records: BufferRecords, entry: WorkEntry) -> WorkEntry:
    """Write a record, which nobody has changed meanwhile."""
    now, wrote = records.write(entry)
    assert wrote
    assert now is not None
    return now


def limited(entry: WorkEntry, limit: int) -> WorkEntry:
    """The same with another limit."""
    return entry._replace(buffer=Buffer("jobs", limit, "https://sqs/jobs", owned=True, batch_id=7))


class TestName:
    @pytest.mark.parametrize("name", ["a", "7", "Jobs_of-7", "x" * 48])
    def test_of_letters_digits_and_dashes_is_taken(self, name):
        check_name(name)

    @pytest.mark.parametrize("name", ["", "-a", "_a", "a b", "a/b", "a.fifo", "a\n", "é", "x" * 49])
    def test_that_a_queue_cannot_have_is_refused_before_anything_is_read(self, world, records, name):
        for call in (check_name, records.read, records.refresh, records.fresh):
            with pytest.raises(InvalidRequest, match="1 to 48"):
                call(name)
        assert reads(world) == 0


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"limit": 3, "queue": "https://sqs/jobs"},
        {**ENTRY.value(), "marks": 7},
        {**ENTRY.value(), "marks": [[1]]},
        {**ENTRY.value(), "batch_id": "x"},
    ],
    ids=["empty", "fields are missing", "marks of a wrong type", "half a mark", "a text as id"],
)
def test_entry_that_was_damaged_cannot_be_read(value):
    with pytest.raises(BufferNotFound, match="the record of buffer jobs cannot be read"):
        entry_of(Record("jobs", value, 4, FOREVER))


class TestWrite:
    def test_that_is_repeated_after_its_answer_was_lost_meets_itself(self, records, other):
        mine = limited(written(records, ENTRY), 4)
        theirs = written(other, written(records, mine)._replace(marks=((10, 2),)))

        # Whose write is stored, the record says, not the answer
        assert records.write(mine) == (theirs, False)
        assert theirs.buffer == mine.buffer


def test_remembering_a_record_is_read_again_when_it_is_half_a_minute_old(world, records, other):
    # Given a process that knows a record, and another that writes it
    seen = written(records, ENTRY)
    theirs = written(other, limited(seen, 4))
    before = reads(world)
    # Then the first works with what it knows, until that is too old
    world.clock.advance(FRESH_MS - 1)
    assert records.fresh("jobs") == seen
    assert reads(world) == before
    world.clock.advance(1)
    assert records.fresh("jobs") == theirs
    assert reads(world) == before + 1


class TestBury:
    def test_keeps_a_slow_call_from_writing_over_a_new_buffer_of_that_name(self, records, other):
        # Given a call that has read a record, and a buffer that is deleted and defined anew meanwhile
        seen = written(records, ENTRY)
        other.bury(seen)
        buried = other.read("jobs")
        assert buried is not None
        anew = written(other, limited(ENTRY, 9)._replace(version=buried.version))
        # Then neither its write nor a first write that is repeated is stored
        assert records.write(limited(seen, 4)) == (anew, False)
        assert records.write(ENTRY) == (anew, False)

    def test_deletes_a_record_once_and_keeps_its_version_for_a_while(self, world, records):
        seen = written(records, ENTRY)

        records.bury(seen)
        records.bury(seen)

        assert records.read("jobs") == seen._replace(going=True, buried=True, version=seen.version + 1)
        with pytest.raises(BufferNotFound):
            records.fresh("jobs")
        world.clock.advance(GRAVE * 1000)
        assert records.read("jobs") is None
