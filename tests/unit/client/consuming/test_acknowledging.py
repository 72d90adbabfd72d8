"""Acknowledging in bulk: straight to the ledger, or through the ack queue."""

import json
from dataclasses import replace

import pytest
from botocore.exceptions import EndpointConnectionError

from fanin.client import marking
from fanin.client.consuming.acknowledging import LedgerAcknowledger, QueueAcknowledger
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.domain.marks import Count, Done, Failure, ItemRange, Marked, Receipt
from fanin.errors import (
    AccessDenied,
    BatchGone,
    FaninError,
    InvalidItemId,
    InvalidRequest,
    OutcomeUnknown,
    PartlyMarked,
    RequestTooLarge,
    ServiceUnavailable,
    Throttled,
)
from tests.unit.client.conftest import raising, received


def sent_marks(sqs, ack_queue):
    return [mark for message in received(sqs, ack_queue) for mark in json.loads(message["Body"])["marks"]]


class TestAckLater:
    def test_marks_go_in_messages_that_a_queue_takes(self, tracker, batch, sqs, ack_queue):
        group = batch.add(10_000)
        failure = Failure(group[0], "€" * 1_024)
        tracker.ack_later([*group, *[failure] * 200])
        bodies = [message["Body"] for message in received(sqs, ack_queue)]
        marks = [mark for body in bodies for mark in json.loads(body)["marks"]]
        assert all(len(body.encode()) <= 262_144 for body in bodies)
        assert sorted(mark for mark in marks if isinstance(mark, str)) == sorted(group)
        assert marks.count({"failed": group[0], "reason": "€" * 1_024}) == 200

    def test_of_several_a_bad_one_is_told_and_the_good_ones_are_sent(self, tracker, batch, sqs, ack_queue):
        group = batch.add(4)
        bad = Done(group[1], {"rows": 0.5})
        with pytest.raises(PartlyMarked, match="of 4 marks 1 are refused, 0 left") as found:
            tracker.ack_later([group[0], bad, Failure(group[2], "torn"), ItemRange(group.prefix, 3)])
        [(mark, error)] = found.value.refused
        assert (mark, type(error), found.value.left) == (bad, InvalidRequest, [])
        told = sent_marks(sqs, ack_queue)
        failed, rest = {"failed": group[2], "reason": "torn"}, {"group": group.prefix, "from": 3}
        assert told == [group[0], failed, rest]

    def test_of_one_the_error_itself_is_raised(self, tracker):
        with pytest.raises(InvalidRequest, match="must be a whole number"):
            tracker.ack_later(Done("7:g:0", {"rows": 0.5}))


class Judging:
    """Calls of a ledger that give this answer."""

    def __init__(self, marked):
        self.marked = marked

    def mark(self, marks):
        if isinstance(self.marked, FaninError):
            raise self.marked
        return self.marked


class TestLedgerAcknowledger:
    def test_items_are_marked_when_it_returns(self, tracker, batch):
        group = batch.add(3)
        assert LedgerAcknowledger(tracker)([group[0], Failure(group[2], "torn")]) == {}
        assert [span.start for span in tracker.iter_missing(batch.id)] == [1]
        assert [failure.reason for failure in tracker.iter_failures(batch.id)] == ["torn"]

    def test_what_is_left_goes_to_the_spare_by_place_and_what_is_refused_does_not(self):
        # Given a ledger that takes one mark, refuses one, and leaves two, of which the spare refuses one
        refused, busy, never = InvalidItemId("forged"), Throttled("slow down"), RequestTooLarge("too large")
        spared = []

        def spare(marks):
            spared.extend(marks)
            return {1: never}

        ledger = Judging(Marked((), {1: refused}, {0: busy, 3: busy}))

        unsettled = LedgerAcknowledger(ledger, spare)(["a", "b", "c", "d"])

        assert spared == ["a", "d"]
        assert unsettled == {1: refused, 3: never}
        assert LedgerAcknowledger(ledger)(["a", "b", "c", "d"]) == {0: busy, 1: refused, 3: busy}

    def test_what_an_estimated_batch_may_have_counted_is_settled_and_logged(self, caplog):
        lost, gone = OutcomeUnknown("no answer"), BatchGone("gone")
        ledger = Judging(Marked((), {2: gone}, {}, {0: lost, 1: lost}))
        marks = ["7:g:0", Count(8, 2), "9:g:0"]
        assert LedgerAcknowledger(ledger, raising(AssertionError()))(marks) == {2: gone}
        assert "estimated batches ['7', '8'] may not have been counted" in caplog.text

    def test_a_call_that_is_not_permitted_settles_nothing_and_spares_nothing(self, caplog):
        denied = AccessDenied("not you")
        acknowledge = LedgerAcknowledger(Judging(denied), raising(AssertionError()))
        assert acknowledge(["a", "b"]) == {0: denied, 1: denied}

    @pytest.mark.parametrize("error", [Throttled("busy"), ServiceUnavailable("down")])
    def test_a_ledger_that_is_down_leaves_all_to_the_ack_queue(
        self, tracker, batch, sqs, ack_queue, monkeypatch, error
    ):
        group = batch.add(2)
        monkeypatch.setattr(tracker.ledger, "mark", raising(error))
        assert tracker.acknowledger()([group[0], Failure(group[1], "torn", KeptMessage("body"))]) == {}
        kept = {"failed": group[1], "reason": "torn", "message": {"body": "body"}}
        assert sent_marks(sqs, ack_queue) == [group[0], kept]

    def test_what_a_busy_ledger_still_leaves_after_its_repeats_goes_there(
        self, tracker, batch, sqs, ack_queue, monkeypatch
    ):
        # Given a ledger that marks the first mark of its first call
        group = batch.add(5)

        def busy(marks):
            first = len(marks) == len(group)
            left = dict.fromkeys(range(int(first), len(marks)), Throttled("slow down"))
            return Marked([Receipt(batch.id, "", batch.row.state, first=1)] if first else [], left=left)

        monkeypatch.setattr(marking, "REPEATS", replace(marking.REPEATS, tries=2))
        monkeypatch.setattr(tracker.ledger, "mark", busy)

        assert tracker.acknowledger()(list(group)) == {}

        assert sent_marks(sqs, ack_queue) == list(group[1:])


