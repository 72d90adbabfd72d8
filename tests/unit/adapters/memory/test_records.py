"""Records in memory, beyond what every store of records promises."""

from __future__ import annotations

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ports.records import Record

LATER = 1_900_000_000


def test_changes_are_kept_in_order_with_what_was_there_before() -> None:
    directory = Memory().directory
    first, _ = directory.put("topic/cars", "a", {"n": 1}, expires_at=LATER)
    second, _ = directory.put("topic/cars", "a", {"n": 2}, expires_at=LATER)
    directory.put("topic/cars", "a", {"n": 3}, expires_at=LATER, if_version=1)
    directory.delete("topic/cars", "a")
    directory.delete("topic/cars", "a")
    assert directory.changes == [
        ("topic/cars", None, first),
        ("topic/cars", first, second),
        ("topic/cars", second, None),
    ]


def test_a_record_past_its_time_is_still_what_a_new_one_replaces() -> None:
    clock = FixedClock(0)
    directory = Memory(clock=clock).directory
    old, _ = directory.put("routes", "a", {}, expires_at=10)
    clock.advance(10_000)
    assert directory.read("routes", ["a"]) == {}
    new, wrote = directory.put("routes", "a", {}, expires_at=LATER, if_version=0)
    assert (new, wrote) == (Record("a", {}, 2, LATER), True)
    assert directory.changes[-1] == ("routes", old, new)
