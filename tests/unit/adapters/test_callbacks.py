"""Calling back AWS: tasks of Step Functions, and callbacks of Lambda durable functions."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from fanin.adapters.callbacks import ERRORS, MAX_CAUSE, AwsCallbacks, cause
from fanin.app.ports.events import Event
from fanin.app.ports.queues import ChannelNotice
from fanin.domain.targets import Target, TargetType
from fanin.errors import AccessDenied, ServiceUnavailable, TargetRefused, Throttled
from fanin.names import TERMINAL_STATES

TOKEN = "AQC-secret-token"
TASK = Target(TargetType.STEP_FUNCTIONS, task_token=TOKEN)
CALLBACK = Target(TargetType.DURABLE_CALLBACK, callback_id="c2VjcmV0")
DETAIL = {"batch_id": 7, "state": "complete", "items": 3, "failed": 0}
DONE = ChannelNotice(Event("1/eu/shop/7.complete", "Batch Completed", DETAIL, 5), succeeded=True)
LATE = ChannelNotice(
    Event("1/eu/shop/7.timed_out", "Batch Timed Out", {**DETAIL, "state": "timed_out"}, 5), succeeded=False
)


class Posts:
    def __init__(self) -> None:
        self.posted: list[tuple[str, ChannelNotice]] = []

    def post(self, url: str, notice: ChannelNotice) -> None:
        self.posted.append((url, notice))


def client(service: str) -> Any:
    return boto3.client(service, region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="y")


@pytest.fixture
def stepping() -> Iterator[Stubber]:
    """The answers of Step Functions, all of which must be asked for."""
    with Stubber(client("stepfunctions")) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def durable() -> Iterator[Stubber]:
    """Those of Lambda."""
    with Stubber(client("lambda")) as stub:
        yield stub
        stub.assert_no_pending_responses()


@pytest.fixture
def callbacks(stepping: Stubber, durable: Stubber) -> AwsCallbacks:
    return AwsCallbacks(Posts, lambda: stepping.client, lambda: durable.client)


def test_a_task_succeeds_with_the_detail(callbacks, stepping):
    output = json.dumps({**DETAIL, "id": "1/eu/shop/7.complete"}, separators=(",", ":"))
    stepping.add_response("send_task_success", {}, {"taskToken": TOKEN, "output": output})
    callbacks.call(TASK, DONE)


def test_a_task_fails_with_an_error_to_catch_and_the_detail_as_its_cause(callbacks, stepping):
    failure = {"taskToken": TOKEN, "error": "fanin.BatchTimedOut", "cause": LATE.event.body}
    stepping.add_response("send_task_failure", {}, failure)
    callbacks.call(TASK, LATE)


def test_a_callback_of_a_durable_function_succeeds_and_fails(callbacks, durable):
    success = {"CallbackId": "c2VjcmV0", "Result": DONE.event.body.encode()}
    error = {
        "ErrorType": "fanin.BatchTimedOut",
        "ErrorMessage": "batch 7: Batch Timed Out",
        "ErrorData": LATE.event.body,
    }
    failure = {"CallbackId": "c2VjcmV0", "Error": error}
    durable.add_response("send_durable_execution_callback_success", {}, success)
    durable.add_response("send_durable_execution_callback_failure", {}, failure)
    callbacks.call(CALLBACK, DONE)
    callbacks.call(CALLBACK, LATE)


def test_a_webhook_is_posted_to():
    posts = Posts()
    AwsCallbacks(lambda: posts).call(Target(TargetType.WEBHOOK, url="https://a.example/x"), DONE)
    assert posts.posted == [("https://a.example/x", DONE)]


@pytest.mark.parametrize(
    ("target", "method", "code"),
    [
        (TASK, "send_task_success", "TaskTimedOut"),
        (CALLBACK, "send_durable_execution_callback_success", "CallbackTimeoutException"),
        (TASK, "send_task_failure", "TaskTimedOut"),
        (CALLBACK, "send_durable_execution_callback_failure", "CallbackTimeoutException"),
    ],
)
def test_who_waits_no_more_counts_as_told(*, callbacks, stepping, durable, target, method, code):
    stub = stepping if target is TASK else durable
    stub.add_client_error(method, code, http_status_code=400)
    callbacks.call(target, LATE if method.endswith("failure") else DONE)


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("InvalidParameterValueException", 400, TargetRefused),
        ("ResourceNotFoundException", 404, TargetRefused),
        ("TooManyRequestsException", 429, Throttled),
        ("AccessDeniedException", 403, AccessDenied),
        ("KMSAccessDeniedException", 502, ServiceUnavailable),
        ("KMSDisabledException", 502, ServiceUnavailable),
        ("KMSInvalidStateException", 502, ServiceUnavailable),
        ("KMSNotFoundException", 502, ServiceUnavailable),
        ("ServiceException", 500, ServiceUnavailable),
    ],
)
def test_every_other_error_of_a_callback_says_whether_a_repeat_may_help(
    callbacks, durable, code, status, error
):
    durable.add_client_error("send_durable_execution_callback_success", code, http_status_code=status)
    with pytest.raises(error) as raised:
        callbacks.call(CALLBACK, DONE)
    assert type(raised.value) is error


def test_every_error_that_lambda_declares_for_a_callback_is_known():
    model = client("lambda").meta.service_model
    declared = {
        shape.name
        for end in ("Failure", "Success")
        for shape in model.operation_model(f"SendDurableExecutionCallback{end}").error_shapes
    }
    assert declared == {
        "CallbackTimeoutException",
        "InvalidParameterValueException",
        "KMSAccessDeniedException",
        "KMSDisabledException",
        "KMSInvalidStateException",
        "KMSNotFoundException",
        "ResourceNotFoundException",
        "ServiceException",
        "TooManyRequestsException",
    }


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("InvalidToken", 400, TargetRefused),
        ("InvalidOutput", 400, TargetRefused),
        ("TaskDoesNotExist", 400, TargetRefused),
        ("ThrottlingException", 400, Throttled),
        ("AccessDeniedException", 400, AccessDenied),
        ("KmsInvalidStateException", 400, ServiceUnavailable),
        ("InternalFailure", 500, ServiceUnavailable),
    ],
)
def test_other_errors_say_whether_a_repeat_may_help_and_never_the_token(
    callbacks, stepping, code, status, error
):
    stepping.add_client_error("send_task_success", code, f"bad token {TOKEN}", http_status_code=status)
    with pytest.raises(error) as raised:
        callbacks.call(TASK, DONE)
    assert type(raised.value) is error
    assert TOKEN not in str(raised.value)


def test_a_cause_that_is_too_long_keeps_the_counts():
    detail = {**DETAIL, "failures": [{"reason": "x" * 256}] * 200}
    notice = ChannelNotice(LATE.event._replace(detail=detail), succeeded=False)
    short = cause(notice)
    assert len(short) <= MAX_CAUSE
    told = json.loads(short)
    assert (told["items"], told["truncated"], "failures" in told) == (3, True, False)


def test_a_cause_is_measured_in_bytes_and_is_json_however_long_the_metadata_is():
    # Given a detail of few characters but many bytes, and metadata that alone is too long
    wide = {**DETAIL, "failures": [{"reason": "€" * 256}] * 60}
    escaped = {**DETAIL, "metadata": {str(n): "\x01" * 400 for n in range(16)}}
    for detail in (wide, escaped):
        short = cause(ChannelNotice(LATE.event._replace(detail=detail), succeeded=False))
        # Then what is left fits, and can be read
        assert len(short.encode()) <= MAX_CAUSE
        told = json.loads(short)
        assert (told["items"], told["id"], told["truncated"]) == (3, "1/eu/shop/7.timed_out", True)


def test_every_end_has_an_error_of_its_own():
    assert set(ERRORS) == {*TERMINAL_STATES, "failing", "waiting"}
    assert len(set(ERRORS.values())) == len(ERRORS)
