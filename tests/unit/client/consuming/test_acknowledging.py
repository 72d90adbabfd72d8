"""Acknowledging in bulk: straight to the ledger, or through the ack queue."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from botocore.exceptions import EndpointConnectionError

from fanin.client import marking, merging
from fanin.client.consuming.acknowledging import (
    ItemOutcome,
    LedgerAcknowledger,
    QueueAcknowledger,
    acks_of,
    unacknowledged,
)
from fanin.domain.acks import Acks, Failure, Result
from fanin.domain.failures import KeptMessage
from fanin.errors import (
    AccessDenied,
    BatchNotFound,
    InvalidItemId,
    OutcomeUnknown,
    PartlyMarked,
    ServiceUnavailable,
    Throttled,
)
from tests.unit.client.conftest import raising, received


class TestAckLater:
    def test_ids_go_in_messages_that_a_queue_takes(self, tracker, batch, sqs, ack_queue):
        group = batch.add(10_000)
        tracker.ack_later(iter(group), failures=[Failure(group[0], "x" * 5_000)])
        bodies = [message["Body"] for message in received(sqs, ack_queue)]
        acked = [item for body in bodies for item in json.loads(body).get("items", [])]
        assert sorted(acked) == sorted(group)
        assert all(len(body.encode()) <= 262_144 for body in bodies)
        assert len(bodies) == 11
        [failure] = json.loads(bodies[-1])["failures"]
        assert failure["reason"] == "x" * 1_024

    def test_reasons_of_many_bytes_make_more_messages(self, tracker, batch, sqs, ack_queue):
        group = batch.add(500)
        tracker.ack_later([], failures=[Failure(item, "€" * 1_024) for item in group])
        bodies = [message["Body"] for message in received(sqs, ack_queue)]
        assert sum(len(json.loads(body)["failures"]) for body in bodies) == 500
        assert all(len(body.encode()) <= 262_144 for body in bodies)


class TestUndelivered:
    @pytest.mark.parametrize("error", [InvalidItemId, BatchNotFound])
    def test_halving_finds_every_bad_one_in_few_calls(self, error, caplog):
        # Given
        bad, told, calls = {"17", "501"}, [], 0

        def acknowledge(outcomes):
            nonlocal calls
            calls += 1
            if any(outcome.item in bad for outcome in outcomes):
                raise error("bad")
            told.extend(outcome.item for outcome in outcomes)

        # When
        untold = unacknowledged(acknowledge, [ItemOutcome(str(n)) for n in range(1_000)])
        # Then
        assert untold == bad
        assert len(told) == len(set(told)) == 998
        assert calls < 45
        assert "item '17' was refused, its message comes again: bad" in caplog.messages

    @pytest.mark.parametrize("error", [Throttled, ServiceUnavailable, AccessDenied])
    def test_an_error_that_blames_no_item_leaves_all_of_them_after_one_call(self, error, caplog):
        calls = []

        def unavailable(outcomes):
            calls.append(len(outcomes))
            raise error("not now")

        assert unacknowledged(unavailable, [ItemOutcome("a"), ItemOutcome("b", "torn")]) == {"a", "b"}
        assert calls == [2]
        assert "2 items could not be acknowledged and come again: not now" in caplog.text


def test_one_request_has_what_is_done_what_failed_and_what_brings_totals():
    outcomes = [ItemOutcome("a"), ItemOutcome("b", "x" * 2_000), ItemOutcome("c", totals={"rows": 7})]
    outcomes += [ItemOutcome("d", "", totals={"rows": 1})]
    assert acks_of(outcomes) == Acks(
        items=["a"],
        failures=[Failure("b", "x" * 1_024), Failure("d", "", totals={"rows": 1})],
        results=[Result("c", {"rows": 7})],
    )


class TestLedgerAcknowledger:
    def test_items_are_marked_when_it_returns(self, tracker, batch):
        group = batch.add(3)
        LedgerAcknowledger(tracker)([ItemOutcome(group[0]), ItemOutcome(group[2], "torn")])
        assert [span.start for span in tracker.iter_missing(batch.id)] == [1]
        assert [failure.reason for failure in tracker.iter_failures(batch.id)] == ["torn"]

    def test_it_makes_no_call_for_a_kind_that_does_not_occur(self, tracker, batch, monkeypatch):
        group = batch.add(2)
        monkeypatch.setattr(tracker.ledger, "fail", lambda *_: pytest.fail("fail was called"))
        LedgerAcknowledger(tracker)([ItemOutcome(group[0])])
        monkeypatch.undo()
        monkeypatch.setattr(tracker.ledger, "ack", lambda *_, **__: pytest.fail("ack was called"))
        LedgerAcknowledger(tracker)([ItemOutcome(group[1], "torn")])
        assert tracker.status(batch.id, exact=True).done_min == 2

    def test_what_the_ledger_cannot_mark_now_goes_to_the_ack_queue(
        self, tracker, sqs, ack_queue, monkeypatch
    ):
        # Given a ledger that marks one item and one failure of a call
        group = tracker.add(tracker.open().batch_id, 5)

        def partly(items, **_):
            raise PartlyMarked("slow down", receipts=(), rest=Acks(items=items[1:]))

        def partly_failed(failures):
            raise PartlyMarked("slow down", receipts=(), rest=Acks(failures=failures[1:]))

        monkeypatch.setattr(marking, "REPEATS", replace(merging.REPEATS, tries=1))
        monkeypatch.setattr(tracker.ledger, "ack", partly)
        monkeypatch.setattr(tracker.ledger, "fail", partly_failed)
        # When
        tracker.acknowledger()([ItemOutcome(item, "torn" if item in group[3:] else None) for item in group])
        # Then
        [message] = received(sqs, ack_queue)
        body = json.loads(message["Body"])
        assert body == {"items": group[1:3], "failures": [{"item": group[4], "reason": "torn"}]}

    def test_when_the_ack_queue_is_busy_too_only_what_is_left_comes_again(self, tracker, monkeypatch):
        group = tracker.add(tracker.open().batch_id, 3)

        def partly(items, **_):
            raise PartlyMarked("slow down", receipts=(), rest=Acks(items=items[2:]))

        monkeypatch.setattr(marking, "REPEATS", replace(merging.REPEATS, tries=1))
        monkeypatch.setattr(tracker.ledger, "ack", partly)
        acknowledge = LedgerAcknowledger(tracker, raising(ServiceUnavailable("no answer")))
        assert unacknowledged(acknowledge, [ItemOutcome(item) for item in group]) == {group[2]}

    @pytest.mark.parametrize("error", [InvalidItemId, AccessDenied])
    def test_what_the_ledger_will_never_mark_does_not_go_there(
        self, tracker, sqs, ack_queue, monkeypatch, error
    ):
        monkeypatch.setattr(tracker.ledger, "ack", raising(error("never")))
        with pytest.raises(error):
            tracker.acknowledger()([ItemOutcome("1:g:0")])
        assert received(sqs, ack_queue) == []

    def test_without_an_ack_queue_only_what_is_left_comes_again(self):
        rest = Acks(items=["b"], failures=[Failure("d", "torn")])
        outcomes = [ItemOutcome("a"), ItemOutcome("b"), ItemOutcome("c", "wet"), ItemOutcome("d", "torn")]
        acknowledge = raising(PartlyMarked("slow", receipts=(), rest=rest))
        assert unacknowledged(acknowledge, outcomes) == {"b", "d"}

    def test_without_an_ack_queue_all_that_is_left_is_raised(self, tracker, batch, monkeypatch):
        group = batch.add(2)
        monkeypatch.setattr(tracker.ledger, "ack", raising(Throttled("slow down")))
        with pytest.raises(PartlyMarked, match="slow down") as found:
            LedgerAcknowledger(tracker)([ItemOutcome(group[0]), ItemOutcome(group[1], "torn")])
        assert (found.value.rest.items, found.value.rest.failures) == ([group[0]], [])
        assert [failure.reason for failure in tracker.iter_failures(batch.id)] == ["torn"]

    def test_an_error_after_a_busy_answer_loses_neither_of_both(self, tracker, batch, monkeypatch):
        # Given a ledger that is too busy for what is done, and refuses a failure after that
        group = batch.add(3)
        outcomes = [ItemOutcome(group[0]), ItemOutcome("nonsense", "torn"), ItemOutcome(group[1], "torn")]
        monkeypatch.setattr(tracker.ledger, "ack", raising(Throttled("slow down")))
        with pytest.raises(PartlyMarked) as found:
            tracker.acknowledger()(outcomes)
        rest = found.value.rest
        assert {*rest.items, *(failure.item for failure in rest.failures)} == {one.item for one in outcomes}
        assert isinstance(found.value.__cause__, InvalidItemId)
        # And all of their messages come again
        assert unacknowledged(LedgerAcknowledger(tracker), outcomes) >= {group[0], "nonsense"}
        assert tracker.status(batch.id, exact=True).done_min <= 1


class TestEstimated:
    """An estimated batch counts a repeat again, so nothing that it may have counted is repeated."""

    @pytest.fixture
    def estimated(self, tracker):
        row = tracker.open(mode="estimated")
        return tracker.add(row.batch_id, 10)

    @staticmethod
    def counted(tracker, group):
        return tracker.status(group.batch_id).batch.acked

    @staticmethod
    def lose(monkeypatch, tracker, call, *, done=True, meanwhile=lambda: None):
        """Lose the answer to the first call of a kind, or the call itself, while something happens."""
        make = getattr(tracker.ledger, call)
        answers = iter([OutcomeUnknown("no answer")])

        def lossy(*args, **kwargs):
            for error in answers:
                if done:
                    make(*args, **kwargs)
                meanwhile()
                raise error
            return make(*args, **kwargs)

        monkeypatch.setattr(tracker.ledger, call, lossy)

    @pytest.mark.parametrize(("call", "failure"), [("ack", None), ("fail", "torn")])
    def test_a_count_whose_answer_was_lost_is_not_repeated(  # noqa: PLR0917
        self, tracker, batch, estimated, monkeypatch, caplog, call, failure
    ):
        # Given items of an exact and of an estimated batch, and a lost answer to their call
        group = batch.add(2)
        outcomes = [ItemOutcome(item, failure) for item in (*group, *estimated[:3])]
        self.lose(monkeypatch, tracker, call)

        # When they are acknowledged
        again = unacknowledged(tracker.acknowledger(), outcomes)

        # Then no message comes again, every item counts once, and the log names the batch
        assert again == set()
        assert self.counted(tracker, estimated) == 3
        assert tracker.status(batch.id, exact=True).done_min == 2
        assert f"estimated batches [{estimated.batch_id}] may not have been counted" in caplog.text

    def test_items_of_exact_batches_are_marked_although_the_call_did_nothing(
        self, tracker, batch, monkeypatch, caplog
    ):
        group = batch.add(2)
        self.lose(monkeypatch, tracker, "ack", done=False)
        assert unacknowledged(tracker.acknowledger(), [ItemOutcome(item) for item in group]) == set()
        assert tracker.status(batch.id, exact=True).done_min == 2
        assert "estimated" not in caplog.text

    def test_while_nobody_can_say_which_batches_are_estimated_all_messages_come_again(
        self, tracker, batch, monkeypatch
    ):
        group = batch.add(1)
        monkeypatch.setattr(tracker.ledger, "ack", raising(OutcomeUnknown("no answer")))
        monkeypatch.setattr(tracker.ledger, "status", raising(ServiceUnavailable("not now")))
        assert unacknowledged(LedgerAcknowledger(tracker), [ItemOutcome(group[0])]) == {group[0]}

    def test_while_nobody_can_say_it_all_items_go_to_the_ack_queue_where_it_is_known(
        self, tracker, batch, monkeypatch, sqs, ack_queue
    ):
        # Given a ledger that is down, and items of two batches that it was never asked about
        group, more = batch.add(2), tracker.add(tracker.open().batch_id, 1)
        asked = []

        def unavailable(batch_id, **_):
            asked.append(batch_id)
            raise ServiceUnavailable("not now")

        monkeypatch.setattr(tracker.ledger, "ack", raising(OutcomeUnknown("no answer")))
        monkeypatch.setattr(tracker.ledger, "fail", raising(OutcomeUnknown("no answer")))
        monkeypatch.setattr(tracker.ledger, "status", unavailable)

        # When their work is done
        outcomes = [ItemOutcome(group[0]), ItemOutcome(more[0]), ItemOutcome(group[1], "torn")]
        again = unacknowledged(tracker.acknowledger(), outcomes)

        # Then no message comes again, and the ledger was asked once a request
        assert again == set()
        [message] = received(sqs, ack_queue)
        body = json.loads(message["Body"])
        assert set(body["items"]) == {group[0], more[0]}
        assert body["failures"] == [{"item": group[1], "reason": "torn"}]
        assert len(asked) == 2

    def test_what_is_known_to_be_counted_does_not_go_there(  # noqa: PLR0917
        self, tracker, batch, estimated, monkeypatch, sqs, ack_queue
    ):
        # Given a lost answer, and a ledger that then answers for the estimated batch only
        group = tracker.add(tracker.open().batch_id, 1)
        status = tracker.ledger.status
        self.lose(monkeypatch, tracker, "ack")

        def silent(batch_id, **more):
            if batch_id == group.batch_id:
                raise ServiceUnavailable("not now")
            return status(batch_id, **more)

        monkeypatch.setattr(tracker.ledger, "status", silent)
        outcomes = [ItemOutcome(estimated[0]), ItemOutcome(group[0])]
        assert unacknowledged(tracker.acknowledger(), outcomes) == set()
        assert self.counted(tracker, estimated) == 1
        assert [json.loads(one["Body"]) for one in received(sqs, ack_queue)] == [{"items": [group[0]]}]

    def test_a_batch_that_is_gone_does_not_repeat_what_was_counted(
        self, tracker, batch, estimated, monkeypatch
    ):
        # Given a call with an item of a batch that is removed while the answer is lost
        group = batch.add(1)

        def remove():
            tracker.cancel(batch.id)
            tracker.remove(batch.id)

        self.lose(monkeypatch, tracker, "ack", meanwhile=remove)
        outcomes = [ItemOutcome(group[0]), ItemOutcome(estimated[0])]

        # When they are acknowledged, then only that item's message comes again
        assert unacknowledged(LedgerAcknowledger(tracker), outcomes) == {group[0]}
        assert self.counted(tracker, estimated) == 1

    def test_a_refused_failure_does_not_repeat_what_was_counted(self, tracker, estimated):
        outcomes = [*map(ItemOutcome, estimated[:4]), ItemOutcome("nonsense", "torn")]
        assert unacknowledged(LedgerAcknowledger(tracker), outcomes) == {"nonsense"}
        assert self.counted(tracker, estimated) == 4

    def test_a_refused_failure_does_not_repeat_the_failures_of_other_requests(self, tracker, estimated):
        more = tracker.add(estimated.batch_id, 1_500)
        outcomes = [ItemOutcome(item, "x" * 1_024) for item in more]
        outcomes.append(ItemOutcome("nonsense", "torn"))
        assert unacknowledged(LedgerAcknowledger(tracker), outcomes) == {"nonsense"}
        assert self.counted(tracker, estimated) == 1_500


class TestQueueAcknowledger:
    def test_what_the_queue_has_does_not_come_again(self, sqs, ack_queue, monkeypatch):
        # Given a queue that takes one message and then does not answer
        send, answers = sqs.send_message, iter([None])

        def lossy(**request):
            for _ in answers:
                return send(**request)
            raise EndpointConnectionError(endpoint_url=ack_queue)

        monkeypatch.setattr(sqs, "send_message", lossy)
        outcomes = [ItemOutcome(f"1:g:{n}") for n in range(100)]
        # and a failure whose message is too large for it
        outcomes.append(ItemOutcome("1:g:100", "torn", KeptMessage("x" * 1_000)))
        # When
        again = unacknowledged(QueueAcknowledger(sqs, ack_queue, message_bytes=500), outcomes)
        # Then
        [message] = received(sqs, ack_queue)
        sent = set(json.loads(message["Body"])["items"])
        assert sent
        assert again == {outcome.item for outcome in outcomes} - sent

    def test_items_are_named_once_with_the_totals_that_they_bring(self, sqs, ack_queue):
        outcomes = [ItemOutcome(f"1:g:{n}", totals={"rows": n} if n % 2 else {}) for n in range(50)]
        QueueAcknowledger(sqs, ack_queue, message_bytes=500)(outcomes)

        bodies = [message["Body"] for message in received(sqs, ack_queue)]
        assert all(len(body) <= 500 for body in bodies)
        sent = [json.loads(body) for body in bodies]
        named = [item for body in sent for item in body.get("items", ())]
        assert sorted(named) == sorted(outcome.item for outcome in outcomes if not outcome.totals)
        results = {one["item"]: one["totals"] for body in sent for one in body.get("results", ())}
        assert results == {outcome.item: outcome.totals for outcome in outcomes if outcome.totals}

    def test_a_message_names_no_item_twice_with_different_totals(self, sqs, ack_queue):
        # Given a window with three deliveries of an item, of which two have found the same
        first, other = {"rows": 5}, {"rows": 0}
        outcomes = [
            ItemOutcome("1:g:0", totals=first),
            ItemOutcome("1:g:1", totals=first),
            ItemOutcome("1:g:0", totals=other),
            ItemOutcome("1:g:0", totals=first),
        ]
        # When
        QueueAcknowledger(sqs, ack_queue)(outcomes)
        # Then no message would be refused, and each delivery is acknowledged with its own values
        told = [json.loads(message["Body"])["results"] for message in received(sqs, ack_queue)]
        values = [{(one["item"], one["totals"]["rows"]) for one in results} for results in told]
        assert sorted(values, key=len) == [{("1:g:0", 0)}, {("1:g:0", 5), ("1:g:1", 5)}]
        assert sum(map(len, told)) == len(outcomes)


class TestMessagesOfFailures:
    def test_a_message_that_does_not_fit_is_not_acknowledged_and_all_others_are(
        self, tracker, batch, sqs, ack_queue, caplog
    ):
        # Given a done item, a failure with a small message, and one with a large one
        group = batch.add(3)
        outcomes = [
            ItemOutcome(group[0]),
            ItemOutcome(group[1], "torn", KeptMessage("small"), 3, "arn:q"),
            ItemOutcome(group[2], "torn", KeptMessage("x" * 300_000)),
        ]

        # When they are acknowledged through the queue
        again = unacknowledged(QueueAcknowledger(sqs, ack_queue), outcomes)

        # Then the large one comes again, and the log says what becomes of it
        assert again == {group[2]}
        assert "kept when they reach their dead-letter queue" in caplog.text
        assert "xxx" not in caplog.text
        (sent,) = [json.loads(message["Body"]) for message in received(sqs, ack_queue)]
        assert sent["items"] == [group[0]]
        assert sent["failures"] == [
            {
                "item": group[1],
                "reason": "torn",
                "message": {"body": "small"},
                "attempts": 3,
                "source": "arn:q",
            }
        ]

    def test_what_goes_to_the_spare_keeps_its_message(self, tracker, batch):
        spared = []

        class Busy:
            def fail(self, _failures):
                raise Throttled("busy")

        outcome = ItemOutcome(batch.add(1)[0], "torn", KeptMessage("body"), 2, "arn:q")
        LedgerAcknowledger(Busy(), spared.extend)([outcome])

        assert spared == [outcome]
