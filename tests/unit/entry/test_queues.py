"""The ack queue and the dead-letter queues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import RetryRow
from fanin.domain.acks import ItemRange
from fanin.domain.batch import Batch, Mode, OpenBatch, State
from fanin.domain.failures import Keep, KeptMessage
from fanin.domain.ids import Group
from fanin.entry import queues, unhandled
from fanin.errors import BatchNotFound, Throttled
from tests.lost_answers import LostAnswers


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


def unexpected(message: Any, seconds: int) -> None:
    pytest.fail(f"{message['messageId']} was put back")


def acknowledged(
    event: Any, ledger: Any, park: Any = refuse, postpone: Any = lambda _: None, put_back: Any = unexpected
) -> Any:
    return queues.acknowledge(event, ledger, park, postpone, put_back)


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


class TestAMessageOfWhichAPartIsRefused:
    """What a consumer's window brings is one message: one wrong item in it must not lose the others."""

    @pytest.fixture
    def group(self, ledger: LedgerService) -> Group:
        return ledger.add(ledger.open(OpenBatch(totals=("rows",))).batch_id, 64)

    def test_is_parked_without_what_could_be_marked(self, ledger: LedgerService, group: Group) -> None:
        # Given a handler that names a total which the batch does not have, for one item of its window
        wrong = {"item": group[2], "totals": {"lines": 5}}
        results = [{"item": group[1], "totals": {"rows": 7}}, wrong]
        body = {"items": [group[0]], "results": results, "failures": [{"item": group[3]}]}
        parked: list[Any] = []
        # When
        answer = acknowledged(event(body, {"items": [group[4]]}), ledger, parked.append)
        # Then
        assert failed(answer) == []
        assert [json.loads(message["body"]) for message in parked] == [{"results": [wrong]}]
        found = ledger.status(group.batch_id, exact=True)
        assert (found.done_min, found.batch.totals) == (4, {"rows": 7})

    def test_counts_in_estimated_batches_once(self, ledger: LedgerService, group: Group) -> None:
        estimated = ledger.add(ledger.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id, 10)
        parked: list[Any] = []
        acknowledged(event({"items": [estimated[0], "nonsense", estimated[1]]}), ledger, parked.append)
        assert [json.loads(message["body"]) for message in parked] == [{"items": ["nonsense"]}]
        assert ledger.status(estimated.batch_id).batch.acked == 2

    def test_comes_again_if_another_part_of_it_cannot_be_marked_now(
        self, ledger: LedgerService, memory: Memory, group: Group
    ) -> None:
        throttle_word(memory, 1)
        body = {"items": [group[0], "nonsense"]}
        assert failed(acknowledged(event(body), ledger, lambda _: pytest.fail("parked"))) == ["m0"]

    def test_is_not_halved_if_its_only_batch_is_unknown(self, group: Group) -> None:
        calls: list[Any] = []

        class Nobody:
            def ack(self, items: Any, **_: Any) -> Any:
                calls.append(items)
                raise BatchNotFound("there is no such batch")

        parked: list[Any] = []
        acknowledged(event({"items": list(group)}), Nobody(), parked.append)
        assert (len(calls), len(parked)) == (1, 1)


class Postponed(list[tuple[str, int]]):
    """Collects which messages come again after how many seconds."""

    def __call__(self, waits: Any) -> None:
        self += [(message["messageId"], seconds) for message, seconds in waits]


def throttle_word(memory: Memory, nth: int, kind: str = "words.clear") -> None:
    """Let one write of a kind be throttled."""
    writes: list[str] = []

    def on_call(call: str, moment: str) -> None:
        if (call, moment) == (kind, "before"):
            writes.append(call)
            if len(writes) == nth:
                raise Throttled("slow down")

    memory.accesses._on_call = on_call


