"""Queues: encrypted, closed to plain HTTP unless for an emulator, never without a place for what failed."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.findings import accept

RETENTION = Duration.days(14)


def six_runs(timeout: int) -> Duration:
    """How long a queue hides a message while a function has it: six of its timeouts, as Lambda advises.

    Args:
        timeout: the function's, seconds.
    """
    return Duration.seconds(6 * timeout)


def plain_queue(
    scope: Construct,
    id: str,
    *,
    visibility_timeout: Duration | None = None,
    dead_letter_queue: sqs.DeadLetterQueue | None = None,
    enforce_ssl: bool = True,
) -> sqs.Queue:
    """Make a queue that keeps its messages as long as SQS can, two weeks."""
    queue = sqs.Queue(
        scope,
        id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=enforce_ssl,
        retention_period=RETENTION,
        visibility_timeout=visibility_timeout,
        dead_letter_queue=dead_letter_queue,
    )
    if not enforce_ssl:
        accept(queue, "SQS4", "it is for an emulator, which listens to plain HTTP")
    return queue


def dead_end(scope: Construct, id: str, *, enforce_ssl: bool = True) -> sqs.Queue:
    """Make a queue for what failed for good; an alarm watches it, and people empty it."""
    queue = plain_queue(scope, id, enforce_ssl=enforce_ssl)
    accept(
        queue, "SQS3", "it is itself the dead-letter queue, of a function, a schedule or a dead-letter queue"
    )
    return queue


class RedrivenQueue(Construct):
    """A queue that gives a message up after some tries, and the dead-letter queue it then goes to.

    Attributes:
        queue: the queue.
        dead_letters: its dead-letter queue.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        visibility_timeout: Duration,
        max_receive_count: int,
        dead_letter_visibility_timeout: Duration | None = None,
        enforce_ssl: bool = True,
    ) -> None:
        super().__init__(scope, id)
        self.dead_letters = plain_queue(
            self, "DeadLetters", visibility_timeout=dead_letter_visibility_timeout, enforce_ssl=enforce_ssl
        )
        self.queue = plain_queue(
            self,
            "Queue",
            visibility_timeout=visibility_timeout,
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.dead_letters, max_receive_count=max_receive_count
            ),
            enforce_ssl=enforce_ssl,
        )
