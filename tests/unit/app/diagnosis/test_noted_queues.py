from __future__ import annotations

from fanin.adapters.memory import Memory
from fanin.app.diagnosis.noted_queues import noted_queues
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import RetryRow, SentRow
from fanin.domain.batch import OpenBatch
from fanin.errors import Throttled

WORK, OTHER = "https://sqs/1/work", "arn:aws:sqs:eu-west-1:1:other"


def test_the_queue_of_the_last_attempt_comes_before_the_one_that_was_sent_to() -> None:
    # Given a batch that was sent to a queue, with an attempt at one item elsewhere, and one at a bare name
    memory = Memory()
    ledger = LedgerService(memory.ports())
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 6)
    memory.parts.put_sent(group.batch_id, SentRow(WORK, 0, 5, 0, 0), expires_at=0)
    memory.parts.put_sent(group.batch_id, SentRow(OTHER, 4, 5, 0, 0), expires_at=0)
    tried = [RetryRow(1, 2, "no", OTHER, 0), RetryRow(2, 2, "no", "work", 0)]
    memory.parts.put_retries(group.batch_id, tried, expires_at=0)

    found = noted_queues(memory.ports(), [*group, "forged", ""])

    # Then neither what was sent to two queues nor what was never sent has one
    assert found == {group[0]: WORK, group[1]: OTHER, group[2]: WORK, group[3]: WORK}


def test_notes_that_cannot_be_read_are_done_without() -> None:
    def busy(call: str, _moment: str) -> None:
        if call == "parts.sent":
            raise Throttled("busy")

    memory = Memory(on_call=busy)
    ledger = LedgerService(memory.ports())
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 1)

    assert noted_queues(memory.ports(), [group[0]]) == {}
