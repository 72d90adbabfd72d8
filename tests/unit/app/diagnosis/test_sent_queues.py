from __future__ import annotations

from fanin.adapters.memory import Memory
from fanin.app.diagnosis.sent_queues import sent_queues
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import SentRow
from fanin.domain.batch import OpenBatch
from fanin.errors import Throttled

WORK, OTHER = "https://sqs/1/work", "arn:aws:sqs:eu-west-1:1:other"


def test_an_item_that_was_sent_to_one_queue_has_it() -> None:
    # Given a batch of which three items were sent to one queue, one to another, one to both, and one to none
    memory = Memory()
    ledger = LedgerService(memory.ports())
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 6)
    for row in (SentRow(WORK, 0, 3, 0, 0), SentRow(OTHER, 3, 5, 0, 0), SentRow(WORK, 4, 5, 0, 0)):
        memory.parts.put_sent(group.batch_id, row, expires_at=0)

    found = sent_queues(memory.ports(), [*group, "forged", ""])

    # Then the last two have none
    assert found == {**dict.fromkeys(group[0:3], WORK), group[3]: OTHER}


def test_where_there_are_more_notes_than_are_read_no_item_has_a_queue() -> None:
    """A note that was not read may name another queue."""
    memory = Memory()
    ledger = LedgerService(memory.ports())
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 100)
    for n in range(100):
        memory.parts.put_sent(group.batch_id, SentRow(WORK, n, n + 1, 0, 0), expires_at=0)

    # Item 2 has few notes before it, and the last has many
    assert sent_queues(memory.ports(), [group[2]]) == {group[2]: WORK}
    assert sent_queues(memory.ports(), [group[2], group[99]]) == {}


def test_notes_that_cannot_be_read_are_done_without() -> None:
    def busy(call: str, _moment: str) -> None:
        if call == "parts.sent":
            raise Throttled("busy")

    memory = Memory(on_call=busy)
    ledger = LedgerService(memory.ports())
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 1)

    assert sent_queues(memory.ports(), [group[0]]) == {}