class TestOverload:
    def test_only_messages_of_which_something_is_left_come_again(
        self, ledger: LedgerService, memory: Memory, batch: Batch, measured
    ) -> None:
        # Given messages of three words, of which the second is throttled
        group = ledger.add(batch.batch_id, 192)
        bodies = [{"items": group[n : n + 16]} for n in range(0, 192, 16)]
        bodies += [{"ranges": [{"group": group.prefix, "from": 0, "to": 3}]}]
        throttle_word(memory, 2)
        postponed = Postponed()

        # When
        answer = acknowledged(event(*bodies), ledger, postpone=postponed)

        # Then
        assert failed(answer) == ["m4", "m5", "m6", "m7"] == [name for name, _ in postponed]
        assert ledger.status(batch.batch_id, exact=True).done_min == 128
        assert measured()[names.METRIC_POSTPONED] == [4.0]

    def test_failures_and_ranges_that_are_left_come_again(
        self, ledger: LedgerService, memory: Memory, batch: Batch
    ) -> None:
        group = ledger.add(batch.batch_id, 192)
        failing = [{"failures": [{"item": group[n], "reason": "torn"}]} for n in (0, 64)]
        ranges = [{"ranges": [{"group": group.prefix, "from": n, "to": n + 2}]} for n in (5, 130)]
        throttle_word(memory, 2)
        assert failed(acknowledged(event(*failing), ledger)) == ["m1"]
        throttle_word(memory, 2)
        assert failed(acknowledged(event(*ranges), ledger)) == ["m1"]

    def test_counts_that_are_left_come_again_and_no_others(
        self, ledger: LedgerService, memory: Memory
    ) -> None:
        counted = [ledger.open(OpenBatch(mode="estimated")).batch_id for _ in range(2)]
        for batch_id in counted:
            ledger.add(batch_id, 5)
        bodies = [{"counts": [{"batch_id": batch_id, "n": 2}]} for batch_id in counted]
        throttle_word(memory, 2, "batches.count")

        again = acknowledged(event(*bodies), ledger)

        assert failed(again) == ["m1"]
        assert failed(acknowledged(event(bodies[1]), ledger)) == []
        assert [ledger.status(batch_id).batch.acked for batch_id in counted] == [2, 2]

    def test_what_is_marked_is_counted_also_when_something_is_left(
        self, ledger: LedgerService, memory: Memory, batch: Batch, measured
    ) -> None:
        group = ledger.add(batch.batch_id, 128)
        throttle_word(memory, 2)
        acknowledged(event({"items": [group[0], group[1], group[64]]}), ledger)
        assert measured()[names.METRIC_FIRST] == [2.0]

    def test_a_range_without_an_end_is_recognized(
        self, ledger: LedgerService, memory: Memory, batch: Batch
    ) -> None:
        one, two = ledger.add(batch.batch_id, 64), ledger.add(batch.batch_id, 64)
        throttle_word(memory, 1)
        bodies = [{"ranges": [{"group": group.prefix}]} for group in (one, two)]
        bodies += [{"items": [two[5]]}]
        answer = acknowledged(event(*bodies), ledger)
        pending = ledger.missing(batch.batch_id).ranges
        assert failed(answer)
        assert acknowledged(event(*bodies), ledger)["batchItemFailures"] == []
        assert pending
        assert ledger.missing(batch.batch_id).ranges == ()

    def test_acks_go_through_when_failures_do_not(
        self, ledger: LedgerService, group: Group, monkeypatch
    ) -> None:
        monkeypatch.setattr(ledger, "fail", lambda _failures: (_ for _ in ()).throw(Throttled("slow down")))
        bodies = [{"items": [group[0]]}, {"failures": [{"item": group[1]}], "items": [group[2]]}]

        assert failed(acknowledged(event(*bodies), ledger)) == ["m1"]
        assert ledger.status(group.batch_id, exact=True).done_min == 1

    def test_messages_wait_longer_the_more_often_they_came(
        self, ledger: LedgerService, group: Group, monkeypatch
    ) -> None:
        monkeypatch.setattr(unhandled, "PAUSES", replace(unhandled.PAUSES, fraction=lambda: 1.0))
        monkeypatch.setattr(ledger, "ack", lambda *_, **__: (_ for _ in ()).throw(Throttled("slow down")))
        arrivals = event(*({"items": [item]} for item in group[:5]))
        for received, message_ in zip((1, 2, 5, 9, 90), arrivals["Records"], strict=True):
            message_["attributes"] = {"ApproximateReceiveCount": str(received)}
        postponed = Postponed()

        acknowledged(arrivals, ledger, postpone=postponed)

        assert [seconds for _, seconds in postponed] == [20, 40, 320, 900, 900]

    def test_nobody_comes_again_at_once(self, ledger: LedgerService, group: Group, monkeypatch) -> None:
        monkeypatch.setattr(unhandled, "PAUSES", replace(unhandled.PAUSES, fraction=lambda: 0.0))
        monkeypatch.setattr(ledger, "ack", lambda *_, **__: (_ for _ in ()).throw(Throttled("slow down")))
        postponed = Postponed()
        acknowledged(event({"items": [group[0]]}), ledger, postpone=postponed)
        assert postponed == [("m0", unhandled.LEAST_PAUSE)]

    def test_a_queue_that_cannot_postpone_is_asked_for_them_all_the_same(
        self, ledger: LedgerService, group: Group, monkeypatch
    ) -> None:
        monkeypatch.setattr(ledger, "ack", lambda *_, **__: (_ for _ in ()).throw(Throttled("slow down")))

        def broken(_waits: Any) -> None:
            raise ZeroDivisionError

        assert failed(acknowledged(event({"items": [group[0]]}), ledger, postpone=broken)) == ["m0"]

    def test_what_the_time_does_not_suffice_for_comes_again(
        self, ledger: LedgerService, batch: Batch, monkeypatch
    ) -> None:
        # Given messages for three calls, and time for two
        group = ledger.add(batch.batch_id, 12_000)
        left = iter([1.0, 1.0, 0.0])
        monkeypatch.setattr(queues.INVOCATION, "seconds_left", lambda: next(left))
        bodies = [{"items": group[start : start + 4_000]} for start in range(0, 12_000, 4_000)]
        monkeypatch.setattr(queues.limits, "MAX_IDS", 4_000)

        assert failed(acknowledged(event(*bodies), ledger)) == ["m2"]
        assert ledger.status(batch.batch_id, exact=True).done_min == 8_000


