"""The ack queue and the dead-letter queues."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from fanin import names
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.parts import RetryRow
from fanin.domain.batch import Batch, Mode, OpenBatch, State
from fanin.domain.failures import Keep, KeptMessage, checked_message
from fanin.domain.ids import Group
from fanin.domain.limits import sendable
from fanin.domain.marks import ItemRange, Mark
from fanin.entry import queues
from fanin.entry.queues import acknowledge, fail_dead_letters
from fanin.entry.unhandled import respond
from fanin.errors import BatchNotFound, InvalidItemId, InvalidRequest, Throttled
from tests.lost_answers import LostAnswers
from tests.unit.entry.conftest import throttle_word


def message(body: Any, name: str) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    return {"messageId": name, "body": text, "eventSource": "aws:sqs"}


def event(*bodies: Any) -> dict[str, Any]:
    return {"Records": [message(body, f"m{index}") for index, body in enumerate(bodies)]}


def failed(answer: dict[str, Any]) -> list[str]:
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def of(*marks: Any) -> dict[str, Any]:
    """Body of a message."""
    return {"marks": [*marks]}


def refuse(message: Any) -> None:
    """Parking fails, so that the message is reported."""
    raise Throttled("the queue is busy")


def unexpected(message: Any, seconds: int = 0) -> None:
    pytest.fail(f"{message['messageId']} was put back or parked")


class Moved(list[tuple[str, Any]]):
    """Collects messages that are parked or put back: their ids, and their bodies as JSON."""

    def __call__(self, message: Any, seconds: int = 0) -> None:
        self.append((message["messageId"], json.loads(message["body"])))


def acknowledged(
    event: Any,
    ledger: Any,
    park: Any = unexpected,
    postpone: Any = lambda _: None,
    put_back: Any = unexpected,
) -> list[str]:
    """The messages that come again as they are."""
    return failed(respond(acknowledge(event["Records"], ledger), park, postpone, put_back))


def dead_lettered(
    event: Any, ledger: Any, park: Any = unexpected, postpone: Any = lambda _: None, **options: Any
) -> list[str]:
    return failed(respond(fail_dead_letters(event["Records"], ledger, **options), park, postpone))


@pytest.fixture
def batch(ledger: LedgerService) -> Batch:
    return ledger.open(OpenBatch())


@pytest.fixture
def group(ledger: LedgerService, batch: Batch) -> Group:
    return ledger.add(batch.batch_id, 64)


def test_a_window_of_messages_is_one_write_for_each_word(ledger, memory, group):
    # Given 64 messages of one item each, all of one word
    before = memory.accesses.writes["words.clear"]
    # When they are acknowledged in one window
    assert acknowledged(event(*(of(item) for item in group)), ledger) == []
    # Then the word was written once, and its parent once
    assert ledger.status(group.batch_id, exact=True).done_min == 64
    assert memory.accesses.writes["words.clear"] - before <= 2


def test_a_message_may_carry_everything(ledger, group):
    counted = ledger.open(OpenBatch(mode="estimated")).batch_id
    ledger.add(counted, 5)
    span = {"group": group.prefix, "from": 10, "to": 20}
    body = of(group[0], span, {"batch_id": counted, "count": 3}, {"failed": group[1], "reason": "bad row"})
    assert acknowledged(event(body), ledger) == []
    assert ledger.status(group.batch_id, exact=True).done_min == 12
    assert ledger.status(counted).batch.acked == 3
    assert [failure.reason for failure in ledger.failures(group.batch_id).failures] == ["bad row"]


class TestPoison:
    """A message that cannot be read is parked at once, alone, as it is."""

    @pytest.mark.parametrize(
        "body",
        [
            *("nonsense", "", "7", "[]", "{}", '{"items": []}', '{"marks": 7}', '{"marks": [], "items": []}'),
            *("[" * 200_000, '{"marks": ' * 100_000, '{"marks": [1e999]}', "\ud800"),
        ],
    )
    def test_is_parked_at_once_and_alone(self, ledger, group, measured, body):
        parked: list[Any] = []
        bodies: list[Any] = [of(item) for item in group[:9]]

        assert acknowledged(event(*bodies[:5], body, *bodies[5:]), ledger, parked.append) == []

        assert [(one["messageId"], one["body"]) for one in parked] == [("m5", body)]
        assert ledger.status(group.batch_id, exact=True).done_min == 9
        assert measured()[names.METRIC_PARKED] == [1.0]

    def test_comes_again_while_it_cannot_be_parked(self, ledger, group):
        assert acknowledged(event(of(group[0]), "nonsense"), ledger, refuse) == ["m1"]
        assert ledger.status(group.batch_id, exact=True).done_min == 1


class TestRefusedMarks:
    """What a consumer's window brings is one message: one wrong mark in it must not lose the others."""

    @pytest.fixture
    def group(self, ledger: LedgerService) -> Group:
        return ledger.add(ledger.open(OpenBatch(totals=("rows",))).batch_id, 64)

    def test_a_bad_one_beside_nine_with_totals_is_parked_alone(self, ledger, group, measured):
        # Given a handler that names a total which the batch does not have, for one item of its window
        good = [{"item": group[n], "totals": {"rows": n}} for n in range(9)]
        wrong = {"item": group[9], "totals": {"lines": 5}}
        parked = Moved()
        assert acknowledged(event(of(*good[:4], wrong, *good[4:]), of(group[10])), ledger, parked) == []
        assert parked == [("m0", of(wrong))]
        found = ledger.status(group.batch_id, exact=True)
        assert (found.done_min, found.batch.totals) == (10, {"rows": 36})
        figures = measured()
        assert (figures[names.METRIC_FIRST], figures[names.METRIC_PARKED]) == ([10.0], [1.0])

    @pytest.mark.parametrize(
        "bad",
        [
            *(7, None, 1.5, True, [], {}, "", "nonsense", "\ud83d:x:0", "x" * 100_000),
            *("5:00000000-0000-8010-8000-000000000000:0", {"batch_id": 5, "count": 1}),
            *({"failed": "nonsense"}, {"failed": 7}, {"item": None}, {"count": 1}, {"from": 1}),
            {"item": "ITEM", "hint": 1},
            {"item": "ITEM", "failed": "ITEM"},
            {"failed": "ITEM", "reason": "\ud83d"},
            {"failed": "ITEM", "attempts": -1},
            {"failed": "ITEM", "source": "x" * 2_000},
            {"failed": "ITEM", "message": {"body": "b", "attributes": {"a": 1}}},
            {"group": "ITEM", "from": 3, "to": 3},
        ],
        ids=lambda bad: str(bad)[:40].encode("ascii", "replace").decode(),
    )
    def test_every_entry_that_is_no_good_mark_is_parked_alone(self, ledger, group, bad):
        bad = json.loads(json.dumps(bad).replace("ITEM", group[5]))
        parked = Moved()
        assert acknowledged(event(of(group[0], bad, group[1]), of(group[2])), ledger, parked) == []
        assert parked == [("m0", of(bad))]
        assert ledger.status(group.batch_id, exact=True).done_min == 3

    def test_those_of_one_message_and_kind_of_error_are_one_message(self, ledger, group):
        estimated = ledger.add(ledger.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id, 10)
        parked = Moved()
        messages = event(of(estimated[0], "one", 7, estimated[1], "two"), of("one"))
        assert acknowledged(messages, ledger, parked) == []
        assert parked == [("m0", of("one", "two")), ("m0", of(7)), ("m1", of("one"))]
        assert ledger.status(estimated.batch_id).batch.acked == 2

    def test_one_that_cannot_be_parked_is_put_back_alone(self, ledger, group):
        back: list[Any] = []
        messages = event(of(group[0], "one"), of(group[1]))
        put_back = lambda message, _: back.append(json.loads(message["body"]))  # noqa: E731
        assert acknowledged(messages, ledger, refuse, put_back=put_back) == []
        assert back == [of("one")]
        assert acknowledged(messages, ledger, refuse, put_back=lambda *_: refuse(None)) == ["m0"]
        assert ledger.status(group.batch_id, exact=True).done_min == 2

    def test_each_has_its_error(self, ledger, group):
        handled = acknowledge(event(of("one", 7, {"batch_id": 5, "count": 1}, group[0]))["Records"], ledger)
        assert [type(error) for _, error in handled.refused] == [InvalidItemId, InvalidRequest, BatchNotFound]
        attributes = [message["messageAttributes"][names.REASON_ATTRIBUTE] for message, _ in handled.refused]
        assert [said["stringValue"].partition(":")[0] for said in attributes] == [
            *("invalid-item-id", "invalid-request", "batch-not-found")
        ]

    def test_the_error_of_a_mark_can_be_sent(self, ledger):
        item = "x" * 90 + "\ud83d\x00\uffff" + "y" * 2_000
        ((message, _),) = acknowledge(event(of(item))["Records"], ledger).refused
        said = message["messageAttributes"][names.REASON_ATTRIBUTE]["stringValue"]
        assert checked_message(KeptMessage(said)).body == said
        assert sendable("the reason", said)


