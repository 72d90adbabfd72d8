"""Accesses to the stores in memory: counted, atomic, and watched."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from fanin.adapters.memory import Accesses, Memory
from fanin.app.ports.batches import Activity, FailureRow
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.batch import Batch, State

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


def test_no_other_thread_comes_between_the_steps_of_an_access() -> None:
    # Given an access of two steps, between which another thread may run
    accesses, value = Accesses(), [0]

    def add() -> None:
        seen = value[0]
        sleep(0)
        value[0] = seen + 1

    # When many threads make it
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: accesses.write("row.add", add), range(500)))

    # Then none is lost
    assert value == [500]
    assert accesses.writes == {"row.add": 500}


def test_an_access_gives_its_answer_and_what_it_raises() -> None:
    accesses = Accesses()

    def fail() -> None:
        raise Crash

    assert accesses.read("row.read", lambda: 7) == 7
    with pytest.raises(Crash):
        accesses.write("row.write", fail, rows=2)
    assert accesses.read("row.read", lambda: 8) == 8
    assert (accesses.reads["row.read"], accesses.writes["row.write"]) == (2, 2)