class TestEstimated:
    """An estimated batch counts a repeat again, so what it may have counted is not asked for again."""

    @pytest.fixture
    def estimated(self, ledger: LedgerService) -> Group:
        row = ledger.open(OpenBatch(mode=Mode.ESTIMATED))
        return ledger.add(row.batch_id, 100)

    @staticmethod
    def counted(ledger: LedgerService, group: Group) -> int:
        return ledger.status(group.batch_id).batch.acked

    def test_failures_are_counted_once_although_an_ack_of_their_window_is_refused(
        self, ledger: LedgerService, estimated: Group
    ) -> None:
        bodies: list[Any] = [{"failures": [{"item": item}]} for item in estimated[:8]]
        bodies.append({"items": ["nonsense"]})

        assert failed(acknowledged(event(*bodies), ledger)) == ["m8"]
        assert self.counted(ledger, estimated) == 8

    def test_acks_are_counted_once_although_a_failure_of_their_window_is_refused(
        self, ledger: LedgerService, estimated: Group
    ) -> None:
        bodies: list[Any] = [{"items": [item]} for item in estimated[:8]]
        bodies.append({"failures": [{"item": "nonsense"}], "items": [estimated[9]]})

        assert failed(acknowledged(event(*bodies), ledger)) == ["m8"]
        assert self.counted(ledger, estimated) == 8

    def test_of_a_message_only_what_is_left_is_put_back(
        self, ledger: LedgerService, memory: Memory, group: Group, estimated: Group
    ) -> None:
        # Given a message with a failure in an estimated batch, and with an item whose word is throttled
        body = {"failures": [{"item": estimated[0]}], "items": [group[0]], "counts": []}
        throttle_word(memory, 1)
        rests: list[Any] = []

        # When it is handled
        answer = acknowledged(event(body), ledger, put_back=lambda *rest: rests.append(rest))

        # Then only the item comes again, after a pause
        assert failed(answer) == []
        [(rest, seconds)] = rests
        assert (rest["messageId"], json.loads(rest["body"])) == ("m0", {"items": [group[0]]})
        assert seconds >= unhandled.LEAST_PAUSE
        # And nothing is counted twice in the end
        assert failed(acknowledged(event(rest["body"]), ledger)) == []
        assert self.counted(ledger, estimated) == 1
        assert ledger.status(group.batch_id, exact=True).done_min == 1

    def test_a_chain_of_rests_ends_since_each_names_less_than_the_one_before(
        self, ledger: LedgerService, memory: Memory, estimated: Group
    ) -> None:
        # Given a message with counts of five batches, of which the table takes one at a time
        others = [ledger.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id for _ in range(4)]
        left = [{"batch_id": batch_id, "n": 2} for batch_id in (estimated.batch_id, *others)]
        sizes = []
        while left:
            sizes.append(len(left))
            rests: list[Any] = []
            throttle_word(memory, 2, "batches.count")

            # When what was left of it is put back, again and again
            acknowledged(event({"counts": left}), ledger, put_back=lambda *rest: rests.append(rest))  # noqa: B023
            left = json.loads(rests[0][0]["body"])["counts"] if rests else []

        # Then it ends, and everything is counted once
        assert sizes == [5, 4, 3, 2, 1]
        statuses = (ledger.status(batch_id).batch.acked for batch_id in (estimated.batch_id, *others))
        assert list(statuses) == [2] * 5

    def test_a_message_of_exact_batches_comes_again_as_it_is(
        self, ledger: LedgerService, memory: Memory, batch: Batch
    ) -> None:
        """Repeating it does no harm, and it keeps count of its tries."""
        group = ledger.add(batch.batch_id, 128)
        throttle_word(memory, 2)
        assert failed(acknowledged(event({"items": [group[0], group[64]]}), ledger)) == ["m0"]

    def test_the_rest_of_a_refused_message_is_parked(self, ledger: LedgerService, estimated: Group) -> None:
        parked: list[Any] = []
        body = {"failures": [{"item": estimated[0]}], "items": ["nonsense"]}

        assert failed(acknowledged(event(body), ledger, parked.append)) == []

        assert [json.loads(message["body"]) for message in parked] == [{"items": ["nonsense"]}]
        assert self.counted(ledger, estimated) == 1

    @pytest.mark.parametrize("kind", ["items", "failures", "ranges"])
    def test_items_of_which_nobody_knows_are_parked_and_the_others_marked(
        self, memory: Memory, ledger: LedgerService, group: Group, estimated: Group, kind: str
    ) -> None:
        # Given messages that name items of an estimated batch, and a lost answer to their count
        named: dict[str, Any] = {
            "items": [[group[0], estimated[0]], [estimated[0]]],
            "failures": [[{"item": group[0]}, {"item": estimated[0]}], [{"item": estimated[0]}]],
            "ranges": [
                [{"group": group.prefix, "to": 1}, {"group": estimated.prefix, "to": 1}],
                [{"group": estimated.prefix, "to": 1}],
            ],
        }
        mixed, doubtful = named[kind]
        parked: list[Any] = []
        LostAnswers(memory).lose("batches.count")

        # When they are handled
        answer = acknowledged(event({kind: mixed}, {"items": [group[1]]}), ledger, parked.append)

        # Then the count was made once, and waits alone for a person; the rest is marked
        assert failed(answer) == []
        assert self.counted(ledger, estimated) == 1
        [message] = parked
        assert message["messageId"] == "m0"
        (left,) = json.loads(message["body"])[kind]
        assert doubtful[0] == left or {**doubtful[0], **left} == left
        assert ledger.status(group.batch_id, exact=True).done_min == 2

    def test_counts_behind_one_of_unknown_outcome_come_again(
        self, memory: Memory, ledger: LedgerService, estimated: Group
    ) -> None:
        # Given counts of two batches, and a lost answer to the first
        other = ledger.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id
        bodies = [{"counts": [{"batch_id": of, "n": 1}]} for of in (estimated.batch_id, other)]
        parked: list[Any] = []
        LostAnswers(memory).lose("batches.count")

        # When they are handled
        answer = acknowledged(event(*bodies), ledger, parked.append)

        # Then only the first waits for a person
        assert failed(answer) == ["m1"]
        assert [message["messageId"] for message in parked] == ["m0"]
        assert [ledger.status(of).batch.acked for of in (estimated.batch_id, other)] == [1, 0]

    def test_one_message_with_both_is_parked_and_put_back(
        self, memory: Memory, ledger: LedgerService, estimated: Group
    ) -> None:
        other = ledger.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id
        counts = [{"batch_id": of, "n": 1} for of in (estimated.batch_id, other)]
        parked: list[Any] = []
        rests: list[Any] = []
        LostAnswers(memory).lose("batches.count")

        answer = acknowledged(
            event({"counts": counts}), ledger, parked.append, put_back=lambda *rest: rests.append(rest)
        )

        assert failed(answer) == []
        assert [json.loads(message["body"]) for message in parked] == [{"counts": counts[:1]}]
        assert [json.loads(rest["body"]) for rest, _ in rests] == [{"counts": counts[1:]}]

    def test_a_dead_letter_of_which_nobody_knows_is_parked_as_it_is(
        self, memory: Memory, ledger: LedgerService, estimated: Group
    ) -> None:
        parked: list[Any] = []
        LostAnswers(memory).lose("batches.count")
        dead = {"Records": [letter(estimated[0], "d0")]}

        assert failed(dead_lettered(dead, ledger, parked.append)) == []

        assert parked == dead["Records"]
        assert self.counted(ledger, estimated) == 1


