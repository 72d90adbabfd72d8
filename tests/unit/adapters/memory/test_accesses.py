"""Every access to a row: counted, and with an onlooker around it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from time import sleep

import pytest

from fanin.adapters.memory import Accesses, Delayed, LostAnswer, Memory, OnCall
from fanin.adapters.memory.accesses import SENDS
from fanin.app.ports.batches import Activity
from fanin.app.ports.parts import FailureRow
from fanin.app.ports.words import Clear, WordKey
from fanin.domain.access import IdempotencyKey
from fanin.domain.batch import Batch, Mode, State
from fanin.errors import OutcomeUnknown, ServiceUnavailable

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


def clears(*masks: int) -> list[Clear]:
    return [Clear(WordKey(7, 0, number), mask, 1) for number, mask in enumerate(masks)]


def test_an_onlooker_sees_every_row_before_and_after():
    seen: list[tuple[str, str]] = []
    memory = Memory(on_call=lambda call, moment: seen.append((call, moment)))

    memory.words.clear(clears(1, 2))
    memory.words.read([WordKey(7, 0, 0)])
    memory.batches.create(BATCH)

    around = [(call, moment) for call in seen[::2] for moment in ("before", "after")]
    assert [call for call, _ in seen[::2]] == ["words.clear", "words.clear", "words.read", "batches.create"]
    assert seen == [(call, moment) for (call, _), moment in around]


def test_an_onlooker_that_blocks_one_thread_does_not_block_others():
    stopped, go_on = Event(), Event()

    def stop(call: str, _moment: str) -> None:
        if call == "slow":
            stopped.set()
            assert go_on.wait(timeout=60)

    accesses = Accesses(stop)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(accesses.write, "slow", lambda: "slow")
        assert stopped.wait(timeout=60)
        assert accesses.write("fast", lambda: "fast") == "fast"
        go_on.set()
        assert slow.result(timeout=60) == "slow"


def test_accesses_of_threads_follow_each_other():
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


def test_rows_are_counted_by_call():
    memory = Memory()
    memory.batches.create(BATCH)
    memory.batches.read([8, 9])
    memory.batches.allocate_once(BATCH, 4, IdempotencyKey.of("a"), activity=Activity(0, 0))
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


def losing(call: str, answers: int) -> OnCall:
    """Lose the next answers of a call."""
    left = [answers]

    def lose(name: str, moment: str) -> None:
        if (name, moment) == (call, "after") and left[0]:
            left[0] -= 1
            raise LostAnswer

    return lose


def test_a_write_whose_answer_was_lost_is_sent_again_and_the_second_answer_counts():
    memory = Memory(on_call=losing("words.clear", 1))

    (cleared,) = memory.words.clear(clears(0b11))

    assert (cleared.first, cleared.word) == (0, FULL ^ 0b11)
    assert memory.accesses.writes == {"words.clear": 2}


def test_a_write_is_given_up_after_as_many_lost_answers_as_the_sdk_bears():
    memory = Memory(on_call=losing("words.clear", SENDS))

    (outcome,) = memory.words.clear(clears(1))

    assert isinstance(outcome, ServiceUnavailable)
    assert "words.clear" in str(outcome)
    assert memory.words.read([WordKey(7, 0, 0)]) == {WordKey(7, 0, 0): FULL ^ 1}
    assert memory.accesses.writes == {"words.clear": SENDS}


@pytest.mark.parametrize("call", ["allocate", "allocate_counted", "count"])
def test_a_write_that_adds_to_a_number_is_sent_only_once(call):
    # Given a batch, and a store that loses the answer of one kind of write
    memory = Memory(on_call=losing(f"batches.{call}", 1))
    memory.batches.create(replace(BATCH, limit=5, mode=Mode.ESTIMATED))
    batches, activity = memory.batches, Activity(0, 0)
    calls = {
        "allocate": lambda: batches.allocate(8, 4, activity=activity, room=1),
        "allocate_counted": lambda: batches.allocate_counted(8, 4, items=0, pending=0, activity=activity),
        "count": lambda: batches.count(8, 4, activity=activity),
    }
    # When it is made, Then its caller cannot know, and it took effect once
    with pytest.raises(OutcomeUnknown):
        calls[call]()
    assert memory.accesses.writes[f"batches.{call}"] == 1
    row = memory.batches.read([8])[8]
    assert row.acked + row.items == 4


@pytest.mark.parametrize(
    ("call", "moment", "error"),
    [
        ("batches.count", "after", OutcomeUnknown),
        ("batches.count", "before", ServiceUnavailable),
        ("batches.close", "after", ServiceUnavailable),
    ],
)
def test_an_outage_after_a_write_that_is_sent_once_leaves_its_caller_in_doubt(call, moment, error):
    # Given a store that is cut off at one moment of a write
    def cut(name: str, at: str) -> None:
        if (name, at) == (call, moment):
            raise ServiceUnavailable("no answer")

    memory = Memory(on_call=cut)
    memory.batches.create(replace(BATCH, mode=Mode.ESTIMATED))

    calls = {
        "batches.count": lambda: memory.batches.count(8, 4, activity=Activity(0, 0)),
        "batches.close": lambda: memory.batches.close(8, now=1),
    }
    # When it is made, Then its caller hears what a caller of DynamoDB would
    with pytest.raises(error):
        calls[call]()


def test_a_delayed_request_takes_effect_when_it_arrives_and_nobody_gets_its_answer():
    # Given a close that is late, and another that was sent instead
    late = [True]

    def delay(call: str, moment: str) -> None:
        if late and (call, moment) == ("batches.close", "before"):
            late.clear()
            raise Delayed

    memory = Memory(on_call=delay)
    memory.batches.create(BATCH)
    row, moved = memory.batches.close(8, now=2)
    assert (row and row.closed_at, moved, memory.accesses.late) == (2, True, 1)
    # When it arrives, Then it meets the row as it is by now
    memory.accesses.arrive()
    assert memory.accesses.late == 0
    assert memory.accesses.refused == {"batches.close": 1}
