"""The records of buffers: read fresh or remembered, written over the version they were made from."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.buffers.records import NAMESPACE, BufferRecords, Entry, check_name, entry_of
from fanin.app.fresh import FRESH_MS
from fanin.app.ports.records import FOREVER
from fanin.domain.buffer import Buffer
from fanin.errors import BufferNotFound, InvalidRequest

BUFFER = Buffer("jobs", 3, "https://sqs/jobs", owned=True, batch_id=7)
ENTRY = Entry(BUFFER, renew_at=9, retention=60, marks=((1, 2), (3, 4)))


class World:
    def __init__(self) -> None:
        self.clock = FixedClock()
        self.memory = Memory(clock=self.clock)
        self.records = self.fresh()

    def fresh(self) -> BufferRecords:
        """A process that starts now."""
        return BufferRecords(self.memory.ports())

    def reads(self) -> int:
        return self.memory.accesses.reads.total()


@pytest.fixture
def world() -> World:
    world = World()
    assert world.records.write(ENTRY) == ENTRY._replace(version=1)
    return world


def test_a_record_reads_back_and_never_expires(world: World) -> None:
    record = world.memory.directory.read(NAMESPACE, ["jobs"])["jobs"]

    assert entry_of(record) == ENTRY._replace(version=1)
    assert record.expires_at == FOREVER


def test_a_remembered_record_is_not_read_again_for_half_a_minute(world: World) -> None:
    reads = world.reads()
    world.clock.advance(FRESH_MS - 1)
    world.records.fresh("jobs")
    assert world.reads() == reads

    world.clock.advance(1)
    assert world.records.fresh("jobs") == ENTRY._replace(version=1)
    assert world.reads() == reads + 1


def test_a_refreshed_record_is_what_another_process_wrote(world: World) -> None:
    other = world.fresh()
    other.write(other.refresh("jobs")._replace(renew_at=10))

    assert world.records.fresh("jobs").renew_at == 9
    assert world.records.refresh("jobs").renew_at == 10
    assert world.records.fresh("jobs").renew_at == 10


def test_of_two_who_write_over_the_same_version_one_is_told(world: World) -> None:
    one, two = world.records.refresh("jobs"), world.fresh().refresh("jobs")

    assert world.records.write(one._replace(renew_at=10)) == one._replace(renew_at=10, version=2)
    other = world.fresh()
    assert other.write(two._replace(renew_at=11)) is None

    # What was refused is forgotten, so the next look reads
    assert other.fresh("jobs").renew_at == 10


def test_a_buffer_that_is_going_is_found_by_read_alone(world: World) -> None:
    world.records.write(world.records.refresh("jobs")._replace(going=True))

    entry = world.fresh().read("jobs")
    assert entry is not None
    assert entry.going
    with pytest.raises(BufferNotFound, match="there is no buffer jobs; define it first"):
        world.fresh().refresh("jobs")


def test_a_deleted_record_is_gone_unless_it_changed_since(world: World) -> None:
    seen = world.records.refresh("jobs")
    other = world.fresh()
    other.write(seen._replace(renew_at=10))

    world.records.delete(seen)
    assert world.records.fresh("jobs").renew_at == 10
    world.records.delete(world.records.refresh("jobs"))
    with pytest.raises(BufferNotFound):
        world.records.fresh("jobs")


@pytest.mark.parametrize("name", ["a", "A-1_b", "x" * 48])
def test_a_name_fits_in_the_name_of_a_queue(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", "a b", "a.b", "-a", "x" * 49, "ä"])
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="use 1 to 48 letters, digits, - and _"):
        check_name(name)