class TestPoison:
    @pytest.mark.parametrize("body", ["[" * 200_000, '{"items": ' * 100_000, '{"items": [1e999]}', "\ud800"])
    def test_is_parked_at_once_and_alone(
        self, ledger: LedgerService, group: Group, measured, body: str
    ) -> None:
        parked: list[Any] = []
        bodies: list[Any] = [{"items": [item]} for item in group[:9]]

        answer = acknowledged(event(*bodies, body), ledger, parked.append)

        assert failed(answer) == []
        assert [message["messageId"] for message in parked] == ["m9"]
        assert ledger.status(group.batch_id, exact=True).done_min == 9
        assert measured()[names.METRIC_PARKED] == [1.0]


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


def test_a_dead_letter_never_fails_an_item_that_was_done(ledger: LedgerService, batch: Batch) -> None:
    """By id, by a range that marked a word above, or in a batch that has ended."""
    group, other = ledger.add(batch.batch_id, 5_000), ledger.add(batch.batch_id, 1)
    ended = ledger.open(OpenBatch()).batch_id
    last = ledger.add(ended, 1)
    ledger.close(ended)
    ledger.ack([group[0], last[0]], ranges=[ItemRange(group.prefix, 64, 4_928)])
    letters = [letter(item, f"d{n}") for n, item in enumerate((group[0], group[200], last[0], other[0]))]

    answer = dead_lettered({"Records": letters}, ledger, lambda _message: pytest.fail("parked"))

    assert failed(answer) == []
    assert [failure.item for failure in ledger.failures(batch.batch_id).failures] == [other[0]]
    assert ledger.failures(ended).failures == ()
    assert ledger.status(ended).batch.state is State.COMPLETE


