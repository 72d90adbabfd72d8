"""Other ends of batches than by the last ack: deadlines, inactivity, parents and dead letters."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from fanin import names
from tests.e2e.deployment import eventually
from tests.spans import spans

SOON = timedelta(seconds=2)


def schedule_of(stack, batch_id: int):
    """The schedule of a batch's deadline, if there is one."""
    scheduler = stack.client("scheduler")
    listed = scheduler.list_schedules(GroupName=stack.schedule_group, NamePrefix=f"fanin-{batch_id}")
    for schedule in listed["Schedules"]:
        return scheduler.get_schedule(Name=schedule["Name"], GroupName=stack.schedule_group)
    return None


class TestDeadlines:
    def test_times_out(self, tracker, stack, subscriber):
        # Given a batch with a deadline, most of it done
        with tracker.batch(user_key="late", deadline=SOON) as batch:
            group = batch.add(200)
        tracker.ack([group[i] for i in range(200) if i not in (7, 64, 65, 199)])
        assert schedule_of(stack, batch.id)

        # When the deadline comes
        event = subscriber.only_event_of(batch.id)

        # Then the batch has timed out, and the event lists what is missing
        assert event["detail-type"] == "Batch Timed Out"
        assert event["detail"]["id"] == f"{batch.id}.timed_out"
        assert spans(event["detail"]["missing"]) == [[7, 8], [64, 66], [199, 200]]
        assert event["detail"]["missing_more"] is False
        row = tracker.status(batch.id).batch
        assert row.state == "timed_out"
        assert row.ended_at >= row.deadline
        # And nothing of the schedule is left
        assert schedule_of(stack, batch.id) is None

    def test_an_ack_that_comes_later_changes_nothing(self, tracker, deployment, subscriber):
        # Given a batch that has timed out
        with tracker.batch(deadline=SOON) as batch:
            group = batch.add(2)
        subscriber.only_event_of(batch.id)

        # When its items are acked, by a function that has not seen the batch before
        started = time.time()
        tracker.ack_later(group[:2])

        # Then they count as late, and are still missing
        assert eventually(lambda: deployment.metrics("acks", started)) == {names.METRIC_LATE: 2}
        assert [(r.start, r.stop) for r in tracker.missing(batch.id).ranges] == [(0, 2)]
        assert len(subscriber.told_of(batch.id)) == 1

    def test_completes_in_part(self, tracker, subscriber):
        # Given a batch that is to complete at its deadline, whatever is missing
        with tracker.batch(deadline=SOON, on_deadline="complete") as batch:
            group = batch.add(10)
        tracker.ack(group[:8])

        # When the deadline comes
        event = subscriber.only_event_of(batch.id)

        # Then it is complete, and the event lists what is missing
        assert event["detail-type"] == "Batch Completed"
        assert event["detail"]["partial"] is True
        assert spans(event["detail"]["missing"]) == [[8, 10]]

    def test_an_open_batch_too(self, tracker, subscriber):
        # Given a batch that nobody closes
        batch = tracker.attach(tracker.open(deadline=SOON).batch_id)
        batch.add(3)

        # When the deadline comes, Then it ends all the same
        event = subscriber.only_event_of(batch.id)
        assert (event["detail-type"], spans(event["detail"]["missing"])) == ("Batch Timed Out", [[0, 3]])

    def test_a_batch_that_completes_before_needs_no_alarm(self, tracker, stack, subscriber):
        # Given a batch with a deadline
        with tracker.batch(deadline=timedelta(hours=1)) as batch:
            group = batch.add(3)
        schedule = schedule_of(stack, batch.id)
        assert schedule["Target"]["Arn"] == stack.timer_arn
        assert schedule["ActionAfterCompletion"] == "DELETE"

        # When it completes before
        tracker.ack(group)

        # Then its event arrives, and its schedule is gone
        assert subscriber.only_event_of(batch.id)["detail"]["partial"] is False
        assert schedule_of(stack, batch.id) is None


class TestOrphans:
    @staticmethod
    def age(stack, batch_id: int, seconds: int) -> None:
        """Make the last activity of a batch this old; its idle time to live is an hour."""
        touched_at = int((time.time() - seconds) * 1000)
        stack.client("dynamodb").update_item(
            TableName=stack.batches_table,
            Key={names.BATCH_ID: {"N": str(batch_id)}},
            UpdateExpression="SET touched_at = :touched_at, due_at = :due_at",
            ExpressionAttributeValues={
                ":touched_at": {"N": str(touched_at)},
                ":due_at": {"N": str(touched_at + 3_600_000)},
            },
        )

    @pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
    def test_an_idle_batch_is_ended(self, tracker, stack, deployment, subscriber, closed):
        # Given two batches, of which one has been idle for longer than it may
        idle, busy = (tracker.attach(tracker.open(idle_ttl=timedelta(hours=1)).batch_id) for _ in range(2))
        for batch in (idle, busy):
            batch.add(4)
            if closed:
                batch.close()
        self.age(stack, idle.id, 3_700)
        self.age(stack, busy.id, 3_500)

        # When the reaper comes round
        reaped = deployment.invoke("reaper")

        # Then the idle one is orphaned, and the other is not
        assert (reaped["orphaned"], reaped["stuck"]) == (1, int(closed))
        event = subscriber.only_event_of(idle.id)
        assert event["detail-type"] == "Batch Orphaned"
        assert spans(event["detail"]["missing"]) == [[0, 4]]
        assert tracker.status(busy.id).batch.state == ("closed" if closed else "open")
        assert not subscriber.told_of(busy.id)

    def test_a_batch_that_is_done_is_completed_instead(self, tracker, direct, stack, deployment, subscriber):
        # Given a batch whose closer died between the close and what follows it
        batch = tracker.attach(tracker.open(idle_ttl=timedelta(hours=1)).batch_id)
        tracker.ack(batch.add(10))
        direct.ledger.ports.batches.close(batch.id, now=int(time.time() * 1000))
        assert tracker.status(batch.id).batch.state == "closed"

        # When the reaper comes round
        self.age(stack, batch.id, 3_700)
        reaped = deployment.invoke("reaper")

        # Then it is complete
        assert (reaped["settled"], reaped["orphaned"]) == (1, 0)
        assert subscriber.only_event_of(batch.id)["detail-type"] == "Batch Completed"


