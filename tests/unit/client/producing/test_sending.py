"""Producers: what reaches the queue, and what happens when the queue does not take it."""

from __future__ import annotations

import threading
import time
from itertools import islice

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from fanin import Message, SendFailed
from fanin.adapters.backoff import Backoff
from fanin.client.producing.sender import Sender
from fanin.domain.batch import State
from fanin.errors import AccessDenied, NotConfigured, RequestTooLarge, ServiceUnavailable, Throttled
from tests.unit.client.conftest import received


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(Backoff, "wait", lambda self, attempt, at_least=None: None)


def items_of(messages):
    return {message["MessageAttributes"]["fanin-item"]["StringValue"] for message in messages}


def partly(refuse, *, sender_fault=False):
    """SendMessageBatch that refuses the entries for which ``refuse`` says so, and sends the others."""

    def answer(real, arguments):
        entries = arguments["Entries"]
        bad = [entry for entry in entries if refuse(entry)]
        good = [entry for entry in entries if entry not in bad]
        result = real(**{**arguments, "Entries": good}) if good else {}
        failed = [
            {"Id": entry["Id"], "SenderFault": sender_fault, "Code": "InternalError", "Message": "sorry"}
            for entry in bad
        ]
        return {**result, "Failed": failed}

    return answer


class TestSending:
    def test_each_message_carries_an_item_of_the_batch(self, tracker, sqs, queue):
        # When
        with tracker.batch() as batch:
            sent = batch.send(queue, (f"row {n}" for n in range(25)))
        # Then
        messages = received(sqs, queue)
        assert sent == 25
        assert {message["Body"] for message in messages} == {f"row {n}" for n in range(25)}
        assert tracker.ack(items_of(messages))[0].complete

    def test_they_go_in_tens(self, tracker, faulty, queue):
        with tracker.batch() as batch:
            batch.send(queue, ["x"] * 25)
        sizes = [len(request["Entries"]) for name, request in faulty.requests if name == "send_message_batch"]
        assert sorted(sizes) == [5, 10, 10]

    def test_bodies_attributes_and_delay(self, tracker, sqs, queue):
        # Given
        messages = [
            {"name": "Zürich", "n": 1},
            Message("late", delay=900),
            Message("with attributes", attributes={"n": 1.5, "raw": b"\x00", "kind": "mine"}),
        ]
        # When
        with tracker.batch() as batch:
            batch.send(queue, messages, attributes={"kind": "all", "source": "test"})
        # Then
        found = {message["Body"]: message["MessageAttributes"] for message in received(sqs, queue)}
        assert found.keys() == {'{"name": "Zürich", "n": 1}', "with attributes"}
        attributes = found["with attributes"]
        assert attributes["n"] == {"StringValue": "1.5", "DataType": "Number"}
        assert attributes["raw"] == {"BinaryValue": b"\x00", "DataType": "Binary"}
        assert attributes["kind"]["StringValue"] == "mine"
        assert attributes["source"]["StringValue"] == "test"

    def test_requests_stay_within_their_bytes(self, tracker, faulty, queue):
        # Given: three messages of which two fill a request
        with tracker.batch() as batch:
            # When
            batch.send(queue, ["ü" * 600] * 3, request_bytes=3_000)
        # Then
        requests = [request for name, request in faulty.requests if name == "send_message_batch"]
        assert sorted(len(request["Entries"]) for request in requests) == [1, 2]

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


class TestFifo:
    def test_order_holds_and_repeats_are_dropped(self, tracker, sqs, fifo_queue, faulty):
        # When
        with tracker.batch() as batch:
            batch.send(fifo_queue, map(str, range(35)), workers=8)
        # Then
        requests = [request for name, request in faulty.requests if name == "send_message_batch"]
        entries = [entry for request in requests for entry in request["Entries"]]
        assert [entry["MessageBody"] for entry in entries] == [str(n) for n in range(35)]
        assert {entry["MessageGroupId"] for entry in entries} == {str(batch.id)}
        dedup = [entry["MessageDeduplicationId"] for entry in entries]
        assert set(dedup) == items_of(
            [{"MessageAttributes": entry["MessageAttributes"]} for entry in entries]
        )

    @pytest.mark.parametrize(("name", "most"), [("fifo_queue", 1), ("queue", 4)])
    def test_requests_overlap_only_where_order_does_not_matter(self, request, tracker, faulty, name, most):
        # Given: a queue that takes its time
        queue_url, running, seen = request.getfixturevalue(name), set(), []

        def slow(real, arguments):
            running.add(threading.get_ident())
            seen.append(len(running))
            time.sleep(0.02)
            running.discard(threading.get_ident())
            return real(**arguments)

        faulty.instead("send_message_batch", slow)
        # When
        with tracker.batch() as batch:
            batch.send(queue_url, map(str, range(120)), workers=4)
        # Then
        assert max(seen) == most

    def test_groups_and_deduplication_may_be_the_callers(self, tracker, faulty, fifo_queue):
        with tracker.batch() as batch:
            batch.send(fifo_queue, [Message("x", group_id="g", dedup_id="d")])
        [entry] = next(r for name, r in faulty.requests if name == "send_message_batch")["Entries"]
        assert (entry["MessageGroupId"], entry["MessageDeduplicationId"]) == ("g", "d")


