"""The fan-out of a state of Step Functions."""

import pytest

from fanin.client.producing.state_task import fan_out
from fanin.domain.batch import State
from fanin.testing import InMemoryService


def event(service: InMemoryService, queue: str) -> dict[str, object]:
    return {
        "on_end": [{"type": "step_functions", "task_token": "t" * 40}],
        "queue_url": queue,
        "messages": [{"order": 1}, "two"],
    }


def received(service: InMemoryService, queue: str) -> list[dict[str, object]]:
    answer = service.sqs.receive_message(
        QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=0
    )
    return answer.get("Messages", [])


def test_messages_become_a_batch_that_wakes_the_task(service):
    queue = service.queue("work")
    answer = fan_out(event(service, queue), service.tracker)
    assert answer["sent"] == 2
    messages = received(service, queue)
    assert [message["Body"] for message in messages] == ['{"order": 1}', "two"]
    assert not service.callbacks
    service.tracker.ack([m["MessageAttributes"]["fanin-item"]["StringValue"] for m in messages])
    (told,) = service.callbacks
    assert (told.succeeded, told.event.detail["items"]) == (True, 2)


def test_a_repeat_of_the_invocation_goes_on_with_the_same_batch(service):
    # Given an invocation whose answer was lost
    queue = service.queue("work")
    first = fan_out(event(service, queue), service.tracker)
    second = fan_out(event(service, queue), service.tracker)
    assert second == {"batch_id": first["batch_id"], "sent": 0}
    assert service.tracker.status(first["batch_id"]).batch.state is State.CLOSED
    assert service.tracker.status(first["batch_id"]).batch.items == 2


@pytest.mark.parametrize(("step", "sent"), [("alloc", 0), ("batches.close", 2)])
def test_an_invocation_that_died_half_way_is_finished_by_the_next(service, step, sent):
    # Given an invocation that opened the batch, and died before its messages were sent or it was closed
    queue = service.queue("work")

    def dies(call: str, moment: str) -> None:
        if moment == "before" and step in call:
            raise KeyboardInterrupt

    service.on_call = dies
    with pytest.raises(KeyboardInterrupt):
        fan_out(event(service, queue), service.tracker)
    assert len(received(service, queue)) == sent
    service.on_call = None
    answer = fan_out(event(service, queue), service.tracker)
    # Then messages may come twice, but no item is added that nobody can mark
    assert answer["sent"] == 2
    assert service.tracker.list(State.OPEN).batches == ()
    (batch,) = service.tracker.list(State.CLOSED).batches
    assert batch.items == 2
