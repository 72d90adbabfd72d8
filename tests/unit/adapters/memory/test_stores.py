"""What the stores in memory show beyond their ports; clock, randomness, alarms, the bus; all put together."""

from dataclasses import fields, replace

import pytest

from fanin.adapters.memory import FixedClock, Memory, SeededRandom
from fanin.app.ports import Defaults, Ports
from fanin.app.ports.batches import Activity
from fanin.app.ports.events import Event
from fanin.app.ports.records import Record
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import LIVE, Batch, State
from fanin.domain.tree import Tree
from fanin.errors import InvalidRequest

BATCH = Batch(
    batch_id=8,
    salt=bytes(16),
    created_at=0,
    touched_at=0,
    expires_at=1_800_000_000,
    open_idle_ttl=7200,
    closed_idle_ttl=7200,
)


def test_changes_of_batches_are_kept_in_order():
    memory = Memory()
    memory.batches.create(BATCH)
    closed, _ = memory.batches.close(8, now=1)
    memory.batches.close(8, now=2)
    ended, _ = memory.batches.end(8, State.COMPLETE, now=3, sources=LIVE)
    assert ended
    memory.batches.expire(8, now=4_000)

    gone = replace(ended, expires_at=4)
    assert memory.batches.changes == [(None, BATCH), (BATCH, closed), (closed, ended), (ended, gone)]


def batch(batch_id: int, **values: object) -> Batch:
    return replace(BATCH, batch_id=batch_id, **values)


def test_a_refused_write_is_counted_and_is_no_change():
    memory = Memory()
    memory.batches.create(BATCH)
    memory.batches.create(replace(BATCH, salt=b"1" * 16))
    memory.batches.expire(8, now=0)
    memory.batches.rebound(8, items=7, pending=0)
    memory.batches.allocate_once(replace(BATCH, items=7), 4, IdempotencyKey.of("a"), activity=Activity(0, 0))

    assert memory.batches.changes == [(None, BATCH)]
    assert memory.accesses.refused == {
        "batches.create": 1,
        "batches.expire": 1,
        "batches.rebound": 1,
        "batches.allocate_once": 1,
    }


def test_the_key_of_the_index_is_what_activity_made_it_not_what_the_row_would_say():
    # Given a batch whose activity set another time than its row computes
    memory = Memory()
    memory.batches.create(BATCH)
    assert memory.batches.next_due() == BATCH.due_at

    memory.batches.close(8, now=1, activity=Activity(0, 50))
    assert memory.batches.next_due() == 50
    # When it moves without activity, then the time stays
    memory.batches.rebound(8, items=0, pending=3)
    assert memory.batches.next_due() == 50


def test_an_ended_batch_is_never_due():
    memory = Memory()
    assert memory.batches.next_due() is None
    memory.batches.create(batch(1, deadline=1_000))
    memory.batches.create(batch(2, deadline=9_000))
    assert memory.batches.next_due() == 61_000

    memory.batches.end(1, State.CANCELLED, now=3, sources=LIVE)

    assert memory.batches.next_due() == 69_000


def test_a_page_costs_one_query_and_the_rows_it_shows():
    memory = Memory()
    for batch_id in range(5):
        memory.batches.create(batch(batch_id))

    page = memory.batches.page(State.OPEN, limit=2)

    assert [row.batch_id for row in page.batches] == [0, 1]
    assert memory.accesses.reads == {"batches.page": 1, "batches.read": 2}


def clears(*masks: int) -> list[Clear]:
    return [Clear(WordKey(7, 0, number), mask, 1) for number, mask in enumerate(masks)]


def test_a_duplicate_is_a_refused_write_and_the_rest_another():
    memory = Memory()
    memory.words.clear(clears(0b0011))

    memory.words.clear(clears(0b0001))
    assert (memory.accesses.writes["words.clear"], memory.accesses.refused["words.clear"]) == (2, 1)

    memory.words.clear(clears(0b0110))
    assert (memory.accesses.writes["words.clear"], memory.accesses.refused["words.clear"]) == (4, 2)


def test_finished_words_are_kept_in_order():
    memory = Memory(tree=Tree(width=2))

    memory.words.clear(clears(0b11, 0b01))
    memory.words.clear(clears(0b11, 0b10))

    assert memory.words.finished == [WordKey(7, 0, 0), WordKey(7, 0, 1)]


NOW = 1_790_000_000
LATER = 1_800_000_000
FIRST = NOW * 1000 + 1
"""Version of a record that was never there before."""


