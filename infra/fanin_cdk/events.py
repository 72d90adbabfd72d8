"""What invokes functions, the tables' streams and the queues; and the event bus."""

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fanin import names
from fanin_cdk.functions import Function
from fanin_cdk.permissions import allow_sending
from fanin_cdk.queues import RedrivenQueue
from fanin_cdk.settings import Settings

LIVE_STATES = ("open", "closed")

BATCH_ENDED = {
    "dynamodb": {
        "OldImage": {names.STATE: {"S": list(LIVE_STATES)}},
        "NewImage": {names.STATE: {"S": list(names.TERMINAL_STATES)}},
    }
}
"""Stream filter: the record in which a batch moves to a terminal state; each batch has at most one."""

BATCH_REMOVED = {
    "dynamodb": {
        "OldImage": {names.STATE: {"S": list(names.TERMINAL_STATES)}},
        "NewImage": {names.STATE: {"S": list(names.TERMINAL_STATES)}},
    }
}
"""Stream filter: changes of batches that had ended, which is when they are removed.

The deletion of a row, which has no new image, does not match. Lambda documents no filter for the streams of
tables on another key than ``dynamodb``. See "Using event filtering with a DynamoDB event source".
"""

BATCH_TOLD = tuple(
    {
        "dynamodb": {
            "OldImage": {field: {"N": [{"exists": False}]}},
            "NewImage": {field: {"N": [{"exists": True}]}, names.STATE: {"S": list(LIVE_STATES)}},
        }
    }
    for field in ("failing_at", "waiting_at")
)
"""Stream filters: the record in which a batch is first seen to fail, or to wait for held items alone."""

BATCH_PROGRESSED = {
    "dynamodb": {"NewImage": {"milestone": {"N": [{"exists": True}]}, names.STATE: {"S": list(LIVE_STATES)}}}
}
"""Stream filter: changes of live batches that have passed a milestone, which are few: they are closed."""

WORD_FINISHED = {"dynamodb": {"NewImage": {names.WORD: {"N": ["0"]}}}}
"""Stream filter: records of words that are 0, after their last bit was cleared and after later writes."""

DIRECTORY_CHANGED = {"dynamodb": {"Keys": {names.TOPIC: {"S": [{"prefix": "topic/"}, "routes"]}}}}
"""Stream filter: records of registrations and routes; the directory table has rows of other kinds, too."""

STREAM_READERS = ("notifier", "settler", "directory")
"""The functions that read a stream."""
STREAM_BATCH = 100
"""Most records of one invocation."""
MOST_PARALLEL = 10
"""The most invocations at a time that Lambda makes for one shard of a stream."""
STREAM_RETRIES = 10
"""How often Lambda retries records for which the function itself crashed."""


class Bus(Construct):
    """The event bus on which the ends of batches are announced.

    Args:
        scope: parent construct.
        id: its id there.
        settings: settings of the deployment.

    Attributes:
        bus: the bus; its name is the prefix of the settings, so that other stacks can write rules for it.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        self.bus = events.EventBus(self, "Bus", event_bus_name=settings.prefix)


def feed_from_stream(
    function: Function,
    table: dynamodb.Table,
    only: Sequence[Mapping[str, object]],
    retries: RedrivenQueue,
    *,
    parallel: int = 1,
) -> None:
    """Feed a function from a table's stream, and from a queue of records that failed there.

    The function parks a failed record in the queue by itself, so that the stream goes on. If an invocation
    fails as a whole (a crash, a timeout), Lambda halves its records and retries them; in the end it leaves a
    note in the dead-letter queue of the retry queue.

    Args:
        function: the function; it may then read the stream, and receive from and send to the queue.
        table: the table with the stream.
        only: filters for records, as Lambda's event filtering writes them; one of them must match.
        retries: queue for records that failed once.
        parallel: invocations at a time for each shard; records of one key stay in order.
    """
    function.function.add_event_source(
        sources.DynamoEventSource(
            table,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=STREAM_BATCH,
            parallelization_factor=parallel,
            bisect_batch_on_error=True,
            retry_attempts=STREAM_RETRIES,
            report_batch_item_failures=True,
            on_failure=sources.SqsDlq(retries.dead_letters),
            filters=[lambda_.FilterCriteria.filter(one) for one in only],
        )
    )
    feed_from_queue(function, retries.queue)
    allow_sending(function.function, retries.queue.queue_arn)


def feed_from_queue(
    function: Function,
    queue: sqs.Queue,
    *,
    batch_size: int = 10,
    window_seconds: int = 0,
    max_concurrency: int = 0,
) -> None:
    """Feed a function from a queue; the function reports the messages that failed.

    Args:
        function: the function; it may then receive from the queue.
        queue: the queue.
        batch_size: most messages of one invocation.
        window_seconds: how long Lambda may wait for a full batch; 0 does not wait.
        max_concurrency: most invocations at a time; 0 sets no limit.
    """
    function.function.add_event_source(
        sources.SqsEventSource(
            queue,
            batch_size=batch_size,
            max_batching_window=Duration.seconds(window_seconds) if window_seconds else None,
            max_concurrency=max_concurrency or None,
            report_batch_item_failures=True,
        )
    )
