"""The ack queue and the dead-letter queues."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.ids import Group
from fanin.entry import queues
from fanin.errors import Throttled


def message(body: Any, name: str) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    return {"messageId": name, "body": text, "eventSource": "aws:sqs"}


def event(*bodies: Any) -> dict[str, Any]:
    return {"Records": [message(body, f"m{index}") for index, body in enumerate(bodies)]}


def failed(answer: dict[str, Any]) -> list[str]:
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def refuse(message: Any) -> None:
    """Parking fails, so that the message is reported."""
    raise Throttled("the queue is busy")


def acknowledged(event: Any, ledger: Any, park: Any = refuse, postpone: Any = lambda _: None) -> Any:
    return queues.acknowledge(event, ledger, park, postpone)


def dead_lettered(event: Any, ledger: Any, park: Any, postpone: Any = lambda _: None) -> Any:
    return queues.fail_dead_letters(event, ledger, park, postpone)


@pytest.fixture
def batch(ledger: LedgerService) -> Batch:
    return ledger.open(OpenBatch())


@pytest.fixture
def group(ledger: LedgerService, batch: Batch) -> Group:
    return ledger.add(batch.batch_id, 64)


def test_a_window_of_messages_is_one_write_for_each_word(
    ledger: LedgerService, memory: Memory, group: Group
) -> None:
    # Given 64 messages of one item each, all of one word
    before = memory.accesses.writes["words.clear"]

    # When they are acknowledged in one window
    answer = acknowledged(event(*({"items": [item]} for item in group)), ledger)

    # Then the word was written once, and its parent once
    assert failed(answer) == []
    assert ledger.status(group.batch_id, exact=True).done_min == 64
    assert memory.accesses.writes["words.clear"] - before <= 2


def test_a_message_may_carry_everything(ledger: LedgerService, group: Group) -> None:
    counted = ledger.open(OpenBatch(mode="estimated")).batch_id
    ledger.add(counted, 5)
    body = {
        "items": [group[0]],
        "ranges": [{"group": group.prefix, "from": 10, "to": 20}],
        "counts": [{"batch_id": counted, "n": 3}],
        "failures": [{"item": group[1], "reason": "bad row"}],
    }
    assert failed(acknowledged(event(body), ledger)) == []
    assert ledger.status(group.batch_id, exact=True).done_min == 12
    assert ledger.status(counted).batch.acked == 3
    assert [failure.reason for failure in ledger.failures(group.batch_id).failures] == ["bad row"]


@pytest.mark.parametrize(
    "poison",
    [
        "nonsense",
        {"itemz": []},
        {"items": [7]},
        {"items": ["nonsense"]},
        {"items": ["5:00000000-0000-8010-8000-000000000000:0"]},
        {"failures": [{"item": "nonsense"}]},
        {"counts": [{"batch_id": 5, "n": 1}]},
    ],
)
def test_a_poison_message_spoils_no_other(
    ledger: LedgerService, memory: Memory, group: Group, poison: Any
) -> None:
    # Given 32 good messages with a poisonous one in their midst
    bodies: list[Any] = [{"items": [item]} for item in group[:32]]
    bodies.insert(13, poison)

    # When the window is handled
    answer = acknowledged(event(*bodies), ledger)

    # Then only the poison comes back
    assert failed(answer) == ["m13"]
    assert ledger.status(group.batch_id, exact=True).done_min == 32


def test_a_throttled_window_comes_back_whole(ledger: LedgerService, group: Group, monkeypatch) -> None:
    calls = []

    def throttled(*_args, **_kwargs):
        calls.append(1)
        raise Throttled("slow down")

    monkeypatch.setattr(ledger, "ack", throttled)
    answer = acknowledged(event({"items": [group[0]]}, "nonsense", {"items": [group[1]]}), ledger)
    assert sorted(failed(answer)) == ["m0", "m1", "m2"]
    assert len(calls) == 1


def test_a_defect_that_one_message_brings_out_spares_the_others(
    ledger: LedgerService, group: Group, monkeypatch
) -> None:
    ack = ledger.ack

    def defective(items, **kwargs):
        if group[3] in items:
            raise ZeroDivisionError
        return ack(items, **kwargs)

    monkeypatch.setattr(ledger, "ack", defective)
    answer = acknowledged(event(*({"items": [item]} for item in group[:8])), ledger)
    assert failed(answer) == ["m3"]
    assert ledger.status(group.batch_id, exact=True).done_min == 7


def test_a_window_with_more_ids_than_a_call_may_carry_is_cut(ledger: LedgerService, batch: Batch) -> None:
    group = ledger.add(batch.batch_id, 25_000)
    bodies = [{"items": group[start : start + 4_000]} for start in range(0, 25_000, 4_000)]
    assert failed(acknowledged(event(*bodies), ledger)) == []
    assert ledger.status(batch.batch_id, exact=True).done_min == 25_000


def test_the_counts_of_a_message_wait_for_its_failures(
    ledger: LedgerService, group: Group, monkeypatch
) -> None:
    # Given a message that counts and fails, and failures cannot be written now
    counted = ledger.open(OpenBatch(mode="estimated")).batch_id
    ledger.add(counted, 5)
    body = {"counts": [{"batch_id": counted, "n": 1}], "failures": [{"item": group[0]}]}
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "fail", lambda _failures: (_ for _ in ()).throw(Throttled("slow down")))
        assert failed(acknowledged(event(body), ledger)) == ["m0"]

    # When it comes again
    assert failed(acknowledged(event(body), ledger)) == []

    # Then it was counted once
    assert ledger.status(counted).batch.acked == 1


def letter(item: str | None, name: str, *, source: bool = True) -> dict[str, Any]:
    attributes = {"ApproximateReceiveCount": "4"}
    if source:
        attributes["DeadLetterQueueSourceArn"] = "arn:aws:sqs:eu-west-1:000000000000:work"
    return {
        "messageId": name,
        "body": "private",
        "attributes": attributes,
        "messageAttributes": {names.ITEM_ATTRIBUTE: {"stringValue": item, "dataType": "String"}}
        if item
        else {},
        "eventSourceARN": "arn:aws:sqs:eu-west-1:000000000000:work-dead",
    }


def test_a_dead_letter_fails_its_item_and_the_batch_ends(ledger: LedgerService, batch: Batch) -> None:
    # Given a closed batch of two items
    group = ledger.add(batch.batch_id, 2)
    ledger.close(batch.batch_id)
    ledger.ack([group[0]])

    # When the message of the last dies
    dead = {"Records": [letter(group[1], "d1")]}
    answer = dead_lettered(dead, ledger, lambda _message: pytest.fail("parked"))

    # Then its item has failed, and the batch is complete
    assert failed(answer) == []
    assert ledger.status(batch.batch_id).batch.state is State.COMPLETE
    (failure,) = ledger.failures(batch.batch_id).failures
    assert failure.reason == "dead letter: received 4 times from work"


def test_a_dead_letter_that_nobody_can_handle_is_parked(ledger: LedgerService, group: Group, caplog) -> None:
    parked: list[Any] = []
    dead = {"Records": [letter(None, "d1"), letter("nonsense", "d2"), letter(group[0], "d3", source=False)]}

    answer = dead_lettered(dead, ledger, parked.append)

    assert failed(answer) == []
    assert [message["messageId"] for message in parked] == ["d1", "d2"]
    (failure,) = ledger.failures(group.batch_id).failures
    assert failure.reason == "dead letter: received 4 times from work-dead"
    assert "private" not in caplog.text


def test_a_dead_letter_is_kept_when_it_can_neither_be_failed_nor_parked(
    ledger: LedgerService, group: Group, monkeypatch
) -> None:
    def busy(*_args) -> None:
        raise Throttled("slow down")

    monkeypatch.setattr(ledger, "fail", busy)
    dead = {"Records": [letter(None, "d1"), letter(group[0], "d2")]}
    assert sorted(failed(dead_lettered(dead, ledger, busy))) == ["d1", "d2"]
