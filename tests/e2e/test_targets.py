"""Targets on the deployed stack: a state machine, a durable function, queues and webhooks that wait."""

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from standardwebhooks import Webhook

from fanin import names
from fanin.client.tracker import Tracker
from fanin.domain.batch import Trouble
from fanin.domain.targets import TargetReport, TargetState
from fanin.local import Stack
from tests.e2e.deployment import eventually
from tests.e2e.receiver import CERTIFICATE, Receiver


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    receiver = Receiver(CERTIFICATE)
    yield receiver
    receiver.close()


def received(stack: Stack, url: str) -> list[dict[str, Any]]:
    sqs = stack.client("sqs")
    answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
    return answer.get("Messages", [])


def states(tracker: Tracker, batch_id: int) -> list[TargetState]:
    return [target.state for target in tracker.targets(batch_id)]


def settled(tracker: Tracker, batch_id: int) -> list[TargetReport]:
    """The targets of a batch, once each is delivered or skipped."""

    found: list[TargetReport] = []

    def look() -> bool:
        found[:] = tracker.targets(batch_id)
        return all(target.state.settled for target in found)

    with suppress(AssertionError):
        eventually(look)
    assert [t.last_error for t in found if not t.state.settled] == []
    return found


def test_a_queue_gets_the_event_and_the_target_is_delivered(stack, tracker, channel):
    # Given a batch that calls back a queue, and one that only failures would go to
    done, broken = channel(), channel()
    on_end = [
        {"type": "sqs", "queue_url": done, "when": "complete"},
        {"type": "sqs", "queue_url": broken, "when": "failed"},
    ]
    with tracker.batch(user_key="orders", on_end=on_end) as batch:
        group = batch.add(3)
    assert states(tracker, batch.id) == [TargetState.PENDING] * 2
    # When all is done
    tracker.ack(group)
    # Then the first gets the event, and the second nothing
    first, second = settled(tracker, batch.id)
    assert (first.state, second.state) == (TargetState.DELIVERED, TargetState.SKIPPED)
    assert first.delivered_at is not None
    (message,) = received(stack, done)
    told = json.loads(message["Body"])
    assert told["id"].endswith(f"/{batch.id}.complete")
    assert told["detail-type"] == "Batch Completed"
    assert (told["detail"]["items"], told["detail"]["user_key"]) == (3, "orders")
    assert message["MessageAttributes"][names.ATTRIBUTE_TYPE]["StringValue"] == "Batch Completed"
    assert received(stack, broken) == []
    assert tracker.status(batch.id).batch.targets == 2


def execution(stack: Stack, orders: list[object]) -> str:
    started = stack.client("stepfunctions").start_execution(
        stateMachineArn=stack.outputs["StateMachineArn"], input=json.dumps({"orders": orders})
    )
    arn: str = started["executionArn"]
    return arn


def work(stack: Stack, wanted: int) -> list[str]:
    """Item ids of so many messages of the work queue."""
    found: list[str] = []

    def enough() -> bool:
        sqs = stack.client("sqs")
        for message in received(stack, stack.work_queue_url):
            found.append(message["MessageAttributes"][names.ITEM_ATTRIBUTE]["StringValue"])
            sqs.delete_message(QueueUrl=stack.work_queue_url, ReceiptHandle=message["ReceiptHandle"])
        return len(found) >= wanted

    eventually(enough)
    return found


def test_a_state_machine_fans_out_waits_and_goes_on_with_the_counts(stack, tracker):
    # Given a run of the state machine that FanOutAndWait is part of
    client = stack.client("stepfunctions")
    arn = execution(stack, [{"order": 1}, {"order": 2}, "three"])
    items = work(stack, 3)
    assert client.describe_execution(executionArn=arn)["status"] == "RUNNING"
    # When its items are done
    tracker.ack(items)
    # Then it goes on, with the counts
    eventually(lambda: client.describe_execution(executionArn=arn)["status"] != "RUNNING")
    ended = client.describe_execution(executionArn=arn)
    assert ended["status"] == "SUCCEEDED"
    told = json.loads(ended["output"])
    assert told["imported"] == 3
    assert [target.type.value for target in settled(tracker, told["batch"])] == ["step_functions"]