class Postponed(list[tuple[str, int]]):
    """Collects which messages come again after how many seconds."""

    def __call__(self, waits: Any) -> None:
        self += [(message["messageId"], seconds) for message, seconds in waits]


def throttled(_marks: Sequence[Mark]) -> Any:
    raise Throttled("slow down")


class TestOverload:
    def test_only_messages_of_which_something_is_left_come_again(self, ledger, memory, batch, measured):
        # Given messages of three words, of which the second is throttled
        group = ledger.add(batch.batch_id, 192)
        bodies = [of(*group[n : n + 16]) for n in range(0, 192, 16)]
        bodies += [of({"group": group.prefix, "from": 0, "to": 3})]
        throttle_word(memory, 2)
        postponed = Postponed()

        again = acknowledged(event(*bodies), ledger, postpone=postponed)

        assert again == ["m4", "m5", "m6", "m7"] == [name for name, _ in postponed]
        assert ledger.status(batch.batch_id, exact=True).done_min == 128
        assert measured()[names.METRIC_POSTPONED] == [4.0]

    def test_a_message_left_in_part_is_put_back_with_what_is_left_and_one_bad_mark_is_parked(
        self, ledger, memory, batch, measured
    ):
        # Given a message with marks of two words, of which one is throttled, and a bad one
        group = ledger.add(batch.batch_id, 128)
        torn, span = {"failed": group[65], "reason": "torn"}, {"group": group.prefix, "from": 70, "to": 72}
        throttle_word(memory, 2)
        parked, put_back = Moved(), Moved()

        body = of(group[0], group[64], "bad", torn, group[1], span)
        assert acknowledged(event(body), ledger, parked, put_back=put_back) == []

        assert (parked, put_back) == ([("m0", of("bad"))], [("m0", of(group[64], torn, span))])
        assert measured()[names.METRIC_FIRST] == [2.0]
        # And when the rest comes, all is marked
        assert acknowledged(event(put_back[0][1]), ledger) == []
        assert ledger.status(batch.batch_id, exact=True).done_min == 6

    def test_a_queue_that_cannot_postpone_is_asked_for_them_all_the_same(self, ledger, group, monkeypatch):
        monkeypatch.setattr(ledger, "mark", throttled)

        def broken(_waits: Any) -> None:
            raise ZeroDivisionError

        assert acknowledged(event(of(group[0])), ledger, postpone=broken) == ["m0"]

    def test_what_the_time_does_not_suffice_for_comes_again(self, ledger, batch, monkeypatch):
        # Given messages for two calls, and time for one
        group = ledger.add(batch.batch_id, 20_000)
        left = iter([1.0, 0.0])
        monkeypatch.setattr(queues.INVOCATION, "seconds_left", lambda: next(left))
        bodies = [of(*group[start : start + 5_000]) for start in range(0, 20_000, 5_000)]

        assert acknowledged(event(*bodies), ledger) == ["m2", "m3"]
        assert ledger.status(batch.batch_id, exact=True).done_min == 10_000

    def test_a_throttled_window_comes_back_whole_after_one_call(self, ledger, group, monkeypatch):
        calls: list[int] = []

        def busy(marks: Sequence[Mark]) -> Any:
            calls.append(len(marks))
            throttled(marks)

        monkeypatch.setattr(ledger, "mark", busy)
        assert acknowledged(event(of(group[0]), of(group[1], group[2])), ledger) == ["m0", "m1"]
        assert calls == [3]


