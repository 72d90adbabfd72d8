"""A batch as its producer uses it: items are added, their messages sent, failures named."""

from __future__ import annotations

import time

import pytest

from fanin import Message, SendFailed
from fanin.adapters.backoff import Backoff
from fanin.domain.batch import State
from fanin.errors import InvalidRequest, RequestTooLarge, Throttled
from tests.unit.client.conftest import received
from tests.unit.client.producing.conftest import items_of, partly


class TestSend:
    def test_each_message_carries_an_item_of_the_batch(self, tracker, sqs, queue):
        # When
        with tracker.batch() as batch:
            sent = batch.send(queue, (f"row {n}" for n in range(25)))
        # Then
        messages = received(sqs, queue)
        assert sent == 25
        assert {message["Body"] for message in messages} == {f"row {n}" for n in range(25)}
        assert tracker.ack(items_of(messages))[0].complete

    def test_a_message_too_large_is_refused_and_cancels_the_batch(self, tracker, queue):
        with pytest.raises(RequestTooLarge, match="S3"), tracker.batch() as batch:
            batch.send(queue, ["x" * 3_000], request_bytes=3_000)
        assert batch.status().batch.state is State.CANCELLED

    def test_items_are_added_block_by_block_as_the_stream_is_read(self, tracker, queue):
        # Given
        read = []
        with tracker.batch() as batch:
            # When
            batch.send(queue, (read.append(n) or str(n) for n in range(7)), block=3)
        # Then
        assert read == list(range(7))
        assert batch.status().batch.items == 7

    def test_an_empty_stream_completes_at_once(self, tracker, queue):
        with tracker.batch() as batch:
            assert batch.send(queue, []) == 0
        assert batch.row.state is State.COMPLETE

    def test_an_error_of_the_stream_cancels_the_batch(self, tracker, queue):
        def rows():
            yield "one"
            raise OSError("disk gone")

        with pytest.raises(OSError, match="disk gone"), tracker.batch() as batch:
            batch.send(queue, rows())
        assert batch.status().batch.state is State.CANCELLED

    def test_progress_is_told_request_by_request(self, tracker, queue):
        told = []
        with tracker.batch() as batch:
            batch.send(queue, ["x"] * 25, progress=told.append)
        assert sorted(told) == [5, 10, 10]


@pytest.mark.parametrize("one", ["order-17", b"order-17", {"sku": 1, "price": 2}, Message("order-17")])
def test_one_message_instead_of_several_is_refused_and_adds_nothing(tracker, queue, one):
    with tracker.batch() as batch, pytest.raises(InvalidRequest, match=r"write \[message\]"):
        batch.send(queue, one)
    assert tracker.status(batch.id).batch.items == 0


class TestBounded:
    def test_a_full_batch_holds_the_producer_until_items_are_done(self, tracker, sqs, queue, monkeypatch):
        # Given: a batch of at most eight pending items, and a consumer that works whenever the producer waits
        done = []

        def consume(self, attempt, at_least=None):
            assert attempt < 500, "the producer waits for messages that it has not sent"
            time.sleep(0.002)  # the last messages may be on their way
            messages = received(sqs, queue)
            done.append(len(messages))
            tracker.ack(items_of(messages))

        monkeypatch.setattr(Backoff, "wait", consume)
        # When
        with tracker.batch(limit=8) as batch:
            batch.send(queue, map(str, range(50)))
        # Then
        tracker.ack(items_of(received(sqs, queue)))
        assert max(done) <= 8
        assert batch.status().batch.state is State.COMPLETE

    @pytest.mark.parametrize("limit", [1, 2, 3])
    def test_the_smallest_batches_do_not_hang(self, tracker, sqs, queue, monkeypatch, limit):
        def consume(self, attempt, at_least=None):
            tracker.ack(items_of(received(sqs, queue)))

        monkeypatch.setattr(Backoff, "wait", consume)
        with tracker.batch(limit=limit) as batch:
            assert batch.send(queue, map(str, range(9))) == 9

    def test_an_addition_that_is_throttled_is_tried_again_under_its_key(self, tracker, queue, monkeypatch):
        # Given: a ledger whose answer is lost once, after it has added
        add, keys = tracker.ledger.add, []

        def throttled_once(batch_id, count, *, key):
            group = add(batch_id, count, key=key)
            keys.append(key)
            if len(keys) == 1:
                raise Throttled("slow down")
            return group

        monkeypatch.setattr(tracker.ledger, "add", throttled_once)
        # When
        with tracker.batch() as batch:
            batch.send(queue, ["a", "b"])
        # Then
        assert keys[0] == keys[1]
        assert batch.status().batch.items == 2

    def test_an_addition_that_is_throttled_for_good_is_given_up(self, tracker, queue, monkeypatch):
        def throttled(batch_id, count, *, key):
            raise Throttled("slow down")

        monkeypatch.setattr(tracker.ledger, "add", throttled)
        with pytest.raises(Throttled), tracker.batch() as batch:
            batch.send(queue, ["a"])
        assert batch.status().batch.state is State.CANCELLED


