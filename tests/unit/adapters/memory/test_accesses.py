"""Every access to a row: counted, and with an onlooker around it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
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


def test_an_onlooker_that_blocks_one_thread_does_not_block_others() -> None:
    stopped, go_on = Event(), Event()

    def stop(call: str, _moment: str) -> None:
        if call == "slow":
            stopped.set()
            assert go_on.wait(timeout=10)

    accesses = Accesses(stop)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(accesses.write, "slow", lambda: "slow")
        assert stopped.wait(timeout=10)
        assert accesses.write("fast", lambda: "fast") == "fast"
        go_on.set()
        assert slow.result(timeout=10) == "slow"


def test_an_access_that_fails_is_counted_and_leaves_the_stores_usable() -> None:
    accesses = Accesses()

    def fail() -> None:
        raise Crash

    with pytest.raises(Crash):
        accesses.read("rows.read", fail)

    assert accesses.read("rows.read", lambda: 7) == 7
    assert accesses.reads == {"rows.read": 2}


def test_accesses_of_threads_follow_each_other() -> None:
    accesses = Accesses(lambda _call, _moment: sleep(0))
    row = [0]

    def increment() -> None:
        seen = row[0]
        sleep(0)  # lets another thread in, if one may come in
        row[0] = seen + 1

    with ThreadPoolExecutor(4) as pool:
        for _ in range(400):
            pool.submit(accesses.write, "rows.write", increment)

    assert (row, accesses.writes) == ([400], {"rows.write": 400})


def test_what_is_handed_over_is_counted_apart() -> None:
    accesses = Accesses()

    assert accesses.send("events.publish", lambda: "id") == "id"

    assert (accesses.sends, accesses.reads, accesses.writes) == ({"events.publish": 1}, {}, {})


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