class TestEstimated:
    """An estimated batch counts a repeat again, so what it may have counted is not asked for again."""

    @pytest.fixture
    def estimated(self, ledger: LedgerService) -> Group:
        return ledger.add(ledger.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id, 100)

    @staticmethod
    def counted(ledger: LedgerService, group: Group) -> int:
        return ledger.status(group.batch_id).batch.acked

    def test_what_is_left_of_a_message_does_not_bring_back_what_was_counted(
        self, ledger, memory, group, estimated
    ):
        throttle_word(memory, 1)
        put_back = Moved()
        body = of({"failed": estimated[0]}, group[0])
        assert acknowledged(event(body), ledger, put_back=put_back) == []
        assert put_back == [("m0", of(group[0]))]
        assert self.counted(ledger, estimated) == 1

    @pytest.mark.parametrize(
        "named",
        [
            lambda group: group[0],
            lambda group: {"failed": group[0]},
            lambda group: {"group": group.prefix, "from": 0, "to": 1},
        ],
        ids=["item", "failure", "range"],
    )
    def test_marks_of_which_nobody_knows_are_parked_and_the_others_marked(
        self, memory, ledger, group, estimated, named
    ):
        # Given a message that names an item of an estimated batch, and a lost answer to its count
        parked = Moved()
        LostAnswers(memory).lose("batches.count")

        body = of(named(group), named(estimated))
        assert acknowledged(event(body, of(group[1])), ledger, parked) == []
        # Then the count was made once, and waits alone for a person; the rest is marked
        assert parked == [("m0", of(named(estimated)))]
        assert self.counted(ledger, estimated) == 1
        assert ledger.status(group.batch_id, exact=True).done_min == 2

    def test_a_dead_letter_of_which_nobody_knows_is_parked_as_it_is(self, memory, ledger, estimated):
        parked: list[Any] = []
        LostAnswers(memory).lose("batches.count")
        dead = {"Records": [letter(estimated[0], "d0")]}

        assert dead_lettered(dead, ledger, parked.append) == []

        assert parked == dead["Records"]
        assert self.counted(ledger, estimated) == 1

    def test_a_lost_answer_concerns_the_marks_of_its_batch_alone(self, memory, ledger, estimated):
        other = ledger.open(OpenBatch(mode=Mode.ESTIMATED)).batch_id
        counts = [{"batch_id": of_, "count": 1} for of_ in (estimated.batch_id, other)]
        parked = Moved()
        LostAnswers(memory).lose("batches.count")
        assert acknowledged(event(of(*counts)), ledger, parked) == []
        assert parked == [("m0", of(counts[0]))]
        assert [ledger.status(of_).batch.acked for of_ in (estimated.batch_id, other)] == [1, 1]


