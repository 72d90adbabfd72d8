"""Other ends of batches than by the last ack: what ``test_behaviour.py`` cannot see of them."""

from datetime import timedelta

from fanin import names
from tests.e2e.deployment import eventually


def schedule_of(stack, batch_id: int):
    """The schedule of a batch's deadline, if there is one."""
    scheduler = stack.client("scheduler")
    listed = scheduler.list_schedules(GroupName=stack.schedule_group, NamePrefix=f"fanin-{batch_id}")
    for schedule in listed["Schedules"]:
        return scheduler.get_schedule(Name=schedule["Name"], GroupName=stack.schedule_group)
    return None


class TestDeadlines:
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