class TestFailures:
    def test_what_the_queue_refuses_for_good_is_named_after_all_the_rest_is_sent(
        self, tracker, faulty, sqs, queue
    ):
        # Given
        faulty.instead(
            "send_message_batch", partly(lambda entry: entry["MessageBody"] == "bad", sender_fault=True)
        )
        # When
        with pytest.raises(SendFailed, match=r"1 of 31 messages .*sorry") as raised, tracker.batch() as batch:
            batch.send(queue, ["bad", *map(str, range(30))])
        # Then
        [(item, reason)] = raised.value.items.items()
        assert item.startswith(f"{batch.id}:")
        assert reason == "InternalError: sorry"
        assert len(received(sqs, queue)) == 30
        attempts = [
            entry
            for name, request in faulty.requests
            if name == "send_message_batch"
            for entry in request["Entries"]
            if entry["MessageBody"] == "bad"
        ]
        assert len(attempts) == 1

    def test_an_entry_that_never_gets_through_is_given_up(self, tracker, faulty, queue):
        faulty.instead("send_message_batch", partly(lambda entry: entry["MessageBody"] == "3"))
        with pytest.raises(SendFailed) as raised, tracker.batch() as batch:
            batch.send(queue, map(str, range(5)))
        assert len(raised.value.items) == 1
        assert batch.status().batch.state is State.CANCELLED

    def test_a_caller_may_fail_what_was_not_sent_and_go_on(self, tracker, faulty, queue):
        faulty.instead("send_message_batch", partly(lambda entry: entry["MessageBody"] == "3"))
        with tracker.batch() as batch:
            try:
                batch.send(queue, map(str, range(5)))
            except SendFailed as failed:
                tracker.fail(failed.items, "not sent")
        assert batch.status(exact=True).done_min == 1
        assert batch.row.state is State.CLOSED


def test_blocks_of_a_batch_with_a_limit_are_a_quarter_of_it(tracker, queue, monkeypatch):
    counts = []
    add = tracker.ledger.add
    monkeypatch.setattr(tracker.ledger, "add", lambda b, n, *, key: counts.append(n) or add(b, n, key=key))
    with tracker.batch(limit=20) as batch:
        batch.send(queue, map(str, range(12)))
    assert counts == [5, 5, 2]


def test_it_shows_its_state_as_last_closed_or_cancelled(tracker):
    batch = tracker.attach(tracker.open(user_key="k").batch_id)
    assert repr(batch) == f"TrackedBatch({batch.id}, open)"
    group = batch.add(1, key="once")
    assert batch.add(1, key="once") == group
    assert batch.close().state is State.CLOSED
    assert repr(batch) == f"TrackedBatch({batch.id}, closed)"
    assert batch.cancel().state is State.CANCELLED
    assert batch.row.state is State.CANCELLED
    assert batch.wait(timeout=0).batch.state is State.CANCELLED


def test_items_may_be_failed_through_it(tracker):
    batch = tracker.attach(tracker.open().batch_id)
    group = batch.add(2)
    [receipt] = batch.fail(group, "not sent")
    assert receipt.first == 2
    assert {failure.reason for failure in tracker.iter_failures(batch.id)} == {"not sent"}