def test_a_state_machine_catches_how_a_batch_ended(stack, tracker):
    # Given a run that waits
    client = stack.client("stepfunctions")
    arn = execution(stack, ["one"])
    (item,) = work(stack, 1)
    # When its batch is cancelled
    tracker.cancel(int(item.partition(":")[0]))
    # Then the state fails with the error of that end, which the machine catches
    eventually(lambda: client.describe_execution(executionArn=arn)["status"] != "RUNNING")
    assert client.describe_execution(executionArn=arn)["error"] == "import.failed"


@pytest.fixture(scope="module")
def secret(stack: Stack) -> str:
    """The secret that the stack created, as receivers get it."""
    client = stack.client("secretsmanager")
    (found,) = client.list_secrets()["SecretList"]
    value: str = client.get_secret_value(SecretId=found["ARN"])["SecretString"]
    return f"whsec_{value}"


def ended(tracker: Tracker, *on_end: dict[str, str]) -> int:
    """A batch that has ended complete, with these targets."""
    with tracker.batch(on_end=on_end) as batch:
        group = batch.add(1)
    tracker.ack(group)
    return batch.id


def test_a_webhook_gets_a_request_that_the_receiver_can_verify(tracker, receiver, secret):
    # When a batch ends that calls back a webhook
    batch_id = ended(tracker, {"type": "webhook", "url": receiver.url("/orders?key=1")})
    settled(tracker, batch_id)
    # Then the receiver's library verifies the one request, and the id names the end
    (request,) = receiver.of("/orders?key=1")
    told = Webhook(secret).verify(request.body, request.headers)
    assert request.headers["webhook-id"].endswith(f"/{batch_id}.complete")
    assert told["type"] == "batch.complete"
    assert told["data"]["batch_id"] == batch_id
    # And a body that was changed does not verify
    with pytest.raises(Exception, match="signature"):
        Webhook(secret).verify(request.body + b" ", request.headers)


def troubles(tracker, batch_id) -> list[Trouble]:
    """What a person should know of a batch."""
    return [one.trouble for one in tracker.attention().batches if one.batch.batch_id == batch_id]


def test_a_webhook_that_is_gone_is_parked_and_told_again_on_request(tracker, receiver):
    # Given a receiver that says that it is gone
    receiver.statuses["/gone"] = 410
    batch_id = ended(tracker, {"type": "webhook", "url": receiver.url("/gone")})
    eventually(lambda: states(tracker, batch_id) == [TargetState.PARKED])
    eventually(lambda: Trouble.TARGETS in troubles(tracker, batch_id))
    # When it is back, and an operator has the target told again
    before = len(receiver.of("/gone"))
    del receiver.statuses["/gone"]
    tracker.redeliver(batch_id)
    # Then it is
    assert [target.state for target in settled(tracker, batch_id)] == [TargetState.DELIVERED]
    assert len(receiver.of("/gone")) > before
    assert troubles(tracker, batch_id) == []


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ({"type": "step_functions", "task_token": "nobody waits for this one"}, "TaskDoesNotExist"),
        ({"type": "durable_callback", "callback_id": "bm9ib2R5"}, "ResourceNotFoundException"),
    ],
    ids=["task", "callback"],
)
def test_what_does_not_exist_is_parked(tracker, target, code):
    batch_id = ended(tracker, target)
    (parked,) = eventually(lambda: [t for t in tracker.targets(batch_id) if t.state is TargetState.PARKED])
    assert code in parked.last_error


@pytest.fixture(scope="module")
def durable(stack: Stack) -> str:
    """Name of the durable function.

    On the emulator CloudFormation drops its DurableConfig, and durable functions have the field Enabled,
    which AWS does not know: there the config alone makes a function durable.
    """
    function = stack.outputs["DurableFunction"]
    client = stack.session().client(
        "lambda", endpoint_url=stack.endpoint_url
    )  # of its own, since it is changed

    def add_config(params: dict[str, Any], **_: object) -> None:
        config = {"Enabled": True, "ExecutionTimeout": 3_600}
        params["body"] = json.dumps({**json.loads(params["body"]), "DurableConfig": config}).encode()

    client.meta.events.register("before-call.lambda.UpdateFunctionConfiguration", add_config)
    client.update_function_configuration(FunctionName=function)
    return function


