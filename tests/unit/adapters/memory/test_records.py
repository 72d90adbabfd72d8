"""What the records in memory show beyond the port: the stream of changes, and what has expired."""

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ports.records import Record

NOW = 1_790_000_000
LATER = 1_800_000_000
FIRST = NOW * 1000 + 1
"""Version of a record that was never there before."""


@pytest.fixture
def memory() -> Memory:
    return Memory(clock=FixedClock(NOW * 1000))


def test_changes_tell_the_record_before_and_after(memory: Memory) -> None:
    first, _ = memory.directory.put("fleet", "a", {"n": 1}, expires_at=LATER)
    second, _ = memory.directory.put("fleet", "a", {"n": 2}, expires_at=LATER, if_version=FIRST)
    memory.directory.delete("fleet", "a", if_version=FIRST + 1)

    assert memory.directory.changes == [
        ("fleet", None, first),
        ("fleet", first, second),
        ("fleet", second, None),
    ]


def test_what_was_refused_is_no_change(memory: Memory) -> None:
    first, _ = memory.directory.put("fleet", "a", {}, expires_at=LATER)

    memory.directory.put("fleet", "a", {}, expires_at=LATER, if_version=0)
    memory.directory.delete("fleet", "a", if_version=7)
    memory.directory.delete("fleet", "b")

    assert memory.directory.changes == [("fleet", None, first)]
    assert memory.accesses.refused == {"directory.put": 1, "directory.delete": 2}


def test_a_record_that_has_expired_is_still_the_old_one_of_its_change(memory: Memory) -> None:
    """Time to live deletes late: until then the row is there, as the stream shows."""
    old = Record("a", {}, FIRST, NOW)
    memory.directory.put("fleet", "a", {}, expires_at=NOW)

    new, wrote = memory.directory.put("fleet", "a", {}, expires_at=LATER, if_version=0)

    assert (new, wrote) == (Record("a", {}, FIRST + 1, LATER), True)
    assert memory.directory.changes[-1] == ("fleet", old, new)


def test_a_record_is_kept_as_json_and_apart_from_what_its_writer_holds(memory: Memory) -> None:
    value = {"list": [1], "pair": (1, 2), "keys": {7: "a"}}
    memory.directory.put("fleet", "a", value, expires_at=LATER)
    memory.directory.put_all("fleet", {"b": value}, expires_at=LATER)
    value["list"].append(2)

    records = memory.directory.read("fleet", ["a", "b"])

    kept = {"list": [1], "pair": [1, 2], "keys": {"7": "a"}}
    assert [records[name].value for name in ("a", "b")] == [kept, kept]
