"""Records in memory, beyond the contract of all stores: the stream, and counts."""

from __future__ import annotations

from fanin.adapters.memory import FixedClock, Memory

LATER = 2_000_000_000


def test_every_write_is_in_the_stream_with_what_was_there_before() -> None:
    directory = Memory().directory
    first, _ = directory.put("topic/a", "n", {"v": 1}, expires_at=LATER)
    second, _ = directory.put("topic/a", "n", {"v": 2}, expires_at=LATER)
    directory.delete("topic/a", "n")

    assert directory.changes == [
        ("topic/a", None, first),
        ("topic/a", first, second),
        ("topic/a", second, None),
    ]


def test_what_is_refused_is_not_in_the_stream() -> None:
    memory = Memory()
    memory.directory.put("a", "n", {}, expires_at=LATER)
    memory.directory.put("a", "n", {}, expires_at=LATER, if_version=0)
    memory.directory.delete("a", "n", if_version=2)

    assert len(memory.directory.changes) == 1
    assert memory.accesses.refused == {"directory.put": 1}


def test_an_expired_record_is_replaced_and_the_stream_still_shows_it() -> None:
    clock = FixedClock(0)
    directory = Memory(clock=clock).directory
    old, _ = directory.put("a", "n", {"v": 1}, expires_at=1)
    clock.advance(1_000)

    new, wrote = directory.put("a", "n", {"v": 2}, expires_at=LATER, if_version=0)

    assert wrote
    assert directory.changes[-1] == ("a", old, new)


def test_a_caller_who_changes_its_value_does_not_change_the_record() -> None:
    value = {"v": 1}
    directory = Memory().directory
    directory.put("a", "n", value, expires_at=LATER)
    value["v"] = 2

    assert directory.read("a", ["n"])["n"].value == {"v": 1}


def test_each_record_that_is_asked_for_counts_as_read() -> None:
    memory = Memory()
    memory.records.put_all("7", {"a": {}, "b": {}}, expires_at=LATER)

    memory.records.read("7", ["a", "b", "c"])

    assert memory.accesses.writes["records.put"] == 2
    assert memory.accesses.reads["records.read"] == 3
