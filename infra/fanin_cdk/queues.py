"""Queues: encrypted, over HTTPS only unless they are for an emulator, and with a dead-letter queue."""

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fanin import names
from fanin_cdk.findings import accept

DEAD_LETTER_RETENTION = Duration.days(names.DEAD_LETTER_RETENTION_DAYS)
"""How long a queue keeps what failed."""


def six_runs(timeout: int) -> Duration:
    """The visibility timeout for a queue that feeds a function: six times its timeout, as Lambda recommends.

    Args:
        timeout: timeout of the function in seconds.
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
    """Create a queue. With a dead-letter queue it keeps its messages for fewer days than that one.

    Args:
        scope: parent construct.
        id: its id there.
        visibility_timeout: how long a received message stays invisible; 30 seconds by default.
        dead_letter_queue: where messages go that were received too often; None keeps them in the queue.
        enforce_ssl: refuse plain HTTP.
    """
    queue = sqs.Queue(
        scope,
        id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=enforce_ssl,
        retention_period=Duration.days(names.RETENTION_DAYS) if dead_letter_queue else DEAD_LETTER_RETENTION,
        visibility_timeout=visibility_timeout,
        dead_letter_queue=dead_letter_queue,
    )
    if not enforce_ssl:
        accept(queue, "SQS4", "it is for an emulator, which serves plain HTTP")
    return queue


def dead_end(scope: Construct, id: str, *, enforce_ssl: bool = True) -> sqs.Queue:
    """Create a queue for what failed for good; an alarm watches it, and people empty it."""
    queue = plain_queue(scope, id, enforce_ssl=enforce_ssl)
    accept(
        queue,
        "SQS3",
        "it is itself a dead-letter queue, of a function, a schedule or another dead-letter queue",
    )
    return queue


class RedrivenQueue(Construct):
    """A queue and its dead-letter queue.

    Args:
        scope: parent construct.
        id: its id there.
        visibility_timeout: how long a received message stays invisible.
        max_receive_count: how often a message is received before it moves to the dead-letter queue.
        dead_letter_visibility_timeout: the same for the dead-letter queue; 30 seconds by default.
        enforce_ssl: refuse plain HTTP.

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
