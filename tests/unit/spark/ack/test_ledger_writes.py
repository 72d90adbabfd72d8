"""What the tasks write to a ledger, here in memory, and what they say they did."""

import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from fanin.adapters.backoff import Backoff
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import Batch, OnFailure, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.tree import Bits, Tree
from fanin.errors import Throttled
from fanin.spark.ack.ledger_writes import FAILURE, fail, mark, write_task
from fanin.spark.ack.page_merger import MARK_SCHEMA
from fanin.spark.runtime.arrow import page

NAMES = ("batch_id", "complete", "first", "ranged", "duplicates", "late", "words", "writes", "held")


def opened(ledger: LedgerService, items: int) -> tuple[Batch, Group]:
    row = ledger.open(OpenBatch())
    group = ledger.add(row.batch_id, items)
    return ledger.close(row.batch_id), group


def marks_of(batch_id: int, marks: list[Bits]) -> Any:
    return page(MARK_SCHEMA, [(batch_id, *one[:2], one.mask - (one.mask >> 63 << 64), None) for one in marks])


def failures_of(rows: list[tuple[int, int, str | None, str]]) -> Any:
    return page(FAILURE, [(*row, None) for row in rows])


def results(calls: Iterator[list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(NAMES, row, strict=True)) for rows in calls for row in rows]


def test_marks_clear_their_bits_and_the_batch_completes(ledger):
    # Given the cover of all items of a batch, bit 63 among them
    batch, _ = opened(ledger, 5_000)
    cover = list(Tree().cover(0, 5_000, 5_000))

    (told,) = results(mark([marks_of(batch.batch_id, cover)], ledger))

    assert (told["complete"], told["first"] + told["ranged"], told["words"]) == (True, 5_000, len(cover))
    assert ledger.status(batch.batch_id).batch.state is State.COMPLETE


def test_a_store_that_refuses_a_fifth_is_written_to_the_end(monkeypatch):
    # Given a table that refuses a fifth of all writes, of words and of batches
    drawn, waits = random.Random(7), list[float]()

    def refuse(call: str, moment: str) -> None:
        counts = moment == "before" and call in ("words.clear", "batches.touch", "batches.complete")
        if counts and drawn.random() < 0.2:
            raise Throttled(f"{call} is refused")

    monkeypatch.setattr(
        "fanin.spark.ack.ledger_writes.PATIENT", Backoff(tries=400, cap=20, sleep=waits.append)
    )
    memory = Memory(on_call=refuse)
    ledger = LedgerService(memory.ports())
    batch, _ = opened(ledger, 64 * 50)
    words = [Bits(0, number, Tree().full) for number in range(50)]

    told = results(mark([marks_of(batch.batch_id, words)], ledger))
    # Then all of it is written, and no word that was written is written again
    assert told[-1]["complete"]
    assert sum(row["first"] + row["duplicates"] for row in told) == 64 * 50
    assert waits
    assert memory.accesses.refused["words.clear"] <= 2


def test_a_store_that_refuses_slowly_ends_the_task_too(ledger, memory, monkeypatch):
    # Given a connection that waits ten minutes by itself before it reports a refusal
    now = 0.0

    def refuse(call: str, moment: str) -> None:
        nonlocal now
        if (call, moment) == ("words.clear", "before"):
            now += 600
            raise Throttled("refused")

    backoff = Backoff(tries=40, cap=20, sleep=lambda _: None, clock=lambda: now)
    monkeypatch.setattr("fanin.spark.ack.ledger_writes.PATIENT", backoff)
    batch, _ = opened(ledger, 100)
    memory.accesses._on_call = refuse
    # When nothing is ever taken, Then the task does not multiply its patience by the number of tries
    with pytest.raises(Throttled, match="refused"):
        results(mark([marks_of(batch.batch_id, [Bits(0, 0, 1)])], ledger))
    assert now <= 2 * 600


def test_a_rerun_writes_only_what_a_run_that_died_has_left(ledger, memory):
    # Given a run over every second item of 2,000 words, which died at nine tenths
    batch, _ = opened(ledger, 64 * 2_000)
    words = [Bits(0, number, 0x5555555555555555) for number in range(2_000)]
    results(mark([marks_of(batch.batch_id, words[:1_800])], ledger))
    before = memory.accesses.writes["words.clear"]
    # When it runs again
    told = results(mark([marks_of(batch.batch_id, words)], ledger))
    # Then it writes the rest, and reads what is cheaper to read than to write
    assert memory.accesses.writes["words.clear"] - before == 200
    assert sum(row["first"] for row in told) == 200 * 32
    assert sum(row["duplicates"] for row in told) == 1_800 * 32
    assert sum(row["words"] for row in told) == 2_000


