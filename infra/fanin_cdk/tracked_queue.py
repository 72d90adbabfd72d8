"""A queue whose dead-lettered messages fail their items, so that every batch ends."""

from typing import cast

from aws_cdk import Duration, Names, Stack, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from fanin import names
from fanin.domain.failures import Keep
from fanin_cdk.consumers import Tracking, UnfitFunction, defined, equip
from fanin_cdk.functions import TIMEOUT
from fanin_cdk.permissions import RECEIVE, policy_beside
from fanin_cdk.queues import RedrivenQueue, six_runs
from fanin_cdk.setting_rules import LARGEST_WITHOUT_WINDOW

CONCURRENT = 5
"""Invocations of a consumer at a time by default: as many as Lambda begins with.

A new account of AWS may run only ten of all its functions together, until it is used more.
"""


class TrackedQueue(RedrivenQueue):
    """A queue for the messages of a batch, and a dead-letter queue whose messages fail their items.

    If no attempt to handle a message succeeds, its batch would wait for ever. Here such a message moves to
    the dead-letter queue, where a function of the tracker marks its item failed; the batch then completes
    with this failure. Each message must carry its item id as an attribute, as ``batch.send(queue_url,
    messages)`` does.

    The queue carries the tag ``fanin:tracked``, so that a redrive may send failed messages to it again.

    The queue may be in another stack than the tracker; the tracker's stack does not depend on it. On the
    dead-letter queue the tag's value is ``dead-letters``, which lets the function receive and delete there,
    so the role of the function stays the same, however many queues there are.

    Example:
        A queue of your own beside a tracker, and a consumer of it::

            tracker = FaninTracker(self, "Fanin")
            orders = TrackedQueue(self, "Orders", tracker=tracker)
            orders.consume(consumer)

    Attributes:
        queue: the queue for work.
        dead_letters: the queue for messages that were received too often; the function empties it.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        tracker: Tracking | None = None,
        dead_letters_function: lambda_.IFunction | None = None,
        visibility_timeout: Duration | None = None,
        max_receive_count: int = 5,
        dead_letters_max_concurrency: int = 0,
        enforce_ssl: bool | None = None,
        channel: bool = False,
        keep: Keep | str = Keep.MESSAGE,
    ) -> None:
        """Create both queues, and feed the function from the dead-letter queue.

        Args:
            scope: parent construct.
            id: its id there.
            tracker: the ``FaninTracker`` that the queue belongs to, in this stack or another one of the app.
            dead_letters_function: instead of ``tracker``, its function for dead letters, imported from
                another app. Such a queue cannot ``consume``.
            visibility_timeout: how long a received message stays invisible, 3 minutes by default; for a
                Lambda consumer AWS recommends six times its timeout, and the batching window on top.
            max_receive_count: how often a message is received before it moves to the dead-letter queue.
            dead_letters_max_concurrency: most invocations at a time for the dead-letter queue, 2 to 1,000; 0
                sets no limit.
            enforce_ssl: refuse plain HTTP; an emulator that checks policies needs ``False``. By default the
                tracker's setting ``local`` decides.
            channel: tag the queue ``fanin:channel``: the service may then send to it and receive from it, so
                that it can be registered in the directory or belong to a buffer.
            keep: what is kept of items whose messages die: ``message`` keeps each message with its batch, in
                the tracker's table or bucket, ``reason`` the reason alone. Consumers have an option of their
                own, and so has a batch.

        Raises:
            ValueError: neither ``tracker`` nor ``dead_letters_function`` is given, or both are, or ``keep``
                is another word.
        """
        function = tracker.dead_letters.function if tracker else dead_letters_function
        if function is None or (tracker and dead_letters_function):
            raise ValueError(
                "TrackedQueue takes tracker, or dead_letters_function of a tracker in another app; "
                f"it got {'neither' if tracker is None else 'both'}"
            )
        if enforce_ssl is None:
            enforce_ssl = tracker is None or not tracker.settings.local
        self._tracker, self._visibility = tracker, visibility_timeout or six_runs(TIMEOUT)
        super().__init__(
            scope,
            id,
            visibility_timeout=self._visibility,
            max_receive_count=max_receive_count,
            dead_letter_visibility_timeout=six_runs(TIMEOUT),
            enforce_ssl=enforce_ssl,
        )
        Tags.of(self.queue).add(names.TRACKED_TAG, "work")
        Tags.of(self.dead_letters).add(names.TRACKED_TAG, names.DEAD_LETTERS)
        if channel:
            Tags.of(self.queue).add(names.CHANNEL_TAG, "work")
        if Keep(keep) is Keep.REASON:
            Tags.of(self.dead_letters).add(names.KEEP_TAG, Keep.REASON.value)
        lambda_.EventSourceMapping(
            self,
            "Source",
            target=function,
            event_source_arn=self.dead_letters.queue_arn,
            batch_size=10,
            max_concurrency=dead_letters_max_concurrency or None,
            report_batch_item_failures=True,
        )

    def consume(
        self,
        consumer: lambda_.IFunction,
        *,
        max_concurrency: int | None = CONCURRENT,
        batch_size: int = 10,
        max_batching_window: Duration | None = None,
        recursive: bool = False,
    ) -> lambda_.EventSourceMapping:
        """Make a function a consumer of the queue: layers, environment, permissions, and the event source.

        The function needs only its code, with a handler made by ``tracker.sqs_handler``. See
        ``FaninTracker.equip`` for its layers and variables, and ``FaninTracker.grant_consumer`` for what it
        may do. It may also receive from the queue, and delete there.

        Tracker, queue and function may be in three stacks of the app. The tracker's stack depends on none of
        the others, and the queue's stack does not depend on the function's, unless that is the tracker's.

        If the queue belongs to a buffer, the concurrency limits how fast work leaves the buffer, and thereby
        how fast producers may put more.

        Args:
            consumer: a function that reports partial failures, as one made with ``tracker.sqs_handler`` does;
                also an alias or a version of one, or one that was imported with its role.
            max_concurrency: most invocations at a time, 2 to 1,000; None sets no limit but the account's.
                Messages of invocations that the account throttles count as received, and become dead letters
                without having been tried.
            batch_size: most messages of one invocation; more than 10 need a batching window.
            max_batching_window: how long Lambda waits for a full batch, at most 5 minutes; None does not.
                Messages are received while it waits, so the visibility timeout must cover the window, too.
            recursive: whether the function sends messages that come back to it, to this queue or through
                others. Lambda stops a chain after about 16 invocations otherwise. Such a function must end
                its chains by itself.

        Returns:
            The event source mapping.

        Raises:
            UnfitFunction: the layers do not fit the function, its timeout and the window together are longer
                than the queue's visibility timeout, it was imported without its role, or it is to be
                recursive and is not defined in this app.
            ValueError: the queue does not know its tracker, or a large batch has no window.
        """
        tracker = self._tracker
        if tracker is None:
            raise ValueError(
                f"{self.node.path} does not know its tracker, so it cannot give a consumer what it needs; "
                "create the queue with tracker=..., in the app of the tracker"
            )
        if batch_size > LARGEST_WITHOUT_WINDOW and not max_batching_window:
            raise ValueError(
                f"batch_size is {batch_size}, and more than {LARGEST_WITHOUT_WINDOW} need "
                "max_batching_window; set it to Duration.seconds(1) or more"
            )
        self._check_timeout(consumer, max_batching_window)
        if recursive:
            _allow_chains(consumer)
        role = equip(consumer, tracker)
        tracker.grant_consumer(consumer)
        here, there, home = (Stack.of(one).node.path for one in (self, consumer, tracker))
        # No stack may come to depend on one that depends on it: the queue's depends on the tracker's already.
        scope = self if there in (here, home) else cast("Construct", consumer)
        receive = iam.PolicyStatement(actions=list(RECEIVE), resources=[self.queue.queue_arn])
        allowed = policy_beside(scope, self._id("Receive", scope, consumer), role, [receive])
        mapping = lambda_.EventSourceMapping(
            scope,
            self._id("Consumer", scope, consumer),
            target=consumer,
            event_source_arn=self.queue.queue_arn,
            batch_size=batch_size,
            max_batching_window=max_batching_window,
            max_concurrency=max_concurrency,
            report_batch_item_failures=True,
        )
        # Lambda refuses the source of a function that may not receive yet.
        mapping.node.add_dependency(allowed)
        return mapping

    def _id(self, name: str, scope: Construct, consumer: lambda_.IFunction) -> str:
        """Id of a construct for a consumer: below the queue, the plain name for its first one."""
        if scope is not self:
            return f"{name}{Names.node_unique_id(self.node)}"
        return f"{name}{Names.node_unique_id(consumer.node)}" if self.node.try_find_child(name) else name

    def _check_timeout(self, consumer: lambda_.IFunction, window: Duration | None) -> None:
        timeout = getattr(defined(consumer), "timeout", None)
        if timeout is None or timeout.is_unresolved() or self._visibility.is_unresolved():
            return
        seconds, hidden = timeout.to_seconds(), self._visibility.to_seconds()
        waits = 0 if window is None or window.is_unresolved() else window.to_seconds()
        if seconds + waits <= hidden:
            return
        why = (
            "Lambda refuses that"
            if seconds > hidden
            else f"they come again while it works, since Lambda holds them for up to {waits:.0f} s before"
        )
        raise UnfitFunction(
            f"{consumer.node.path} may run for {seconds:.0f} s, but {self.node.path} hides its messages for"
            f" {hidden:.0f} s, and {why}; create the queue with"
            f" visibility_timeout=Duration.seconds({6 * seconds + waits:.0f})"
        )


def _allow_chains(consumer: lambda_.IFunction) -> None:
    """Let messages of a function come back to it; Lambda stops such a chain after 16 invocations."""
    own = defined(consumer)
    resource = own.node.default_child if own else None
    if not isinstance(resource, lambda_.CfnFunction):
        raise UnfitFunction(
            f"{consumer.node.path} is not defined as a Function in this app, so it cannot be made recursive "
            "here; set RecursiveLoop to Allow where it is defined, and leave recursive out"
        )
    resource.recursive_loop = "Allow"