def suspended(stack: Stack, durable: str, orders: list[object]) -> str:
    """ARN of an execution that has fanned out these orders, and sleeps."""
    client = stack.client("lambda")
    answer = client.invoke(
        FunctionName=durable, Qualifier="$LATEST", Payload=json.dumps({"orders": orders}).encode()
    )
    assert json.load(answer["Payload"]) == {"Status": "PENDING"}
    arn: str = answer["DurableExecutionArn"]
    return arn


def resumed(stack: Stack, arn: str) -> dict[str, Any]:
    """What an execution returns, once it has ended."""
    client = stack.client("lambda")
    with suppress(AssertionError):
        eventually(lambda: client.get_durable_execution(DurableExecutionArn=arn)["Status"] != "RUNNING")
    ended = client.get_durable_execution(DurableExecutionArn=arn)
    assert ended["Status"] == "SUCCEEDED", ended
    result: dict[str, Any] = json.loads(ended["Result"])
    return result


def events(stack: Stack, arn: str, kind: str) -> list[dict[str, Any]]:
    """What happened in an execution, of one kind."""
    history = stack.client("lambda").get_durable_execution_history(
        DurableExecutionArn=arn, IncludeExecutionData=True
    )
    return [event for event in history["Events"] if event["EventType"] == kind]


def test_a_durable_function_fans_out_sleeps_and_goes_on_with_the_counts(stack, tracker, durable):
    # Given an execution that waits for its batch
    arn = suspended(stack, durable, [{"order": 1}, {"order": 2}, "three"])
    items = work(stack, 3)
    tracker.ack(items[:2])
    assert stack.client("lambda").get_durable_execution(DurableExecutionArn=arn)["Status"] == "RUNNING"
    # When the last item is done
    tracker.ack(items[2:])
    # Then it goes on, with the counts, and has opened one batch
    batch_id = int(items[0].partition(":")[0])
    assert resumed(stack, arn) == {"imported": 3, "batch": batch_id}
    (target,) = settled(tracker, batch_id)
    assert (target.type.value, target.state) == ("durable_callback", TargetState.DELIVERED)
    assert len(events(stack, arn, "StepSucceeded")) == len(events(stack, arn, "CallbackSucceeded")) == 1


def test_a_durable_function_that_was_told_before_goes_on_once(stack, tracker, durable):
    # Given a callback that was completed, by somebody who died before he noted it
    arn = suspended(stack, durable, ["one"])
    (item,) = work(stack, 1)
    batch_id = int(item.partition(":")[0])
    (started,) = events(stack, arn, "CallbackStarted")
    stack.client("lambda").send_durable_execution_callback_success(
        CallbackId=started["CallbackStartedDetails"]["CallbackId"],
        Result=json.dumps({"items": 1, "batch_id": batch_id}).encode(),
    )
    first = resumed(stack, arn)
    # When it is told, once more
    tracker.ack([item])
    # Then the target counts as delivered, and the execution has gone on once
    assert [target.state for target in settled(tracker, batch_id)] == [TargetState.DELIVERED]
    assert resumed(stack, arn) == first == {"imported": 1, "batch": batch_id}
    assert len(events(stack, arn, "CallbackSucceeded")) == len(events(stack, arn, "ExecutionSucceeded")) == 1


def test_the_logs_show_neither_tokens_nor_urls(stack, tracker, receiver):
    secret, since = f"token-{uuid.uuid4().hex}", time.time() - 1
    receiver.statuses[f"/{secret}"] = 500
    batch_id = ended(
        tracker,
        {"type": "step_functions", "task_token": secret},
        {"type": "webhook", "url": receiver.url(f"/{secret}")},
    )
    eventually(lambda: all(target.attempts for target in tracker.targets(batch_id)))
    logs = stack.client("logs")
    lines = [
        event["message"]
        for group in logs.describe_log_groups()["logGroups"]
        for page in logs.get_paginator("filter_log_events").paginate(
            logGroupName=group["logGroupName"], startTime=int(since * 1_000)
        )
        for event in page["events"]
    ]
    assert any("target not told" in line for line in lines)
    assert not [line for line in lines if secret in line]
