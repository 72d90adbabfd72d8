"""A queue whose dead-lettered messages fail their items, so that every batch ends."""

from __future__ import annotations

from aws_cdk import Duration, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from fanin import names
from fanin.domain.failures import Keep
from fanin_cdk.functions import TIMEOUT
from fanin_cdk.queues import RedrivenQueue, six_runs

CONSUME = (
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
    "sqs:ListQueueTags",
    "sqs:ListDeadLetterSourceQueues",
    "sqs:ReceiveMessage",
)


class TrackedQueue(RedrivenQueue):
    """A queue for the messages of a batch, and a dead-letter queue whose messages fail their items.

    If no attempt to handle a message succeeds, its batch would wait for ever. Here such a message moves to
    the dead-letter queue, where a function of the tracker marks its item failed; the batch then completes
    with this failure. Each message must carry its item id as an attribute, as ``batch.send(queue_url,
    messages)`` does.

    The queue carries the tag ``fanin:tracked``, so that a redrive may send failed messages to it again.

    The queue may be in another stack than the tracker; the tracker's stack does not depend on it. The role of
    the function may receive from and delete in the dead-letter queue.

    Example:
        A queue of your own beside a tracker, and a consumer of it::

            tracker = FaninTracker(self, "Fanin")
            orders = TrackedQueue(self, "Orders", dead_letters_function=tracker.dead_letters.function)
            consumer.add_event_source(SqsEventSource(orders.queue, report_batch_item_failures=True))
            tracker.grant_consumer(consumer)

    Attributes:
        queue: the queue for work.
        dead_letters: the queue for messages that were received too often; the function empties it.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        dead_letters_function: lambda_.IFunction,
        visibility_timeout: Duration | None = None,
        max_receive_count: int = 5,
        dead_letters_max_concurrency: int = 0,
        enforce_ssl: bool = True,
        channel: bool = False,
        keep: Keep | str = Keep.MESSAGE,
    ) -> None:
        """Create both queues, and feed the function from the dead-letter queue.

        Args:
            scope: parent construct.
            id: its id there.
            dead_letters_function: ``tracker.dead_letters.function``; an imported function needs its role.
            visibility_timeout: how long a received message stays invisible, 3 minutes by default; for a
                Lambda consumer AWS recommends six times its timeout.
            max_receive_count: how often a message is received before it moves to the dead-letter queue.
            dead_letters_max_concurrency: most invocations at a time for the dead-letter queue, 2 to 1,000; 0
                sets no limit.
            enforce_ssl: refuse plain HTTP; an emulator that checks policies needs ``False``.
            channel: tag the queue ``fanin:channel``: the service may then send to it and receive from it, so
                that it can be registered in the directory or belong to a buffer.
            keep: what is kept of items whose messages die: ``message`` keeps each message with its batch, in
                the tracker's table or bucket, ``reason`` the reason alone. Consumers have an option of their
                own, and so has a batch.

        Raises:
            ValueError: the function was imported without its role, or ``keep`` is another word.
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
            raise ValueError(
                "dead_letters_function has no role; import the function with its role, "
                "by Function.from_function_attributes"
            )
        for queue in (self.queue, self.dead_letters):
            Tags.of(queue).add(names.TRACKED_TAG, "work")
        if channel:
            Tags.of(self.queue).add(names.CHANNEL_TAG, "work")
        if Keep(keep) is Keep.REASON:
            Tags.of(self.dead_letters).add(names.KEEP_TAG, Keep.REASON.value)
        # The policy belongs to this construct, so that the stack of the function does not depend on the
        # queue.
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
            max_concurrency=dead_letters_max_concurrency or None,
            report_batch_item_failures=True,
        ).node.add_dependency(policy)

    def consume(
        self,
        consumer: lambda_.IFunction,
        *,
        max_concurrency: int | None = None,
        batch_size: int = 10,
    ) -> lambda_.EventSourceMapping:
        """Feed a consumer from the queue, with limited concurrency.

        If the queue belongs to a buffer, the concurrency limits how fast work leaves the buffer, and thereby
        how fast producers may put more.

        Args:
            consumer: a function that reports partial failures, as one made with ``tracker.sqs_handler`` does;
                it may then receive from the queue.
            max_concurrency: most invocations at a time, 2 to 1,000; None sets no limit but the account's.
            batch_size: most messages of one invocation.

        Returns:
            The event source mapping.
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
