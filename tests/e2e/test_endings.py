"""Other ends of batches than by the last ack: what ``test_behaviour.py`` cannot see of them."""

from __future__ import annotations

import time
from datetime import timedelta

from fanin import names
from tests.e2e.deployment import eventually
from tests.spans import spans

SOON = timedelta(seconds=5)
"""Enough for one call on a busy machine."""


def schedule_of(stack, batch_id: int):
    """The schedule of a batch's deadline, if there is one."""
    scheduler = stack.client("scheduler")
    listed = scheduler.list_schedules(GroupName=stack.schedule_group, NamePrefix=f"fanin-{batch_id}")
    for schedule in listed["Schedules"]:
        return scheduler.get_schedule(Name=schedule["Name"], GroupName=stack.schedule_group)
    return None


class TestDeadlines:
    def test_an_open_batch_times_out_and_an_ack_that_comes_later_changes_nothing(
        self, tracker, stack, deployment, subscriber
    ):
        # Given a batch that nobody closes, most of it done
        batch = tracker.attach(tracker.open(deadline=timedelta(hours=1)).batch_id)
        group = batch.add(200)
        tracker.ack([group[i] for i in range(200) if i not in (7, 64, 65, 199)])

        # When its deadline is moved nearer and comes, and a function that has not seen the batch acks
        tracker.change(batch.id, deadline=SOON)
        event = subscriber.only_event_of(batch.id)
        started = time.time()
        tracker.ack_later(group[7:9])

        # Then the batch has timed out, and the event lists what is missing
        assert event["detail-type"] == "Batch Timed Out"
        assert event["detail"]["id"].endswith(f"/{stack.region}/{stack.bus}/{batch.id}.timed_out")
        assert spans(event["detail"]["missing"]) == [[7, 8], [64, 66], [199, 200]]
        assert event["detail"]["missing_more"] is False
        # And the items count as late, and are still missing
        assert eventually(lambda: deployment.metrics("acks", started)) == {names.METRIC_LATE: 2}
        assert [(r.start, r.stop) for r in tracker.missing(batch.id).ranges] == [(7, 8), (64, 66), (199, 200)]
        # And nothing of the schedule is left
        assert schedule_of(stack, batch.id) is None

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


class TestDeadLetters:
    def die(self, deployment, queue_url: str, of: int) -> None:
        """Receive the messages of a queue repeatedly, as crashing consumers do."""
        sqs = deployment.stack.client("sqs")
        received = 0
        while deployment.messages(queue_url):
            answer = sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10, VisibilityTimeout=0)
            received += len(answer.get("Messages", []))
        assert received == 5 * of  # the tries that the stack gives a message

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
