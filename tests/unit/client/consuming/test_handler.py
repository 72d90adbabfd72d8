"""Consumers, on Lambda and polling: what is acknowledged, what fails, and what comes again."""

from __future__ import annotations

import json
import logging

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from fanin import Failure, ItemFailed
from fanin.adapters.backoff import Backoff
from fanin.client.consuming.acknowledging import ItemOutcome, unacknowledged
from fanin.domain.batch import State
from fanin.errors import BatchNotFound, InvalidItemId, NotConfigured, Throttled
from tests.unit.client.conftest import received

ARN = "arn:aws:sqs:us-east-1:123456789012:work"


def record(n, item=None, *, body=None, group=None, arn=ARN):
    """A record of an SQS event, as Lambda writes it."""
    attributes = {"ApproximateReceiveCount": "1"} | ({"MessageGroupId": group} if group else {})
    carried = {"fanin-item": {"stringValue": item, "dataType": "String"}} if item else {}
    return {
        "messageId": f"m{n}",
        "receiptHandle": f"r{n}",
        "body": str(n) if body is None else body,
        "attributes": attributes,
        "messageAttributes": carried,
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": "us-east-1",
    }


def event(items, **more):
    return {"Records": [record(n, item, **more) for n, item in enumerate(items)]}


def failed(response):
    return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]


@pytest.fixture
def batch(tracker):
    return tracker.attach(tracker.open(user_key="k").batch_id)


