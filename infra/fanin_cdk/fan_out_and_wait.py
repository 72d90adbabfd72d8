"""A state of Step Functions that opens a batch, waits until it has ended, and goes on with its counts."""

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from aws_cdk import aws_stepfunctions_tasks as tasks
from constructs import Construct

from fanin_cdk.functions import Function
from fanin_cdk.permissions import allow_sending
from fanin_cdk.tracker import FaninTracker

SEND_SECONDS = 300
"""Timeout of the function that sends the messages of a state's input, of which there are at most 256 KB."""
THROTTLED_TRIES = 10
"""How often an invocation that Lambda throttles is tried again."""


class FanOutAndWait(tasks.LambdaInvoke):
    """A state that fans out a batch and sleeps until the last item is done.

    It invokes a producer with its task token, and waits for the token (``.waitForTaskToken``), which costs
    nothing while it waits. When the batch has ended ``complete`` and no item failed, the state goes on, and
    its result is the detail of the event: ``$.items``, ``$.batch_id`` and so on. Any other end fails the
    state, with an error to catch: ``fanin.ItemsFailed``, ``fanin.BatchTimedOut``, ``fanin.BatchCancelled``,
    ``fanin.BatchOrphaned``. The cause is the same detail as JSON.

    A state that fails is not retried by itself, since the attempt before it may have sent its messages. Add a
    retry only if sending them twice does no harm. The one exception: an invocation that Lambda throttles
    (``Lambda.TooManyRequestsException``) never reached the producer, and is tried again for some minutes.

    Without a producer of your own, a function of this construct sends the messages that the state's input
    lists. With one, the producer gets ``{"on_end": […], "input": …}``, and opens the batch with this
    ``on_end``.

    Example:
        A state machine that imports the orders in its input, then reports::

            imported = FanOutAndWait(
                self, "Import", tracker=tracker, queue=tracker.work.queue, messages="$.orders"
            )
            sfn.StateMachine(
                self, "Nightly", definition_body=sfn.DefinitionBody.from_chainable(imported.next(report))
            )

    Attributes:
        producer: the function that opens the batch.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        tracker: FaninTracker | None = None,
        queue: sqs.IQueue | None = None,
        messages: str = "$.messages",
        producer: lambda_.IFunction | None = None,
        timeout: Duration | None = None,
        result_path: str | None = None,
    ) -> None:
        """Create the state, and the function that sends messages if there is no producer.

        Args:
            scope: parent construct.
            id: name of the state.
            tracker: the service; needed without a producer.
            queue: where messages go; needed without a producer.
            messages: path of the list of messages in the state's input: texts, or objects sent as JSON.
            producer: opens the batch itself, and sends; for inputs of any size.
            timeout: of the state, from its start to the end of the batch. None waits for as long as the batch
                lives, after which it is orphaned and the state fails.
            result_path: where the result goes in the state's output; by default it replaces the input.

        Raises:
            ValueError: neither a producer, nor tracker and queue are given.
        """
        if producer is None:
            if tracker is None or queue is None:
                raise ValueError("FanOutAndWait needs a producer, or else tracker and queue")
            producer = _sender(scope, f"{id}Sender", tracker, queue)
            given: dict[str, object] = {
                "queue_url": queue.queue_url,
                "messages": sfn.JsonPath.list_at(messages),
            }
        else:
            given = {"input": sfn.JsonPath.entire_payload}
        on_end = [{"type": "step_functions", "task_token": sfn.JsonPath.task_token}]
        super().__init__(
            scope,
            id,
            lambda_function=producer,
            integration_pattern=sfn.IntegrationPattern.WAIT_FOR_TASK_TOKEN,
            # Another attempt has another token: it would open a second batch, and send all messages again.
            retry_on_service_exceptions=False,
            payload=sfn.TaskInput.from_object({"on_end": on_end, **given}),
            task_timeout=None if timeout is None else sfn.Timeout.duration(timeout),
            result_path=result_path,
        )
        self.add_retry(
            errors=["Lambda.TooManyRequestsException"],
            interval=Duration.seconds(2),
            backoff_rate=2,
            max_attempts=THROTTLED_TRIES,
            max_delay=Duration.minutes(1),
            jitter_strategy=sfn.JitterType.FULL,
        )
        self.producer = producer


def _sender(scope: Construct, id: str, tracker: FaninTracker, queue: sqs.IQueue) -> lambda_.Function:
    function = Function(
        scope,
        id,
        name="fan_out",
        description="fanin: sends the messages of a state as one batch",
        settings=tracker.settings,
        layers=tracker.layers,
        environment=tracker.environment,
        timeout=SEND_SECONDS,
    ).function
    tracker.grant_producer(function)
    allow_sending(function, queue.queue_arn)
    return function