def test_a_dead_letter_of_a_batch_that_is_gone_is_parked_with_its_body(
    ledger: LedgerService, group: Group
) -> None:
    # Given letters of a batch that was removed, of one that never was, and of one that lives
    removed = ledger.open(OpenBatch()).batch_id
    lost = ledger.add(removed, 1)
    ledger.cancel(removed)
    ledger.remove(removed)
    parked: list[Any] = []
    unknown = f"77:{lost.id}:0"
    letters = [letter(item, f"d{n}") for n, item in enumerate((lost[0], unknown, group[0]))]

    # When
    answer = dead_lettered({"Records": letters}, ledger, parked.append)

    # Then
    assert failed(answer) == []
    assert [(message["messageId"], message["body"]) for message in parked] == [
        ("d0", "private"),
        ("d1", "private"),
    ]
    assert [failure.item for failure in ledger.failures(group.batch_id).failures] == [group[0]]


def test_a_dead_letter_that_is_throttled_comes_again_alone(
    ledger: LedgerService, memory: Memory, batch: Batch
) -> None:
    group = ledger.add(batch.batch_id, 128)
    throttle_word(memory, 2)
    postponed = Postponed()
    letters = [letter(group[0], "d0"), letter(group[64], "d1")]

    answer = dead_lettered({"Records": letters}, ledger, lambda _message: pytest.fail("parked"), postponed)

    assert failed(answer) == ["d1"] == [name for name, _ in postponed]


def test_the_dead_letter_of_a_buffer_frees_its_slot_and_is_kept(
    ledger: LedgerService, batch: Batch, group: Group
) -> None:
    # Given two dead letters of a buffer, one of which cannot be marked now, and one of another queue
    parked: list[Any] = []
    mine, later, other = (letter(group[n], f"d{n}") for n in range(3))
    mine["eventSourceARN"] = later["eventSourceARN"] = arn = "arn:aws:sqs:eu-west-1:0:buffers-dead"

    class Busy:
        def fail(self, failures: Any) -> Any:
            if any(failure.item == group[1] for failure in failures):
                raise RuntimeError("not now")
            return ledger.fail(failures)

    # When
    event = {"Records": [mine, later, other]}
    busy: Any = Busy()
    answer = queues.fail_dead_letters(event, busy, parked.append, lambda _: None, kept_from=arn)

    # Then the buffer's message is kept, once its slot is free
    assert parked == [mine]
    assert failed(answer) == ["d1"]
    assert len(ledger.failures(batch.batch_id).failures) == 2