class TestQueueAcknowledger:
    @pytest.mark.parametrize(
        ("bad", "error"),
        [
            (Failure("7:g:1", "torn \ud83d"), InvalidRequest),
            (Failure("7:g:1", "torn", source="x" * 2_000), InvalidRequest),
            (Failure("7:g:1", "torn", attempts=-1), InvalidRequest),
            (
                Failure(
                    "7:g:1",
                    "torn",
                    KeptMessage("b", {f"a{n}": MessageAttribute("String", "v") for n in range(11)}),
                ),
                InvalidRequest,
            ),
            (Done("7:g:1", {"rows": 2.5}), InvalidRequest),
            (7, InvalidItemId),
            (Failure("7:g:1", "torn", KeptMessage("x" * 300_000)), RequestTooLarge),
        ],
    )
    def test_a_bad_mark_is_refused_alone_and_all_others_are_sent(self, sqs, ack_queue, bad, error, caplog):
        small = Failure("7:g:2", "torn", KeptMessage("small"), 3, "arn:q")
        found = QueueAcknowledger(sqs, ack_queue)(["7:g:0", bad, small])
        assert {place: type(why) for place, why in found.items()} == {1: error}
        assert sent_marks(sqs, ack_queue) == [
            "7:g:0",
            {
                "failed": "7:g:2",
                "reason": "torn",
                "message": {"body": "small"},
                "attempts": 3,
                "source": "arn:q",
            },
        ]
        assert ("kept when it reaches its dead-letter queue" in caplog.text) is (error is RequestTooLarge)
        assert "xxx" not in caplog.text

    def test_an_id_with_half_a_surrogate_pair_harms_no_other(self, sqs, ack_queue):
        assert QueueAcknowledger(sqs, ack_queue)(["7:g:0", "7:\ud83d:0"]) == {}
        assert sent_marks(sqs, ack_queue) == ["7:g:0", "7:\ud83d:0"]

    def test_a_queue_that_is_down_leaves_the_rest(self, sqs, ack_queue, monkeypatch):
        # Given a queue that takes one message and then does not answer
        send, answers = sqs.send_message, iter([None])

        def lossy(**request):
            for _ in answers:
                return send(**request)
            raise EndpointConnectionError(endpoint_url=ack_queue)

        monkeypatch.setattr(sqs, "send_message", lossy)
        marks = [Done(f"7:g:{n}", {"rows": n}) if n % 2 else f"7:g:{n}" for n in range(100)]
        found = QueueAcknowledger(sqs, ack_queue, message_bytes=500)(marks)
        # Then what it took does not come again, and each mark has what it brings
        [message] = received(sqs, ack_queue)
        assert len(message["Body"]) <= 500
        sent = json.loads(message["Body"])["marks"]
        assert sent[:2] == ["7:g:0", {"item": "7:g:1", "totals": {"rows": 1}}]
        assert list(found) == list(range(len(sent), 100))
        assert {type(error) for error in found.values()} == {ServiceUnavailable}
