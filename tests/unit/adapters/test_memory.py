"""What the stores in memory show beyond the ports: every access to a row, and the streams of changes."""

import pytest

from fanin.adapters.memory import FixedClock, Memory, SeededRandom
from fanin.app.ports.batches import Activity, FailureRow
from fanin.app.ports.events import Event
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.batch import LIVE, Batch, State
from fanin.domain.tree import Tree

FULL = 2**64 - 1
BATCH = Batch(
    batch_id=8,
    salt=bytes(16),
    created_at=0,
    touched_at=0,
    expires_at=1_800_000_000,
    open_idle_ttl=7200,
    closed_idle_ttl=7200,
)


class Crash(Exception):
    pass


def clears(*masks: int) -> list[Clear]:
    return [Clear(WordKey(7, 0, number), mask, 1) for number, mask in enumerate(masks)]


def test_an_onlooker_sees_every_row_before_and_after() -> None:
    seen: list[tuple[str, str]] = []
    memory = Memory(on_call=lambda call, moment: seen.append((call, moment)))

    memory.words.clear(clears(1, 2))
    memory.words.read([WordKey(7, 0, 0)])
    memory.batches.create(BATCH)

    around = [(call, moment) for call in seen[::2] for moment in ("before", "after")]
    assert [call for call, _ in seen[::2]] == ["words.clear", "words.clear", "words.read", "batches.create"]
    assert seen == [(call, moment) for (call, _), moment in around]


@pytest.mark.parametrize(("moment", "written"), [("before", {}), ("after", {WordKey(7, 0, 0): FULL ^ 1})])
def test_a_crash_falls_before_or_after_the_write(moment: str, written: dict[WordKey, int]) -> None:
    armed = [True]

    def crash(call: str, when: str) -> None:
        if armed and call == "words.clear" and when == moment:
            armed.clear()
            raise Crash

    memory = Memory(on_call=crash)

    with pytest.raises(Crash):
        memory.words.clear(clears(1, 2))
    assert memory.words.read([WordKey(7, 0, 0), WordKey(7, 0, 1)]) == written


def test_an_onlooker_may_use_the_stores_itself() -> None:
    def look(call: str, moment: str) -> None:
        if call == "words.clear" and moment == "before" and not memory.accesses.writes["batches.create"]:
            memory.batches.create(BATCH)

    memory = Memory(on_call=look)

    memory.words.clear(clears(1))

    assert memory.batches.read([8]) == {8: BATCH}


def test_a_duplicate_is_a_refused_write_and_the_rest_another() -> None:
    memory = Memory()
    memory.words.clear(clears(0b0011))

    memory.words.clear(clears(0b0001))
    assert (memory.accesses.writes["words.clear"], memory.accesses.refused["words.clear"]) == (2, 1)

    memory.words.clear(clears(0b0110))
    assert (memory.accesses.writes["words.clear"], memory.accesses.refused["words.clear"]) == (4, 2)


def test_rows_are_counted_by_call() -> None:
    memory = Memory()
    memory.batches.create(BATCH)
    memory.batches.read([8, 9])
    memory.batches.allocate_once(BATCH, 4, "a", activity=Activity(0, 0))
    memory.batches.page(State.OPEN)
    memory.words.read([WordKey(7, 0, 0), WordKey(7, 0, 0)])
    memory.parts.put_failures(8, [FailureRow(1, "i", "r"), FailureRow(1, "i", "s")], expires_at=1)
    memory.batches.close(9, now=0)

    assert memory.accesses.reads == {"batches.read": 3, "batches.page": 1, "words.read": 1}
    assert memory.accesses.writes == {
        "batches.create": 1,
        "batches.allocate_once": 2,
        "parts.put_failures": 1,
        "batches.close": 1,
    }
    assert memory.accesses.refused == {"batches.close": 1}


def test_changes_of_batches_are_kept_in_order() -> None:
    memory = Memory()
    memory.batches.create(BATCH)
    closed, _ = memory.batches.close(8, now=1)
    memory.batches.close(8, now=2)
    ended, _ = memory.batches.end(8, State.COMPLETE, now=3, sources=LIVE)

    assert memory.batches.changes == [(None, BATCH), (BATCH, closed), (closed, ended)]


def test_finished_words_are_kept_in_order() -> None:
    memory = Memory(tree=Tree(width=2))

    memory.words.clear(clears(0b11, 0b01))
    memory.words.clear(clears(0b11, 0b10))

    assert memory.words.finished == [WordKey(7, 0, 0), WordKey(7, 0, 1)]


def test_alarms_ring_once_when_due() -> None:
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


def test_the_bus_keeps_what_it_was_given() -> None:
    memory = Memory()
    event = Event("8.complete", "Batch Completed", {"a": 1}, 5)

    memory.events.publish(event)
    memory.events.publish(event)

    assert memory.events.published == [event, event]


def test_time_stands_until_told() -> None:
    clock = FixedClock(5)
    ports = Memory(clock=clock).ports()

    assert (ports.clock.now(), ports.clock.now()) == (5, 5)
    clock.advance(7)
    assert ports.clock.now() == 12


def test_randomness_is_that_of_its_seed() -> None:
    one, same, other = SeededRandom(1), SeededRandom(1), SeededRandom(2)

    draws = [(random.bits(12), random.bytes(16)) for random in (one, same, other)]

    assert draws[0] == draws[1] != draws[2]
    assert 0 <= draws[0][0] < 2**12
    assert len(draws[0][1]) == 16