class TestLambda:
    def test_a_round_is_acknowledged_by_one_call(self, tracker, batch, monkeypatch):
        # Given
        calls = []
        ack = tracker.ledger.ack
        monkeypatch.setattr(tracker.ledger, "ack", lambda *a, **k: calls.append(a) or ack(*a, **k))
        handled = []

        @tracker.sqs_handler
        def handle(message):
            handled.append((message.body, message.item))

        group = batch.add(10)
        batch.close()
        # When
        response = handle(event(group))
        # Then
        assert response == {"batchItemFailures": []}
        assert handled == [(str(n), item) for n, item in enumerate(group)]
        assert len(calls) == 1
        assert batch.status().batch.state is State.COMPLETE

    def test_an_error_brings_back_its_message_only(self, tracker, batch):
        @tracker.sqs_handler
        def handle(message):
            if message.body in "37":
                raise ValueError(message.body)

        group = batch.add(10)
        assert failed(handle(event(group))) == ["m3", "m7"]
        assert [span.start for span in tracker.iter_missing(batch.id)] == [3, 7]

    def test_all_failing_is_an_answer_too(self, tracker, batch):
        @tracker.sqs_handler
        def handle(message):
            raise ValueError(message.body)

        assert failed(handle(event(batch.add(2)))) == ["m0", "m1"]

    def test_item_failed_marks_it_failed_and_deletes_the_message(self, tracker, batch):
        @tracker.sqs_handler
        def handle(message):
            if message.body == "1":
                raise ItemFailed("no such airport \udcff")

        group = batch.add(3)
        batch.close()
        assert failed(handle(event(group))) == []
        [failure] = tracker.iter_failures(batch.id)
        assert (failure.ordinal, failure.item, failure.reason) == (1, group[1], "no such airport ?")
        assert batch.status().batch.state is State.COMPLETE

    def test_a_scatter_s_message_is_done_by_a_reply_and_not_by_being_handled(self, tracker, batch):
        # Given messages that name a queue for replies, of which one can never be answered
        @tracker.sqs_handler
        def handle(message):
            if message.body == "1":
                raise ItemFailed("log is torn")

        asked = event(batch.add(3))
        for one in asked["Records"]:
            one["messageAttributes"]["fanin-reply-to"] = {"stringValue": "https://sqs/replies"}
        # When they are handled
        assert failed(handle(asked)) == []
        # Then the one is failed, and the others wait for their replies
        assert [failure.ordinal for failure in tracker.iter_failures(batch.id)] == [1]
        assert [(span.start, span.stop) for span in tracker.iter_missing(batch.id)] == [(0, 1), (2, 3)]

    def test_a_message_without_an_item_is_handled_and_that_is_all(self, tracker):
        handled = []

        @tracker.sqs_handler
        def handle(message):
            handled.append(message.item)
            if message.body == "1":
                raise ItemFailed("not wanted")

        assert failed(handle(event([None, None]))) == []
        assert handled == [None, None]

    def test_what_could_not_be_acknowledged_comes_again_all_of_it(self, tracker, batch, monkeypatch):
        # Given: a ledger that is out of reach
        def throttled(*args, **kwargs):
            raise Throttled("slow down")

        handle = tracker.sqs_handler(lambda message: None)
        group = batch.add(3)
        monkeypatch.setattr(tracker.ledger, "ack", throttled)
        # When
        response = handle(event([*group, None]))
        # Then: the message without an item is not among them
        assert failed(response) == ["m0", "m1", "m2"]

    def test_a_refused_id_spoils_only_itself(self, tracker, batch, caplog):
        # Given: a forged id among nine genuine ones
        group = batch.add(10)
        other = tracker.add(tracker.open().batch_id, 10)
        forged = f"{batch.id}:{other.id}:4"
        items = [*group[:4], forged, *group[5:]]
        handle = tracker.sqs_handler(lambda message: None)
        # When
        response = handle(event(items))
        # Then
        assert failed(response) == ["m4"]
        assert [span.start for span in tracker.iter_missing(batch.id)] == [4]
        assert forged in caplog.text

    def test_through_the_ack_queue(self, tracker, batch, sqs, ack_queue):
        # Given
        @tracker.sqs_handler(via="queue")
        def handle(message):
            if message.body == "1":
                raise ItemFailed("torn")

        group = batch.add(3)
        # When
        assert failed(handle(event(group))) == []
        # Then: nothing is marked yet; one message tells it all
        [message] = received(sqs, ack_queue)
        assert json.loads(message["Body"]) == {
            "items": [group[0], group[2]],
            "failures": [{"item": group[1], "reason": "torn"}],
        }
        assert batch.status().done_max == 0

    def test_an_ack_queue_that_does_not_answer_brings_all_back(self, tracker, batch, faulty):
        def cut(real, arguments):
            raise EndpointConnectionError(endpoint_url="https://sqs")

        faulty.instead("send_message", cut)
        handle = tracker.sqs_handler(via="queue")(lambda message: None)
        assert failed(handle(event(batch.add(2)))) == ["m0", "m1"]

    def test_fifo_stops_a_group_at_its_first_failure(self, tracker, batch):
        # Given: two groups, the second message of group a fails
        handled = []

        @tracker.sqs_handler
        def handle(message):
            handled.append(message.body)
            if message.body == "a2":
                raise ValueError

        group = batch.add(6)
        names = ["a1", "b1", "a2", "b2", "a3", "b3"]
        records = [
            record(name, item, group=name[0], arn=f"{ARN}.fifo")
            for name, item in zip(names, group, strict=True)
        ]
        # When
        response = handle({"Records": records})
        # Then
        assert failed(response) == ["ma2", "ma3"]
        assert handled == ["a1", "b1", "a2", "b2", "b3"]
        assert [span.start for span in tracker.iter_missing(batch.id)] == [2, 4]

    def test_a_fifo_round_that_fails_whole_is_an_answer_too(self, tracker, batch):
        handle = tracker.sqs_handler(lambda message: 1 / 0)
        assert failed(handle(event(batch.add(2), group="g", arn=f"{ARN}.fifo"))) == ["m0", "m1"]

    def test_the_function_keeps_its_name_and_can_be_tested_alone(self, tracker):
        @tracker.sqs_handler
        def handle(message):
            """Does it."""
            return message

        assert (handle.__name__, handle.__doc__, handle.handle("x")) == ("handle", "Does it.", "x")

    def test_without_powertools_it_says_what_to_install(self, tracker, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "aws_lambda_powertools.utilities", None)
        with pytest.raises(NotConfigured, match=r"fanin\[lambda\]"):
            tracker.sqs_handler(lambda message: None)(event([None]))