def test_a_defect_that_one_call_brings_out_spares_the_others(ledger, batch, monkeypatch):
    group = ledger.add(batch.batch_id, 25_000)
    mark = ledger.mark

    def defective(marks: Sequence[Mark]) -> Any:
        if group[3] in marks:
            raise ZeroDivisionError
        return mark(marks)

    monkeypatch.setattr(ledger, "mark", defective)
    bodies = [of(*group[start : start + 5_000]) for start in range(0, 25_000, 5_000)]
    assert acknowledged(event(*bodies), ledger) == ["m0", "m1"]
    assert ledger.status(batch.batch_id, exact=True).done_min == 15_000


def test_a_window_with_more_ids_than_a_call_may_carry_is_cut(ledger, batch):
    group = ledger.add(batch.batch_id, 25_000)
    bodies = [of(*group[start : start + 4_000]) for start in range(0, 25_000, 4_000)]
    assert acknowledged(event(*bodies), ledger) == []
    assert ledger.status(batch.batch_id, exact=True).done_min == 25_000


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


def test_a_dead_letter_fails_its_item_and_the_batch_ends(ledger, batch):
    # Given a closed batch of two items
    group = ledger.add(batch.batch_id, 2)
    ledger.close(batch.batch_id)
    ledger.mark([group[0]]).whole()
    # When the message of the last dies
    dead = {"Records": [letter(group[1], "d1")]}
    assert dead_lettered(dead, ledger) == []
    # Then its item has failed, and the batch is complete
    assert ledger.status(batch.batch_id).batch.state is State.COMPLETE
    (failure,) = ledger.failures(batch.batch_id).failures
    assert failure.reason == "dead letter: received 4 times from work"


def test_a_dead_letter_that_nobody_can_handle_is_parked(ledger, group, caplog):
    parked: list[Any] = []
    dead = {"Records": [letter(None, "d1"), letter("nonsense", "d2"), letter(group[0], "d3", source=False)]}

    assert dead_lettered(dead, ledger, parked.append) == []
    assert [message["messageId"] for message in parked] == ["d1", "d2"]
    (failure,) = ledger.failures(group.batch_id).failures
    assert failure.reason == "dead letter: received 4 times from work-dead"
    assert "private" not in caplog.text


