from __future__ import annotations

from fanin.adapters.memory import Memory
from fanin.app.diagnosis.sent_queues import sent_queues
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import SentRow
from fanin.domain.batch import OpenBatch
from fanin.errors import Throttled

WORK, OTHER = "https://sqs/1/work", "arn:aws:sqs:eu-west-1:1:other"


def test_an_item_that_was_sent_to_one_queue_has_it() -> None:
    # Given a batch of which one item was sent to two queues, and one to none
    memory = Memory()
    ledger = LedgerService(memory.ports())
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 6)
    memory.parts.put_sent(group.batch_id, SentRow(WORK, 0, 5, 0, 0), expires_at=0)
    memory.parts.put_sent(group.batch_id, SentRow(OTHER, 4, 5, 0, 0), expires_at=0)

    found = sent_queues(memory.ports(), [*group, "forged", ""])

    # Then neither of these has one
    assert found == dict.fromkeys(group[0:4], WORK)


def test_notes_that_cannot_be_read_are_done_without() -> None:
    def busy(call: str, _moment: str) -> None:
        if call == "parts.sent":
            raise Throttled("busy")

    memory = Memory(on_call=busy)
    ledger = LedgerService(memory.ports())
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 1)

    assert sent_queues(memory.ports(), [group[0]]) == {}
