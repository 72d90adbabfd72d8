"""Calling back tasks of Step Functions, callbacks of Lambda durable functions, and webhooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from fanin.adapters.aws import error_code, ignoring, once, translated
from fanin.app.ports.queues import ChannelNotice
from fanin.domain.targets import Target, TargetType
from fanin.errors import ServiceUnavailable, TargetRefused
from fanin.wire.json_text import compact

if TYPE_CHECKING:
    from fanin.adapters.webhooks import Webhooks

ERRORS: Final = {
    "complete": "fanin.ItemsFailed",
    "timed_out": "fanin.BatchTimedOut",
    "cancelled": "fanin.BatchCancelled",
    "orphaned": "fanin.BatchOrphaned",
    "failing": "fanin.BatchFailing",
    "waiting": "fanin.BatchWaiting",
}
"""State of a batch, or what is told before its end → error that a task or an execution gets."""
MAX_CAUSE: Final = 32_768
"""Bytes of a cause; see "SendTaskFailure", AWS Step Functions API Reference."""

_WAITS_NO_MORE: Final = {"CallbackTimeoutException", "TaskTimedOut"}
"""The waiting is over: it was told before, was stopped, or its time is up.

Both answer so for "expired" and for "already closed" alike; see "SendTaskSuccess", AWS Step Functions API
Reference, and "SendDurableExecutionCallbackSuccess", AWS Lambda API Reference.
"""
_NEVER: Final = {
    "InvalidOutput",
    "InvalidParameterValueException",
    "InvalidToken",
    # Nothing here has this token or id: it is of another region or account, where somebody still waits.
    "ResourceNotFoundException",
    "TaskDoesNotExist",
}


class AwsCallbacks:
    """A ``Callbacks``.

    Args:
        webhooks: makes what posts to webhooks, when first used.
        step_functions: makes the client of Step Functions, when first used.
        lambdas: makes the client of Lambda, when first used.
    """

    def __init__(
        self,
        webhooks: Callable[[], Webhooks],
        step_functions: Callable[[], Any] | None = None,
        lambdas: Callable[[], Any] | None = None,
    ) -> None:
        self._webhooks = cache(webhooks)
        self._step_functions = once(step_functions, "stepfunctions")
        self._lambdas = once(lambdas, "lambda")

    def call(self, target: Target, notice: ChannelNotice) -> None:
        match target.type:
            case TargetType.STEP_FUNCTIONS:
                _tolerant(lambda: self._end_task(target.task_token or "", notice))
            case TargetType.DURABLE_CALLBACK:
                _tolerant(lambda: self._end_callback(target.callback_id or "", notice))
            case _:
                self._webhooks().post(target.url or "", notice)

    def _end_task(self, token: str, notice: ChannelNotice) -> None:
        tasks = self._step_functions()
        if notice.succeeded:
            tasks.send_task_success(taskToken=token, output=notice.event.body)
        else:
            tasks.send_task_failure(taskToken=token, error=error_name(notice), cause=cause(notice))

    def _end_callback(self, callback_id: str, notice: ChannelNotice) -> None:
        lambdas, event = self._lambdas(), notice.event
        if notice.succeeded:
            result = event.body.encode()
            lambdas.send_durable_execution_callback_success(CallbackId=callback_id, Result=result)
        else:
            said = f"batch {event.detail['batch_id']}: {event.detail_type}"
            error = {"ErrorType": error_name(notice), "ErrorMessage": said, "ErrorData": cause(notice)}
            lambdas.send_durable_execution_callback_failure(CallbackId=callback_id, Error=error)


def error_name(notice: ChannelNotice) -> str:
    """Name of the error for an end that did not succeed."""
    return ERRORS.get(notice.event.id.rpartition(".")[2], "fanin.BatchFailed")


def cause(notice: ChannelNotice) -> str:
    """The detail of the event as JSON that fits a cause.

    Its lists are left out if it is too long, and the metadata of the batch if it still is.
    """
    left, text = dict(notice.event.detail), notice.event.body
    for kinds in (list, Mapping):
        if len(text.encode()) <= MAX_CAUSE:
            break
        left = {name: value for name, value in left.items() if not isinstance(value, kinds)}
        text = compact({**left, "id": notice.event.id, "truncated": True})
    return text


def _tolerant(call: Callable[[], None]) -> None:
    """Call AWS; who waits no more counts as told.

    Errors are told by their codes alone, since texts may repeat a token.

    Raises:
        TargetRefused: AWS will never take it.
        FaninError: it did not take it now.
    """

    def refusal(error: ClientError) -> TargetRefused | None:
        if (code := error_code(error)) in _NEVER:
            return TargetRefused(f"{error.operation_name} refuses the target ({code})")
        return None

    try:
        with translated(refusal), ignoring(_WAITS_NO_MORE):
            call()
    except ClientError as error:
        raise ServiceUnavailable(f"{error.operation_name} failed ({error_code(error)})") from error
