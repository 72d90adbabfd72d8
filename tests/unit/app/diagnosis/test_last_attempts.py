from __future__ import annotations

from fanin.adapters.memory import Memory
from fanin.app.diagnosis.last_attempts import last_attempts
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import RetryRow
from fanin.domain.batch import OpenBatch
from fanin.errors import Throttled


def test_attempts_are_those_of_the_notes_and_bad_ids_have_none() -> None:
    memory = Memory()
    ledger = LedgerService(memory.ports())
    first, second = (ledger.add(ledger.open(OpenBatch()).batch_id, 3) for _ in range(2))
    for group in (first, second):
        row = RetryRow(1, 2, f"error of {group.batch_id}", "work", 0)
        memory.parts.put_retries(group.batch_id, [row], expires_at=0)

    found = last_attempts(memory.ports(), [first[0], first[1], second[1], "forged", ""])

    assert {item: (row.error, row.queue) for item, row in found.items()} == {
        first[1]: (f"error of {first.batch_id}", "work"),
        second[1]: (f"error of {second.batch_id}", "work"),
    }


def test_notes_that_cannot_be_read_are_done_without() -> None:
    def busy(call: str, _moment: str) -> None:
        if call == "parts.retries":
            raise Throttled("busy")

    memory = Memory(on_call=busy)
    ledger = LedgerService(memory.ports())
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 1)

    assert last_attempts(memory.ports(), [group[0]]) == {}


def test_the_notes_of_one_batch_that_cannot_be_read_keep_those_of_others() -> None:
    busy: list[str] = []

    def first_is_busy(call: str, moment: str) -> None:
        if (call, moment) == ("parts.retries", "before") and not busy:
            busy.append(call)
            raise Throttled("busy")

    memory = Memory(on_call=first_is_busy)
    ledger = LedgerService(memory.ports())
    groups = [ledger.add(ledger.open(OpenBatch()).batch_id, 1) for _ in range(2)]
    for group in groups:
        row = RetryRow(0, 2, "no such customer", "work", 0)
        memory.parts.put_retries(group.batch_id, [row], expires_at=0)

    found = last_attempts(memory.ports(), [group[0] for group in groups])

    assert {item: row.error for item, row in found.items()} == {groups[1][0]: "no such customer"}
