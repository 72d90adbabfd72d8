"""What sets functions off: the tables' streams and the queues; and the bus that carries what they say."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fanin import names
from infra.functions import Function
from infra.permissions import allow_sending
from infra.queues import RedrivenQueue
from infra.settings import Settings

LIVE_STATES = ("open", "closed")

BATCH_ENDED = {
    "dynamodb": {
        "OldImage": {names.STATE: {"S": list(LIVE_STATES)}},
        "NewImage": {names.STATE: {"S": list(names.TERMINAL_STATES)}},
    }
}
"""The one record of a batch's life in which it moves to a terminal state."""

WORD_FINISHED = {"dynamodb": {"NewImage": {names.WORD: {"N": ["0"]}}}}
"""Records of words whose last bit was cleared, and of later writes to them."""

INSTANCE_EVENTS = (names.INSTANCE_CREATED, names.INSTANCE_DESTROYED)

DIRECTORY_CHANGED = {"dynamodb": {"Keys": {names.TOPIC: {"S": [{"prefix": "topic/"}, "routes"]}}}}
"""Records of registrations and routes; the directory table holds other things too."""

STREAM_READERS = ("notifier", "settler", "directory")
STREAM_BATCH = 100
STREAM_RETRIES = 10


class Bus(Construct):
    """The event bus on which the ends of batches are told.

    Attributes:
        bus: named after the prefix, so that others can write rules for it.
    """

    def __init__(self, scope: Construct, id: str, *, settings: Settings) -> None:
        super().__init__(scope, id)
        self.bus = events.EventBus(self, "Bus", event_bus_name=settings.prefix)


def feed_from_stream(
    function: Function,
    table: dynamodb.Table,
    only: Mapping[str, object],
    retries: RedrivenQueue,
    *,
    settings: Settings,
) -> None:
    """Feed a function from a table's stream, and again from its queue of records that failed.

    The function parks a failed record in the queue itself, so that the stream never waits for it. What
    fails even so (a crash, a timeout) is halved, tried again, and in the end leaves a note in the queue's
    dead letters.
    """
    function.function.add_event_source(
        sources.DynamoEventSource(
            table,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=STREAM_BATCH,
            bisect_batch_on_error=True,
            retry_attempts=STREAM_RETRIES,
            report_batch_item_failures=True,
            on_failure=sources.SqsDlq(retries.dead_letters),
            filters=[lambda_.FilterCriteria.filter(only)],
        )
    )
    feed_from_queue(function, retries.queue)
    allow_sending(function.function, retries.queue.queue_arn, settings=settings)


def feed_from_queue(
    function: Function, queue: sqs.Queue, *, batch_size: int = 10, window_seconds: int = 0
) -> None:
    """Feed a function from a queue; it answers with the messages that failed."""
    function.function.add_event_source(
        sources.SqsEventSource(
            queue,
            batch_size=batch_size,
            max_batching_window=Duration.seconds(window_seconds) if window_seconds else None,
            report_batch_item_failures=True,
        )
    )
