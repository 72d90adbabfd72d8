"""Crashes of consumers, functions and connections, and bad records: nothing is lost or done twice."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fanin import names
from fanin.app.ports.words import Clear, WordKey
from fanin.client.https.transport import HttpsRequest, SigV4
from fanin.domain.tree import Tree
from fanin.local import environment
from tests.e2e.deployment import eventually

ROOT = Path(__file__).parents[2]


class TestConsumers:
    @pytest.fixture
    def killed(self, stack, caller):
        """Runs a consumer in a process of its own, and kills it at a point of its work."""

        def kill(queue_url: str, point: str) -> None:
            keys = caller.get_credentials()
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.crashing_consumer", queue_url, point],
                cwd=ROOT,
                env={
                    **os.environ,
                    **environment(stack),
                    "AWS_ACCESS_KEY_ID": keys.access_key,
                    "AWS_SECRET_ACCESS_KEY": keys.secret_key,
                },
                stdout=subprocess.PIPE,
                text=True,
            )
            with process:
                try:
                    assert process.stdout.readline() == "there\n"
                finally:
                    process.kill()

        return kill

    @pytest.mark.parametrize(("point", "done"), [("before", 0), ("after", 3)])
    def test_killed_at_its_ack(self, tracker, queue_url, subscriber, deployment, killed, point, done):
        # Given a closed batch, and a consumer that was killed before its ack, or between that and the delete
        with tracker.batch() as batch:
            batch.send(queue_url, ["one", "two", "three"])
        killed(queue_url, point)
        assert tracker.status(batch.id, exact=True).done_min == done
        assert deployment.messages(queue_url) == 3
        # When the messages come again, to another consumer
        handled = []
        tracker.consumer(
            queue_url, lambda message: handled.append(message.body), wait=5, skip_ended=False
        ).run(until=lambda: len(handled) == 3)
        # Then the batch is complete, the queue is empty, and there is one event
        assert sorted(handled) == ["one", "three", "two"]
        assert subscriber.only_event_of(batch.id)["detail-type"] == "Batch Completed"
        assert deployment.messages(queue_url) == 0


class TestFunctions:
    def test_the_api_times_out_after_each_of_its_writes(self, tracker, deployment, subscriber):
        # Given an API that gets no answer to its write, and so gives none
        with deployment.on_a_slow_wire("api") as wire:
            batch_id = tracker.open().batch_id
            # When items are added and acked, each repeated by the library
            wire.keep_next("TransactWriteItems")
            group = tracker.add(batch_id, 70)
            wire.keep_next("UpdateItem")
            (receipt,) = tracker.ack(group[:64])
            tracker.ack(group[64:])
            row = tracker.close(batch_id)
            assert wire.kept == 2
        # Then the items were added once, the first ack did its work, and the batch completed once
        assert row.items == 70
        assert (receipt.first, len(receipt.duplicates)) == (0, 64)
        assert row.state == "complete"
        assert subscriber.only_event_of(batch_id)["detail"]["items"] == 70

    def test_the_ack_queue_s_function_times_out_after_its_write(self, tracker, deployment, subscriber):
        # Given a function that gets no answer to its write
        with tracker.batch() as batch:
            group = batch.add(5)
        queue = deployment.queue("AckQueue")
        with (
            deployment.queue_attributes(queue, VisibilityTimeout="5"),
            deployment.on_a_slow_wire("acks") as wire,
        ):
            wire.keep_next("UpdateItem")
            # When items are acked through the queue
            tracker.ack_later(group)
            # Then the message comes again, and the batch completes once
            event = subscriber.only_event_of(batch.id)
            eventually(lambda: deployment.messages(queue) == 0)
            assert wire.kept == 1
        assert event["detail-type"] == "Batch Completed"


class TestConnections:
    def test_cut_after_the_request(self, tracker, stack, caller, deployment):
        # Given a client that sends an ack, and disconnects before the answer
        with tracker.batch() as batch:
            group = batch.add(3)
        body = json.dumps({"marks": list(group[:2])}).encode()
        url = urlsplit(f"{stack.api_url}/v1/acks")
        request = HttpsRequest("POST", url.geturl(), {"Content-Type": "application/json"}, body)
        headers = {
            **SigV4(caller, stack.region)(request),
            "Host": url.netloc,
            "Content-Length": str(len(body)),
        }
        lines = [
            f"POST {url.path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in headers.items()),
            "",
            "",
        ]
        with socket.create_connection((url.hostname, url.port)) as connection:
            connection.sendall("\r\n".join(lines).encode() + body)
        eventually(lambda: tracker.status(batch.id, exact=True).done_min == 2)
        # When the client repeats it, Then it learns that it was done, and the rest goes on
        (receipt,) = tracker.ack(group[:2])
        assert (receipt.first, len(receipt.duplicates)) == (0, 2)
        (receipt,) = tracker.ack(group)
        assert receipt.complete


class TestRecords:
    """The streams: records that cannot be handled do not block others."""

    @staticmethod
    def nonsense(batch_id: int) -> list[dict]:
        """A malformed batch row, before and after it ended."""
        rows = ({names.BATCH_ID: {"N": str(batch_id)}, names.STATE: {"S": s}} for s in ("open", "complete"))
        return list(rows)

    def test_poison_ends_in_the_dead_letters_and_stops_nobody(self, tracker, stack, deployment, subscriber):
        # Given a batch whose parent is nonsense
        dynamodb, retries = stack.client("dynamodb"), deployment.queue("NotifierRetriesQueue")
        lost = tracker.attach(tracker.open().batch_id)
        dynamodb.update_item(
            TableName=stack.batches_table,
            Key={names.BATCH_ID: {"N": str(lost.id)}},
            UpdateExpression="SET parent_item = :nonsense",
            ExpressionAttributeValues={":nonsense": {"S": "nobody's item"}},
        )
        with deployment.queue_attributes(retries, VisibilityTimeout="0"):
            # When it ends, and also a malformed batch row, and after them a batch completes
            lost.cancel()
            for row in self.nonsense(4242):
                dynamodb.put_item(TableName=stack.batches_table, Item=row)
            with tracker.batch() as batch:
                group = batch.add(1)
            tracker.ack(group)
            # Then its event arrives
            assert subscriber.only_event_of(batch.id)["detail-type"] == "Batch Completed"
            # And the two records end in the dead letters, where an alarm sees them
            dead = deployment.queue("NotifierRetriesDeadLetters")
            eventually(lambda: deployment.messages(dead) == 2)
            assert deployment.messages(retries) == 0
        records = [json.loads(message["Body"]) for message in deployment.receive(dead)]
        ids = {int(record["dynamodb"]["Keys"][names.BATCH_ID]["N"]) for record in records}
        assert ids == {4242, lost.id}
        # Its event was told all the same: it does not depend on the parent
        assert subscriber.told_of(lost.id)

    def test_a_bus_that_is_out_for_a_while_hears_of_all_in_the_end(self, tracker, deployment, subscriber):
        # Given a notifier that cannot reach the bus
        retries = deployment.queue("NotifierRetriesQueue")
        with deployment.queue_attributes(retries, VisibilityTimeout="2"):
            with deployment.without_permission("notifier", "events:PutEvents"):
                # When batches complete
                batches = []
                for _ in range(3):
                    with tracker.batch() as batch:
                        group = batch.add(1)
                    tracker.ack(group)
                    batches.append(batch.id)
                eventually(lambda: deployment.messages(retries) == 3)
                assert not any(map(subscriber.told_of, batches))
            # Then, with the bus back, each is told once
            events = subscriber.only_events_of(batches)
        assert {event["detail-type"] for event in events.values()} == {"Batch Completed"}
        assert eventually(lambda: deployment.messages(retries) == 0)
        assert deployment.messages(deployment.queue("NotifierRetriesDeadLetters")) == 0


class TestSettling:
    def test_the_stream_carries_on_where_an_acker_died(self, tracker, direct, subscriber):
        # Given a closed batch, whose tree has three levels
        items = 4_160
        with tracker.batch() as batch:
            batch.add(items)
        # When an acker writes all leaves, dies before it writes a parent, and nobody comes back
        self.clear(direct, batch, range(items))
        # Then the batch completes nevertheless
        assert subscriber.only_event_of(batch.id)["detail-type"] == "Batch Completed"
        verdict = tracker.verify(batch.id)
        assert (verdict.pending, verdict.disagreements) == (0, ())

    @staticmethod
    def clear(direct, batch, ordinals) -> None:
        """Clear bits of the leaves only."""
        marks = Tree().masks(ordinals)
        expires_at = batch.row.expires_at
        clears = [Clear(WordKey(batch.id, 0, number), mask, expires_at) for number, mask in marks.items()]
        direct.ledger.ports.words.clear(clears)

    def test_a_settler_that_fails_for_a_while_loses_nothing(self, tracker, direct, deployment, subscriber):
        # Given a settler that may not write
        retries = deployment.queue("SettlerRetriesQueue")
        with tracker.batch() as batch:
            batch.add(128)
        with deployment.queue_attributes(retries, VisibilityTimeout="2"):
            with deployment.without_permission("settler", "dynamodb:UpdateItem"):
                # When it is needed
                self.clear(direct, batch, range(128))
                eventually(lambda: deployment.messages(retries))
            # Then it does its work as soon as it can
            assert subscriber.only_event_of(batch.id)["detail-type"] == "Batch Completed"