def test_a_dead_letter_never_fails_an_item_that_was_done(ledger, batch):
    """By id, by a range that marked a word above, or in a batch that has ended."""
    group, other = ledger.add(batch.batch_id, 5_000), ledger.add(batch.batch_id, 1)
    ended = ledger.open(OpenBatch()).batch_id
    last = ledger.add(ended, 1)
    ledger.close(ended)
    ledger.mark([group[0], last[0], ItemRange(group.prefix, 64, 4_928)]).whole()
    letters = [letter(item, f"d{n}") for n, item in enumerate((group[0], group[200], last[0], other[0]))]

    assert dead_lettered({"Records": letters}, ledger) == []
    assert [failure.item for failure in ledger.failures(batch.batch_id).failures] == [other[0]]
    assert ledger.failures(ended).failures == ()
    assert ledger.status(ended).batch.state is State.COMPLETE


def test_a_dead_letter_of_a_batch_that_is_gone_is_parked_with_its_body(ledger, group):
    # Given letters of a batch that was removed, of one that never was, and of one that lives
    removed = ledger.open(OpenBatch()).batch_id
    lost = ledger.add(removed, 1)
    ledger.cancel(removed)
    ledger.remove(removed)
    parked: list[Any] = []
    unknown = f"77:{lost.id}:0"
    letters = [letter(item, f"d{n}") for n, item in enumerate((lost[0], unknown, group[0]))]

    assert dead_lettered({"Records": letters}, ledger, parked.append) == []

    assert [(message["messageId"], message["body"]) for message in parked] == [
        ("d0", "private"),
        ("d1", "private"),
    ]
    assert [failure.item for failure in ledger.failures(group.batch_id).failures] == [group[0]]


def test_a_dead_letter_that_is_throttled_comes_again_alone(ledger, memory, batch):
    group = ledger.add(batch.batch_id, 128)
    throttle_word(memory, 2)
    postponed = Postponed()
    letters = [letter(group[0], "d0"), letter(group[64], "d1")]

    again = dead_lettered({"Records": letters}, ledger, postpone=postponed)

    assert again == ["d1"] == [name for name, _ in postponed]


def test_the_dead_letter_of_a_buffer_frees_its_slot_and_is_kept(ledger, memory, batch):
    # Given two dead letters of a buffer, one of which cannot be marked now, and one of another queue
    group = ledger.add(batch.batch_id, 65)
    parked: list[Any] = []
    mine, later, other = (letter(group[n], f"d{n}") for n in (0, 64, 1))
    mine["eventSourceARN"] = later["eventSourceARN"] = arn = "arn:aws:sqs:eu-west-1:0:buffers-dead"
    throttle_word(memory, 2)

    handled = fail_dead_letters([mine, later, other], ledger, kept_from=arn)
    answer = respond(handled, parked.append, lambda _: None, keep=[mine, later])
    # Then the buffer's message is kept, once its slot is free
    assert parked == [mine]
    assert failed(answer) == ["d64"]
    kept = {item: ledger.failure(batch.batch_id, n).message is not None for n, item in enumerate(group[:2])}
    assert kept == {group[0]: False, group[1]: True}


class TestMessagesOfFailures:
    def test_a_queue_may_keep_reasons_alone(self, ledger, group):
        dead_lettered({"Records": [letter(group[1], "d1")]}, ledger, keep=lambda _: Keep.REASON)

        found = ledger.failure(group.batch_id, 1)
        assert (found.message, found.failure.attempts) == (None, 4)

    def test_while_nobody_knows_what_may_be_kept_messages_come_again(self, ledger, group):
        def busy(_arn: str) -> Keep:
            raise Throttled("busy")

        assert dead_lettered({"Records": [letter(group[1], "d1")]}, ledger, keep=busy) == ["d1"]
        assert ledger.failures(group.batch_id).failures == ()

    def test_windows_hold_no_more_bytes_than_a_call_takes(self, ledger, group):
        letters = [letter(group[n], f"d{n}") | {"body": "x" * 1_000_000} for n in range(6)]

        assert dead_lettered({"Records": letters}, ledger) == []
        assert all(ledger.failure(group.batch_id, n).message for n in range(6))


def test_the_reason_of_a_dead_letter_names_its_source_and_the_last_error(ledger, batch):
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

    fail_dead_letters(
        letters,
        ledger,
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
