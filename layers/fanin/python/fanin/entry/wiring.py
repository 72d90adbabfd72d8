"""The composition root: ports and services, made once for a process from its settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from fanin.adapters.callbacks import AwsCallbacks
from fanin.adapters.channels import SqsChannels, SqsQueue
from fanin.adapters.claims import S3Claims
from fanin.adapters.dynamodb.batches import DynamoBatches
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.parts import DynamoParts
from fanin.adapters.dynamodb.records import DynamoRecords
from fanin.adapters.dynamodb.words import DynamoWords
from fanin.adapters.eventbridge import EventBridgeEvents, EventBridgeRules
from fanin.adapters.inspection import AwsQueueInspection
from fanin.adapters.queues import SqsQueues
from fanin.adapters.received_messages import DeadLetterQueues, ReceivedMessages
from fanin.adapters.scheduler import SchedulerTimers, Schedules
from fanin.adapters.system import SystemClock, SystemRandom
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.system import Clock
from fanin.app.services import Services
from fanin.entry.invocation import INVOCATION
from fanin.entry.settings import Settings

if TYPE_CHECKING:
    from fanin.adapters.webhooks import Webhooks


settings = cache(Settings.from_env)
"""The settings in the environment at the first call."""


@cache
def ports() -> Ports:
    """The ports over AWS: DynamoDB, SQS, EventBridge, Scheduler and S3.

    Raises:
        NotConfigured: a table is not named. Every other setting may be missing until something that needs
            it is called, since few functions need them all, and a library user may need none.
    """
    return connect(settings())


def connect(where: Settings, connection: Connection | None = None) -> Ports:
    """Make the ports that settings name.

    No client is made before it is used, and of the settings only the tables are asked for here.
    """
    connection = connection or connect_tables()
    clock = SystemClock()
    return Ports(
        batches=DynamoBatches(where.batches_table, where.parts_table, connection),
        words=DynamoWords(where.words_table, connection),
        parts=DynamoParts(where.parts_table, connection),
        timers=SchedulerTimers(lambda: _schedules(where), clock),
        events=EventBridgeEvents(lambda: where.bus),
        records=DynamoRecords.of_batches(where.parts_table, connection, clock),
        directory=DynamoRecords.of_directory(where.directory_table, connection, clock),
        channels=SqsChannels(),
        queues=SqsQueues(
            lambda: where.buffer_prefix,
            dead_letters=lambda: where.buffer_dead_letters_arn,
            key=lambda: where.kms_key_arn,
        ),
        inspection=AwsQueueInspection(clock),
        rules=EventBridgeRules(lambda: where.bus, lambda: where.router_arn),
        jobs=SqsQueue(lambda: where.scatter_queue_url),
        redrives=SqsQueue(lambda: where.redrive_queue_url),
        claims=S3Claims(lambda: where.claims_bucket, clock),
        target_jobs=SqsQueue(lambda: where.targets_queue_url),
        callbacks=AwsCallbacks(lambda: _webhooks(where, clock)),
        clock=clock,
        random=SystemRandom(),
        defaults=where.defaults,
    )


def _webhooks(where: Settings, clock: Clock) -> Webhooks:
    from fanin.adapters.webhooks import Secret, Webhooks  # noqa: PLC0415  few processes post to webhooks

    secret = Secret(lambda: where.webhook_secret_arn, clock)
    return Webhooks(lambda: where.webhook_hosts, secret, clock, loopback=lambda: where.webhook_loopback)


def connect_tables() -> Connection:
    """Make the connection to the tables; within a function it begins nothing that would outlast it."""
    return Connection(time_left=INVOCATION.seconds_left, time_for_requests=INVOCATION.seconds_for_requests)


def _schedules(where: Settings) -> Schedules:
    return Schedules(where.schedule_group, where.schedule_role_arn, where.timer_arn, where.timer_dlq_arn)


@cache
def ledger() -> LedgerService:
    """The ledger service over ``ports``."""
    return services().ledger


@cache
def services() -> Services:
    """All eight services over ``ports``."""
    return Services(ports())


@cache
def retry_queue() -> SqsQueue:
    """The queue for records and messages that could not be handled."""
    return SqsQueue(lambda: settings().retry_queue_url)


@cache
def dead_letter_queues() -> DeadLetterQueues:
    """Where dead letters come from, and what is kept of them."""
    return DeadLetterQueues(SystemClock())


received = cache(ReceivedMessages)
"""The messages that the function gets from queues."""


def park(message: Mapping[str, object]) -> None:
    """Send a record or message that could not be handled to the retry queue."""
    retry_queue().send([message])


def set_aside(message: Mapping[str, object]) -> None:
    """Send a message as it is to the queue for messages that could not be handled."""
    received().send_to(settings().retry_queue_url, message)


def keep_unrouted(event: Mapping[str, object]) -> None:
    """Send an event that reached nobody to the queue of unrouted events, if there is one."""
    if queue := unrouted_queue():
        queue.send([event])


@cache
def unrouted_queue() -> SqsQueue | None:
    """The queue for events that reached nobody; None if they are only counted."""
    url = settings().unrouted_queue_url
    return SqsQueue(lambda: url) if url else None
