"""A queue whose dead messages fail their items, so that a batch always ends."""

from __future__ import annotations

from aws_cdk import Duration, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from fanin import names
from infra.functions import TIMEOUT
from infra.queues import RedrivenQueue, six_runs

CONSUME = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
)


class TrackedQueue(RedrivenQueue):
    """A queue for the messages of a batch, and a dead-letter queue that is emptied by failing items.

    A consumer that dies on a message for good would leave its batch waiting for ever. Here such a message
    goes to the dead-letter queue, whence the tracker's function marks its item failed, and the batch
    completes with one failure more. Messages are sent with the item id as an attribute, as
    ``batch.send(queue_url, messages)`` does.

    It may live in another stack than the tracker: the tracker's stack does not come to depend on it.

    Example:
        A queue of one's own beside a tracker, and a consumer on it::

            tracker = FaninTracker(self, "Fanin")
            orders = TrackedQueue(self, "Orders", dead_letters_function=tracker.dead_letters.function)
            consumer.add_event_source(SqsEventSource(orders.queue, report_batch_item_failures=True))
            tracker.grant_consumer(consumer)

    Attributes:
        queue: send work here, consume it from here.
        dead_letters: where messages go that were received too often; nobody needs to look at it.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        dead_letters_function: lambda_.IFunction,
        visibility_timeout: Duration | None = None,
        max_receive_count: int = 5,
        enforce_ssl: bool = True,
        channel: bool = False,
    ) -> None:
        """Make the two queues, and set the function on the second.

        Args:
            scope: where it belongs.
            id: its name there.
            dead_letters_function: ``tracker.dead_letters.function``; an imported one must bring its role.
            visibility_timeout: how long a message is hidden while a consumer has it, 3 minutes by default;
                for a Lambda consumer six times its timeout is advised.
            max_receive_count: tries that a message has.
            enforce_ssl: refuse plain HTTP; an emulator that checks policies needs ``False``.
            channel: let the service send to it and take from it: it can be registered, and be a buffer's.

        Raises:
            ValueError: the function was imported without its role.
        """
        super().__init__(
            scope,
            id,
            visibility_timeout=visibility_timeout or six_runs(TIMEOUT),
            max_receive_count=max_receive_count,
            dead_letter_visibility_timeout=six_runs(TIMEOUT),
            enforce_ssl=enforce_ssl,
        )
        if dead_letters_function.role is None:
            raise ValueError("import the function with its role, by Function.from_function_attributes")
        if channel:
            Tags.of(self.queue).add(names.CHANNEL_TAG, "work")
        # A policy of this construct's own, so that the function's stack need not know of the queue.
        policy = iam.Policy(
            self,
            "Consume",
            roles=[dead_letters_function.role],
            statements=[iam.PolicyStatement(actions=list(CONSUME), resources=[self.dead_letters.queue_arn])],
        )
        lambda_.EventSourceMapping(
            self,
            "Source",
            target=dead_letters_function,
            event_source_arn=self.dead_letters.queue_arn,
            batch_size=10,
            report_batch_item_failures=True,
        ).node.add_dependency(policy)

    def consume(
        self,
        consumer: lambda_.IFunction,
        *,
        max_concurrency: int | None = None,
        batch_size: int = 10,
    ) -> lambda_.EventSourceMapping:
        """Set a function on the queue, never more than so many of it at a time.

        Where the queue is a buffer's, this is how fast work leaves it, and so how fast producers may go on.

        Args:
            consumer: a function made with ``tracker.sqs_handler``, or one that reports partial failures too.
            max_concurrency: 2 to 1,000 invocations at a time; None for as many as the account has.
            batch_size: most messages of one invocation.
        """
        self.queue.grant_consume_messages(consumer)
        return lambda_.EventSourceMapping(
            self,
            "Consumer",
            target=consumer,
            event_source_arn=self.queue.queue_arn,
            batch_size=batch_size,
            max_concurrency=max_concurrency,
            report_batch_item_failures=True,
        )
