"""Acknowledging in bulk: straight to the ledger, or through the ack queue."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pytest

from fanin import Failure
from fanin.client import ledger as tracker_ledger
from fanin.client import merging
from fanin.client.consuming.acknowledging import (
    ItemOutcome,
    LedgerAcknowledger,
    QueueAcknowledger,
    split,
    unacknowledged,
)
from fanin.domain.acks import Acks
from fanin.errors import (
    AccessDenied,
    BatchNotFound,
    InvalidItemId,
    PartlyMarked,
    ServiceUnavailable,
    Throttled,
)
from tests.unit.client.conftest import received


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

    def test_one_id(self, tracker, batch, sqs, ack_queue):
        tracker.ack_later(batch.add(1)[0])
        assert len(received(sqs, ack_queue)) == 1


class TestUndelivered:
    @pytest.mark.parametrize("error", [InvalidItemId, BatchNotFound])
    def test_halving_finds_every_bad_one_in_few_calls(self, error, caplog):
        # Given
        caplog.set_level(logging.ERROR)
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

    def test_nothing_calls_nobody(self):
        assert unacknowledged(lambda outcomes: 1 / 0, []) == set()

    def test_a_refused_item_is_named_in_the_log(self, caplog):
        def refuse(outcomes):
            raise InvalidItemId("its check does not match")

        assert unacknowledged(refuse, [ItemOutcome("1:g:0")]) == {"1:g:0"}
        assert "item '1:g:0' was refused" in caplog.text
        assert "its check does not match" in caplog.text

    @pytest.mark.parametrize("error", [Throttled, ServiceUnavailable, AccessDenied])
    def test_an_error_that_blames_no_item_leaves_all_of_them_after_one_call(self, error, caplog):
        calls = []

        def unavailable(outcomes):
            calls.append(len(outcomes))
            raise error("not now")

        assert unacknowledged(unavailable, [ItemOutcome("a"), ItemOutcome("b", "torn")]) == {"a", "b"}
        assert calls == [2]
        assert "2 items could not be acknowledged and come again: not now" in caplog.text


def test_split_separates_done_from_failed_and_cuts_reasons():
    outcomes = [ItemOutcome("a"), ItemOutcome("b", "x" * 2_000), ItemOutcome("c"), ItemOutcome("d", "")]
    assert split(outcomes) == (["a", "c"], [Failure("b", "x" * 1_024), Failure("d", "")])


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
        # Given a ledger that marks one item of a call, and no failures
        group = tracker.add(tracker.open().batch_id, 4)

        def partly(items, **_):
            raise PartlyMarked("slow down", receipts=(), rest=Acks(items=items[1:]))

        def throttled(failures):
            raise Throttled("slow down")

        monkeypatch.setattr(tracker_ledger, "REPEATS", replace(merging.REPEATS, tries=1))
        monkeypatch.setattr(tracker.ledger, "ack", partly)
        monkeypatch.setattr(tracker.ledger, "fail", throttled)
        # When
        tracker.acknowledger()([*map(ItemOutcome, group[:3]), ItemOutcome(group[3], "torn")])
        # Then
        [message] = received(sqs, ack_queue)
        body = json.loads(message["Body"])
        assert body == {"items": group[1:3], "failures": [{"item": group[3], "reason": "torn"}]}

    @pytest.mark.parametrize("error", [InvalidItemId, AccessDenied])
    def test_what_the_ledger_will_never_mark_does_not_go_there(
        self, tracker, sqs, ack_queue, monkeypatch, error
    ):
        def refuse(*_, **__):
            raise error("never")

        monkeypatch.setattr(tracker.ledger, "ack", refuse)
        with pytest.raises(error):
            tracker.acknowledger()([ItemOutcome("1:g:0")])
        assert received(sqs, ack_queue) == []

    def test_without_an_ack_queue_only_what_is_left_comes_again(self):
        def acknowledge(outcomes):
            raise PartlyMarked("slow", receipts=(), rest=Acks(items=["b"], failures=[Failure("d", "torn")]))

        outcomes = [ItemOutcome("a"), ItemOutcome("b"), ItemOutcome("c", "wet"), ItemOutcome("d", "torn")]
        assert unacknowledged(acknowledge, outcomes) == {"b", "d"}

    def test_without_an_ack_queue_all_that_is_left_is_raised(self, tracker, batch, monkeypatch):
        def throttled(*_, **__):
            raise Throttled("slow down")

        group = batch.add(2)
        monkeypatch.setattr(tracker.ledger, "ack", throttled)
        with pytest.raises(PartlyMarked, match="slow down") as found:
            LedgerAcknowledger(tracker)([ItemOutcome(group[0]), ItemOutcome(group[1], "torn")])
        assert (found.value.rest.items, found.value.rest.failures) == ([group[0]], [])
        assert [failure.reason for failure in tracker.iter_failures(batch.id)] == ["torn"]

    def test_a_refused_id_is_raised(self, tracker, batch):
        with pytest.raises(InvalidItemId):
            LedgerAcknowledger(tracker)([ItemOutcome("nonsense")])


class TestQueueAcknowledger:
    def test_messages_are_no_larger_than_they_may_be(self, sqs, ack_queue):
        # Given reasons of two bytes a character, and room for few of them
        outcomes = [ItemOutcome(f"1:g:{n}", "ü" * 40 if n % 2 else None) for n in range(50)]
        # When
        QueueAcknowledger(sqs, ack_queue, message_bytes=500)(outcomes)
        # Then all of them arrive, in several messages
        bodies = [message["Body"] for message in received(sqs, ack_queue)]
        assert all(len(body.encode()) <= 500 for body in bodies)
        assert len(bodies) > 1
        told = [json.loads(body) for body in bodies]
        assert {item for body in told for item in body.get("items", [])} == {
            outcome.item for outcome in outcomes if outcome.failure is None
        }
        assert {failure["item"] for body in told for failure in body.get("failures", [])} == {
            outcome.item for outcome in outcomes if outcome.failure
        }

    def test_nothing_to_say_sends_nothing(self, sqs, ack_queue):
        QueueAcknowledger(sqs, ack_queue)([])
        assert received(sqs, ack_queue) == []