def test_a_batch_that_is_gone_does_not_hold_up_the_others(ledger):
    # Given marks of a batch, and of one that was removed
    batch, _ = opened(ledger, 100)
    missing = batch.batch_id + 1
    record = pa.Table.from_batches(
        [marks_of(missing, [Bits(1, 0, 1), Bits(0, 70, 3)]), marks_of(batch.batch_id, [Bits(0, 0, 1)])]
    ).combine_chunks()

    told = {row["batch_id"]: row for row in results(mark(record.to_batches(), ledger))}
    # Then its items are late, those below the bit of level 1 too
    assert (told[missing]["late"], told[missing]["words"]) == (64 + 2, 2)
    assert told[batch.batch_id]["first"] == 1


def test_failures_keep_their_reasons_under_the_ids_they_came_with_or_new_ones(ledger):
    # Given an item named by its id, and one by its ordinal
    batch, group = opened(ledger, 100)
    rows = [(batch.batch_id, 3, group[3], "torn"), (batch.batch_id, 5, None, "too old")]

    (told,) = results(fail([failures_of(rows)], ledger))

    assert (told["first"], told["duplicates"], told["complete"]) == (2, 0, False)
    found = ledger.failures(batch.batch_id).failures
    assert [(one.ordinal, one.reason) for one in found] == [(3, "torn"), (5, "too old")]
    assert found[0].item == group[3]
    assert found[1].item.startswith(f"{batch.batch_id}:")


def test_failures_that_their_batch_holds_are_counted(ledger):
    # Given a batch that holds what fails
    batch_id = ledger.open(OpenBatch(on_failure=OnFailure.HOLD)).batch_id
    group = ledger.add(batch_id, 10)
    rows = [(batch_id, 1, group[1], "x"), (batch_id, 2, None, "y")]
    # When two of its items fail, and fail again
    first, again = (results(fail([failures_of(rows)], ledger))[0] for _ in range(2))
    # Then no row of the input is lost in what the job adds up
    assert [sum(row[name] for name in ("first", "duplicates", "late", "held")) for row in (first, again)] == [
        2,
        2,
    ]
    assert first["held"] == 2


def test_failures_of_a_batch_that_is_gone_are_late(ledger):
    batch, group = opened(ledger, 10)
    rows = [(batch.batch_id + 1, 0, None, "x"), (batch.batch_id, 1, group[1], "x")]

    told = {row["batch_id"]: row for row in results(fail([failures_of(rows)], ledger))}

    assert (told[batch.batch_id + 1]["late"], told[batch.batch_id + 1]["first"]) == (1, 0)
    assert told[batch.batch_id]["first"] == 1


class Stack:
    """A stack whose meter counts three writes a look."""

    def __init__(self, ledger: LedgerService) -> None:
        self.ledger = lambda: ledger
        total = iter(range(0, 99, 3)).__next__
        self.meter = lambda: SimpleNamespace(writes=SimpleNamespace(total=total))


def test_a_task_tells_what_it_did_and_last_what_it_wrote(ledger):
    batch, group = opened(ledger, 100)
    added = list[int]()
    count: Any = SimpleNamespace(add=added.append)
    records = {
        mark: marks_of(batch.batch_id, [Bits(0, 0, 0b110)]),
        fail: failures_of([(batch.batch_id, 7, group[7], "torn")]),
    }
    for write, record in records.items():
        rows = [
            row for page in write_task(write, Stack(ledger), (), count)([record]) for row in page.to_pylist()
        ]
        assert [(row["batch_id"], row["writes"]) for row in rows] == [(batch.batch_id, 0), (None, 3)]
    assert added == [1, 1]


class TestTotals:
    """Values go with the marks, and with the failures, of their items."""

    def test_values_go_with_the_words_of_their_call(self, ledger, monkeypatch):
        # Given room for two words in a call, and a batch that was removed
        monkeypatch.setattr("fanin.spark.ack.ledger_writes._AT_ONCE", 2)
        batch = ledger.open(OpenBatch(totals=("rows",)))
        ledger.add(batch.batch_id, 500)
        marks = [Bits(0, n, 1) for n in range(5)]
        values: list[list[list[int | None]] | None] = [[[n * 64, n]] for n in range(5)]
        gone = with_brought(marks_of(batch.batch_id + 1, marks), values)
        record = with_brought(marks_of(batch.batch_id, marks), values)

        told = results(mark([gone, record], ledger, ("rows",)))

        assert [(row["words"], row["late"]) for row in told] == [
            (2, 2),
            (2, 2),
            (1, 1),
            (2, 0),
            (2, 0),
            (1, 0),
        ]
        assert ledger.status(batch.batch_id, exact=True).batch.totals == {"rows": 10}


def with_brought(record: Any, brought: list[list[list[int | None]] | None]) -> Any:
    column = pa.array(brought, pa.list_(pa.list_(pa.int64())))
    return pa.RecordBatch.from_arrays([*record.columns[:4], column], schema=MARK_SCHEMA)