class TestNested:
    def test_the_parent_completes_with_its_last_child(self, tracker, subscriber):
        # Given a batch whose items are batches themselves, the last of them two levels deep
        with tracker.batch(user_key="all") as parent:
            parts = parent.add(3)
        leaves = []
        for item in parts[:2]:
            with tracker.batch(parent_item=item) as child:
                leaves.append(child.add(70))
        with (
            tracker.batch(parent_item=parts[2]) as middle,
            tracker.batch(parent_item=middle.add(1)[0]) as leaf,
        ):
            leaves.append(leaf.add(5))

        # When the children complete, one after the other, each repeated
        for group in leaves[:2]:
            tracker.ack(group)
            tracker.ack(group)
        eventually(lambda: tracker.status(parent.id, exact=True).done_min == 2)
        assert tracker.status(parent.id).batch.state == "closed"
        tracker.ack(leaves[2])

        # Then the parent does, once
        assert subscriber.only_event_of(parent.id)["detail"]["user_key"] == "all"
        assert len(subscriber.told_of(middle.id)) == len(subscriber.told_of(leaf.id)) == 1

    def test_a_child_that_does_not_complete_fails_its_item(self, tracker, subscriber):
        # Given a parent, and a child that is cancelled
        with tracker.batch() as parent:
            (item,) = parent.add(1)
        child = tracker.attach(tracker.open(parent_item=item).batch_id)
        child.add(1)
        child.cancel()

        # Then the parent ends with a failure
        (failure,) = subscriber.only_event_of(parent.id)["detail"]["failures"]
        assert failure == {"ordinal": 0, "item": item, "reason": f"batch {child.id} ended as cancelled"}
        assert subscriber.only_event_of(child.id)["detail-type"] == "Batch Cancelled"


class TestDeadLetters:
    def die(self, deployment, queue_url: str, of: int) -> None:
        """Receive the messages of a queue repeatedly, as crashing consumers do."""
        sqs = deployment.stack.client("sqs")
        received = 0
        while deployment.messages(queue_url):
            answer = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10, VisibilityTimeout=0)
            received += len(answer.get("Messages", []))
        assert received == 5 * of  # the tries that the stack gives a message

    def test_a_message_that_kills_its_consumers_fails_its_item(self, tracker, stack, deployment, subscriber):
        # Given two messages of a batch that no consumer survives, and one that is done
        with tracker.batch(user_key="deadly") as batch:
            batch.send(stack.work_queue_url, ["one", "two"])
            (done,) = batch.add(1)
        tracker.ack(done)

        # When they have been received too often
        self.die(deployment, stack.work_queue_url, 2)

        # Then the batch completes, and lists their items as failed, and why
        event = subscriber.only_event_of(batch.id)
        assert (event["detail-type"], event["detail"]["failed"]) == ("Batch Completed", 2)
        assert [failure["ordinal"] for failure in event["detail"]["failures"]] == [0, 1]
        for failure in tracker.iter_failures(batch.id):
            queue = stack.work_queue_url.rpartition("/")[2]  # and not its dead-letter queue
            assert failure.reason == f"dead letter: received 6 times from {queue}"
        # And no message is left
        assert deployment.messages(deployment.queue("WorkQueueDeadLetters")) == 0

    def test_a_message_of_no_batch_is_kept_for_people(self, stack, deployment):
        # Given a message without an item, and one whose item nobody issued
        sqs = stack.client("sqs")
        sqs.send_message(QueueUrl=stack.work_queue_url, MessageBody="whose am I?")
        item = {"DataType": "String", "StringValue": "1:not-a-group:0"}
        sqs.send_message(
            QueueUrl=stack.work_queue_url,
            MessageBody="forged",
            MessageAttributes={names.ITEM_ATTRIBUTE: item},
        )

        # When they have been received too often
        self.die(deployment, stack.work_queue_url, 2)

        # Then both are parked as they were sent
        parked = deployment.queue("Parked")
        eventually(lambda: deployment.messages(parked) == 2)
        kept = {
            message["Body"]: message.get("MessageAttributes", {}) for message in deployment.receive(parked)
        }
        assert kept.keys() == {"whose am I?", "forged"}
        assert kept["forged"][names.ITEM_ATTRIBUTE]["StringValue"] == "1:not-a-group:0"
        assert eventually(lambda: deployment.messages(deployment.queue("WorkQueueDeadLetters")) == 0)