@pytest.fixture
def memory() -> Memory:
    return Memory(clock=FixedClock(NOW * 1000))


def test_changes_tell_the_record_before_and_after(memory):
    first, _ = memory.directory.put("fleet", "a", {"n": 1}, expires_at=LATER)
    second, _ = memory.directory.put("fleet", "a", {"n": 2}, expires_at=LATER, if_version=FIRST)
    memory.directory.delete("fleet", "a", if_version=FIRST + 1)

    assert memory.directory.changes == [
        ("fleet", None, first),
        ("fleet", first, second),
        ("fleet", second, None),
    ]


def test_what_was_refused_is_no_change(memory):
    first, _ = memory.directory.put("fleet", "a", {}, expires_at=LATER)

    memory.directory.put("fleet", "a", {}, expires_at=LATER, if_version=0)
    memory.directory.delete("fleet", "a", if_version=7)
    memory.directory.delete("fleet", "b")

    assert memory.directory.changes == [("fleet", None, first)]
    assert memory.accesses.refused == {"directory.put": 1, "directory.delete": 2}


def test_a_record_that_has_expired_is_still_the_old_one_of_its_change(memory):
    """Time to live deletes late: until then the row is there, as the stream shows."""
    old = Record("a", {}, FIRST, NOW)
    memory.directory.put("fleet", "a", {}, expires_at=NOW)

    new, wrote = memory.directory.put("fleet", "a", {}, expires_at=LATER, if_version=0)

    assert (new, wrote) == (Record("a", {}, FIRST + 1, LATER), True)
    assert memory.directory.changes[-1] == ("fleet", old, new)


def test_a_record_is_kept_as_json_and_apart_from_what_its_writer_holds(memory):
    value = {"list": [1], "pair": (1, 2), "keys": {7: "a"}}
    memory.directory.put("fleet", "a", value, expires_at=LATER)
    memory.directory.put_all("fleet", {"b": value}, expires_at=LATER)
    value["list"].append(2)

    records = memory.directory.read("fleet", ["a", "b"])

    kept = {"list": [1], "pair": [1, 2], "keys": {"7": "a"}}
    assert [records[name].value for name in ("a", "b")] == [kept, kept]


def test_alarms_ring_once_when_due():
    memory = Memory()
    memory.timers.set(3, 300)
    memory.timers.set(1, 100)
    memory.timers.set(2, 999)
    memory.timers.set(2, 200)
    memory.timers.set(4, 100)
    memory.timers.clear(4)
    memory.timers.clear(5)

    assert memory.timers.ring(99) == []
    assert memory.timers.ring(200) == [1, 2]
    assert memory.timers.ring(1000) == [3]


def test_randomness_is_that_of_its_seed():
    one, same, other = SeededRandom(1), SeededRandom(1), SeededRandom(2)

    draws = [(random.bits(12), random.bytes(16)) for random in (one, same, other)]

    assert draws[0] == draws[1] != draws[2]
    assert 0 <= draws[0][0] < 2**12
    assert len(draws[0][1]) == 16


def test_every_event_gets_an_id_of_the_bus():
    memory = Memory()
    event = Event("8.complete", "Batch Completed", {}, 5)

    assert len({memory.events.publish(event) for _ in range(3)}) == 3


def test_the_ports_are_those_of_this_world():
    memory = Memory(tree=Tree(width=2))
    ports = memory.ports(Defaults(lifetime=77))

    ports.words.clear([Clear(WordKey(7, 0, 0), 0b11, 1)])

    assert memory.words.finished == [WordKey(7, 0, 0)]
    assert (ports.defaults.lifetime, ports.tree) == (77, memory.tree)
    shared = {field.name for field in fields(Ports)} - {"defaults"}
    assert all(getattr(ports, name) is getattr(memory, name) for name in shared)


@pytest.mark.parametrize(
    "pattern", [{}, {"source": "shop"}, {"source": []}, {"detail": {"n": [{"soundex": "x"}]}}]
)
def test_the_memory_refuses_what_it_does_not_know(pattern):
    with pytest.raises(InvalidRequest):
        Memory().rules.put("orders", pattern)


def test_a_refused_pattern_leaves_the_rule_that_is_there():
    memory = Memory()
    memory.rules.put("orders", {"source": ["shop"]})

    with pytest.raises(InvalidRequest):
        memory.rules.put("orders", {"source": []})

    assert memory.rules.patterns == {"orders": {"source": ["shop"]}}