class TestFailures:
    @pytest.fixture
    def producer(self, tracker, faulty, queue):
        return tracker, faulty, queue

    def test_only_entries_that_failed_are_sent_again(self, tracker, faulty, sqs, queue):
        # Given: a queue that refuses each message the first time
        seen: set[str] = set()

        def once(entry):
            body = entry["MessageBody"]
            return not (body in seen or seen.add(body)) and int(body) % 3 == 0

        faulty.instead("send_message_batch", partly(once))
        # When
        with tracker.batch() as batch:
            assert batch.send(queue, map(str, range(30))) == 30
        # Then
        bodies = [message["Body"] for message in received(sqs, queue)]
        assert sorted(bodies, key=int) == [str(n) for n in range(30)]

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

    @pytest.mark.parametrize("fault", [True, False])
    def test_a_strict_sender_gives_up_only_what_can_never_be_sent(self, faulty, queue, fault):
        # Given: a queue that never takes one message, for its own fault or for the queue's
        faulty.instead(
            "send_message_batch", partly(lambda entry: entry["MessageBody"] == "3", sender_fault=fault)
        )
        sender = Sender(
            faulty, queue, group_id="g", strict=True, attempts=2, backoff=Backoff(sleep=lambda _: None)
        )
        block = [(f"item {n}", Message(str(n))) for n in range(5)]
        # When, then
        if fault:
            assert list(sender.send([block])) == [(4, {"item 3": "InternalError: sorry"})]
        else:
            with pytest.raises(Throttled, match="InternalError: sorry"):
                list(sender.send([block]))

    def test_a_caller_may_fail_what_was_not_sent_and_go_on(self, tracker, faulty, queue):
        faulty.instead("send_message_batch", partly(lambda entry: entry["MessageBody"] == "3"))
        with tracker.batch() as batch:
            try:
                batch.send(queue, map(str, range(5)))
            except SendFailed as failed:
                tracker.fail(failed.items, "not sent")
        assert batch.status(exact=True).done_min == 1
        assert batch.row.state is State.CLOSED

    def test_a_lost_answer_is_repeated_whole(self, tracker, faulty, sqs, fifo_queue):
        # Given: the first answer gets lost after the queue took the messages
        lost = threading.Event()

        def answer(real, arguments):
            result = real(**arguments)
            if not lost.is_set():
                lost.set()
                raise EndpointConnectionError(endpoint_url="https://sqs")
            return result

        faulty.instead("send_message_batch", answer)
        # When
        with tracker.batch() as batch:
            batch.send(fifo_queue, ["a", "b"])
        # Then: FIFO drops the repeat by the item id
        assert [message["Body"] for message in received(sqs, fifo_queue)] == ["a", "b"]

    @pytest.mark.parametrize(
        ("refusal", "error", "tries"),
        [
            (("AccessDenied", 403), AccessDenied, 1),
            (("AWS.SimpleQueueService.NonExistentQueue", 400), NotConfigured, 1),
            (("ServiceUnavailable", 503), ServiceUnavailable, 6),
        ],
    )
    def test_a_queue_that_cannot_be_used_ends_the_send(self, producer, refusal, error, tries):
        # Given
        tracker, faulty, queue = producer
        code, status = refusal

        def refuse(real, arguments):
            response = {
                "Error": {"Code": code, "Message": ""},
                "ResponseMetadata": {"HTTPStatusCode": status},
            }
            raise ClientError(response, "SendMessageBatch")

        faulty.instead("send_message_batch", refuse)
        # When
        with pytest.raises(error, match="work"), tracker.batch() as batch:
            batch.send(queue, ["x"])
        # Then
        assert len([name for name, _ in faulty.requests if name == "send_message_batch"]) == tries

    def test_a_stream_without_end_is_not_read_ahead(self, tracker, faulty, queue):
        # Given
        read = 0

        def rows():
            nonlocal read
            while True:
                read += 1
                yield [(str(read), Message("x"))]

        sender = Sender(faulty, queue, group_id="g", workers=2)
        # When
        answers = list(islice(sender.send(rows()), 5))
        # Then
        assert answers == [(1, {})] * 5
        assert read < 20