class TestPolling:
    @pytest.fixture
    def sent(self, tracker, queue):
        with tracker.batch() as batch:
            batch.send(queue, map(str, range(5)))
        return batch

    def test_it_acknowledges_and_then_deletes(self, tracker, queue, sent, sqs, faulty):
        # Given
        order = []
        ack = tracker.ledger.ack
        tracker.ledger.ack = lambda *a, **k: order.append("ack") or ack(*a, **k)
        faulty.instead("delete_message_batch", lambda real, a: order.append("delete") or real(**a))
        # When
        consumer = tracker.consumer(queue, lambda message: None, wait=0)
        received_in_all = consumer.run(until=lambda: sent.status().batch.state.terminal)
        # Then
        assert received_in_all == 5
        assert order == ["ack", "delete"] * (len(order) // 2)
        assert received(sqs, queue) == []

    def test_an_error_leaves_the_message_to_the_queue(self, tracker, queue, sent, sqs, caplog):
        def handle(message):
            if message.body == "3":
                raise ValueError("odd")

        tracker.consumer(queue, handle, wait=0, visibility_timeout=0).poll()
        assert "odd" in caplog.text
        assert [message["Body"] for message in received(sqs, queue)] == ["3"]
        assert sent.status(exact=True).done_min == 4

    def test_what_could_not_be_acknowledged_is_not_deleted(self, tracker, queue, sent, sqs, monkeypatch):
        def throttled(*args, **kwargs):
            raise Throttled("slow down")

        monkeypatch.setattr(tracker.ledger, "ack", throttled)
        tracker.consumer(queue, lambda message: None, wait=0, visibility_timeout=0).poll()
        assert len(received(sqs, queue)) == 5

    def test_a_message_not_deleted_is_a_duplicate_and_no_harm(self, tracker, queue, sent, faulty, caplog):
        # Given: a queue that loses every deletion
        def keep(real, arguments):
            return {
                "Failed": [{"Id": entry["Id"], "Code": "InternalError"} for entry in arguments["Entries"]]
            }

        faulty.instead("delete_message_batch", keep)
        consumer = tracker.consumer(queue, lambda message: None, wait=0, visibility_timeout=0)
        # When
        consumer.poll()
        consumer.poll()
        # Then
        assert sent.status().batch.state is State.COMPLETE
        assert "comes again" in caplog.text

    def test_fifo_stops_a_group_at_its_first_failure(self, tracker, fifo_queue):
        # Given
        handled = []

        def handle(message):
            handled.append(message.body)
            if message.body == "1":
                raise ValueError

        with tracker.batch() as batch:
            batch.send(fifo_queue, map(str, range(3)))
        # When
        tracker.consumer(fifo_queue, handle, wait=0).poll()
        # Then
        assert handled == ["0", "1"]
        assert [span.start for span in tracker.iter_missing(batch.id)] == [1]

    def test_it_goes_on_when_the_queue_does_not_answer(self, tracker, queue, sent, faulty, monkeypatch):
        # Given
        waits = []
        monkeypatch.setattr(Backoff, "wait", lambda self, attempt, at_least=None: waits.append(attempt))
        answers = iter([503, 503, 200])

        def answer(real, arguments):
            if next(answers) == 200:
                return real(**arguments)
            response = {"Error": {"Code": "X", "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": 503}}
            raise ClientError(response, "ReceiveMessage")

        faulty.instead("receive_message", answer)
        consumer = tracker.consumer(queue, lambda message: None, wait=0)
        # When
        consumer.run(until=lambda: sent.status().done_min > 0)
        # Then
        assert waits == [0, 1]


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
