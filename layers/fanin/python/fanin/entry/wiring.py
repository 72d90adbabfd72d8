"""The composition root: ports and services, made once for a process from its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from fanin.adapters.channels import SqsChannels
from fanin.adapters.claims import S3Claims
from fanin.adapters.dynamodb.batches import DynamoBatches
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.parts import DynamoParts
from fanin.adapters.dynamodb.records import DynamoRecords
from fanin.adapters.dynamodb.words import DynamoWords
from fanin.adapters.eventbridge import EventBridgeEvents
from fanin.adapters.queues import SqsQueues
from fanin.adapters.rules import EventBridgeRules
from fanin.adapters.scheduler import SchedulerTimers
from fanin.adapters.sqs import SqsQueue
from fanin.adapters.system import SystemClock, SystemRandom
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.channels import Jobs
from fanin.app.ports.claims import ClaimChecks
from fanin.app.ports.events import Event, Events
from fanin.app.ports.rules import Rules
from fanin.app.ports.system import Clock
from fanin.app.ports.timers import Timers
from fanin.app.services import Services
from fanin.domain.scatter import ClaimCheck
from fanin.entry.settings import Settings
from fanin.errors import NotConfigured


@cache
def settings() -> Settings:
    """The settings in the environment at the first call."""
    return Settings.from_env()


@cache
def ports() -> Ports:
    """The ports over AWS: DynamoDB, SQS, EventBridge, Scheduler and S3.

    Raises:
        NotConfigured: a table is not named. The other ports, which few functions need, raise it when used.
    """
    return connect(settings())


def connect(where: Settings, connection: Connection | None = None) -> Ports:
    """Make the ports that settings name; clients are made when they are first used.

    Raises:
        NotConfigured: a table is not named.
    """
    connection, clock = connection or Connection(), SystemClock()
    return Ports(
        batches=DynamoBatches(where.batches_table, where.parts_table, connection),
        words=DynamoWords(where.words_table, connection),
        parts=DynamoParts(where.parts_table, connection),
        timers=_timers(where, clock),
        events=_events(where),
        records=DynamoRecords.of_batches(where.parts_table, connection, clock),
        directory=DynamoRecords.of_directory(where.directory_table, connection, clock),
        channels=SqsChannels(),
        queues=SqsQueues(lambda: where.buffer_prefix),
        rules=_rules(where),
        jobs=_jobs(where),
        claims=_claims(where, clock),
        clock=clock,
        random=SystemRandom(),
        defaults=where.defaults,
    )


@cache
def ledger() -> LedgerService:
    """The ledger service over ``ports``."""
    return services().ledger


@cache
def services() -> Services:
    """All six services over ``ports``."""
    return Services(ports())


@cache
def retry_queue() -> SqsQueue:
    """The queue for records and messages that could not be handled."""
    return SqsQueue(settings().retry_queue_url)


def park(message: Mapping[str, object]) -> None:
    """Send a record or message that could not be handled to the retry queue."""
    retry_queue().send([message])


def keep_unrouted(event: Mapping[str, object]) -> None:
    """Send an event that reached nobody to the queue of unrouted events, if there is one."""
    if queue := unrouted_queue():
        queue.send([event])


@cache
def unrouted_queue() -> SqsQueue | None:
    """The queue for events that reached nobody; None if they are only counted."""
    url = settings().unrouted_queue_url
    return SqsQueue(url) if url else None


def _timers(where: Settings, clock: Clock) -> Timers:
    try:
        return SchedulerTimers(
            group=where.schedule_group,
            role_arn=where.schedule_role_arn,
            target_arn=where.timer_arn,
            dead_letter_arn=where.timer_dlq_arn,
            clock=clock,
        )
    except NotConfigured as missing:
        return _Unconfigured(missing)


def _events(where: Settings) -> Events:
    try:
        return EventBridgeEvents(where.bus)
    except NotConfigured as missing:
        return _Unconfigured(missing)


def _rules(where: Settings) -> Rules:
    try:
        return EventBridgeRules(where.bus, where.router_arn)
    except NotConfigured as missing:
        return _Unconfigured(missing)


def _jobs(where: Settings) -> Jobs:
    try:
        return SqsQueue(where.scatter_queue_url)
    except NotConfigured as missing:
        return _Unconfigured(missing)


def _claims(where: Settings, clock: Clock) -> ClaimChecks:
    try:
        return S3Claims(where.claims_bucket, clock)
    except NotConfigured as missing:
        return _Unconfigured(missing)


class _Unconfigured:
    """Alarms, a bus and its rules that are not there: whoever calls them learns which setting is missing."""

    def __init__(self, missing: NotConfigured) -> None:
        self._missing = missing

    def set(self, batch_id: int, at: int) -> None:  # noqa: ARG002
        raise self._missing

    def clear(self, batch_id: int) -> None:  # noqa: ARG002
        raise self._missing

    def publish(self, event: Event) -> str:  # noqa: ARG002
        raise self._missing

    def matches(self, pattern: Mapping[str, object], event: Mapping[str, object]) -> bool:  # noqa: ARG002
        raise self._missing

    def put(self, route: str, pattern: Mapping[str, object]) -> None:  # noqa: ARG002
        raise self._missing

    def delete(self, route: str) -> None:  # noqa: ARG002
        raise self._missing

    def send(self, messages: Iterable[Mapping[str, object]]) -> None:  # noqa: ARG002
        raise self._missing

    def upload(self, key: str, *, size: int, content_type: str) -> ClaimCheck:  # noqa: ARG002
        raise self._missing

    def download(self, key: str) -> str:  # noqa: ARG002
        raise self._missing

    def exists(self, key: str) -> bool:  # noqa: ARG002
        raise self._missing