class TestMessagesOfFailures:
    def test_a_dead_letter_is_kept_with_its_batch(self, ledger: LedgerService, group: Group) -> None:
        dead_lettered({"Records": [letter(group[1], "d1")]}, ledger, refuse)

        found = ledger.failure(group.batch_id, 1)
        assert found.message == KeptMessage("private")
        assert (found.failure.attempts, found.failure.source) == (
            4,
            "arn:aws:sqs:eu-west-1:000000000000:work",
        )

    def test_a_queue_may_keep_reasons_alone(self, ledger: LedgerService, group: Group) -> None:
        queues.fail_dead_letters(
            {"Records": [letter(group[1], "d1")]}, ledger, refuse, lambda _: None, keep=lambda _: Keep.REASON
        )

        found = ledger.failure(group.batch_id, 1)
        assert (found.message, found.failure.attempts) == (None, 4)

    def test_while_nobody_knows_what_may_be_kept_messages_come_again(
        self, ledger: LedgerService, group: Group
    ) -> None:
        def busy(_arn: str) -> Keep:
            raise Throttled("busy")

        answer = queues.fail_dead_letters(
            {"Records": [letter(group[1], "d1")]}, ledger, refuse, lambda _: None, keep=busy
        )

        assert failed(answer) == ["d1"]
        assert ledger.failures(group.batch_id).failures == ()

    def test_messages_of_the_ack_queue_bring_them(self, ledger: LedgerService, group: Group) -> None:
        body = {"failures": [{"item": group[1], "reason": "torn", "message": {"body": "private"}}]}

        assert failed(acknowledged(event(body), ledger)) == []
        assert ledger.failure(group.batch_id, 1).message == KeptMessage("private")

    def test_windows_hold_no_more_bytes_than_a_call_takes(self, ledger: LedgerService, group: Group) -> None:
        letters = [letter(group[n], f"d{n}") | {"body": "x" * 1_000_000} for n in range(6)]

        assert failed(dead_lettered({"Records": letters}, ledger, refuse)) == []
        assert all(ledger.failure(group.batch_id, n).message for n in range(6))


def test_the_reason_of_a_dead_letter_names_its_source_and_the_last_error(
    ledger: LedgerService, batch: Batch
) -> None:
    # Given dead letters of which one says its source; the queue of another tells whose they are; of the third
    # nothing is known but that it was sent; and the last attempt at the fourth names its queue
    group = ledger.add(batch.batch_id, 4)
    letters = [letter(group[n], f"d{n}", source=n == 0) for n in range(4)]
    for other in letters[2:]:
        other["eventSourceARN"] = "arn:aws:sqs:eu-west-1:000000000000:other-dead"
    last = {
        group[0]: RetryRow(0, 4, "no such customer", "", 0),
        group[3]: RetryRow(3, 4, "no price", "cells", 0),
    }
    asked: list[list[str]] = []

    def noted(items: Sequence[str]) -> dict[str, str]:
        asked.append([*items])
        return dict.fromkeys(items, "https://sqs.eu-west-1.amazonaws.com/1/lines")

    # When the function gets them
    queues.fail_dead_letters(
        {"Records": letters},
        ledger,
        refuse,
        lambda _: None,
        source_of=lambda arn: "arn:aws:sqs:eu-west-1:1:rows" if arn.endswith(":work-dead") else None,
        last_attempts=lambda _: last,
        sent_queues=noted,
    )

    # Then notes were asked about the third only, and its message can be sent back
    assert asked == [[group[2]]]
    found = ledger.failures(batch.batch_id).failures
    assert [failure.reason for failure in found] == [
        "dead letter: received 4 times from work: no such customer",
        "dead letter: received 4 times from rows",
        "dead letter: received 4 times from lines",
        "dead letter: received 4 times from cells: no price",
    ]
    assert found[2].source == "https://sqs.eu-west-1.amazonaws.com/1/lines"
