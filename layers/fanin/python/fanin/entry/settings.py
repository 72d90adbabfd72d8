"""Settings from environment variables; only the command line reads some of its own besides."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from fanin import names
from fanin.errors import NotConfigured

if TYPE_CHECKING:
    from fanin.app.ports import Defaults


D = TypeVar("D")


@dataclass(frozen=True)
class _Required:
    """A variable that must be set."""

    variable: str

    def __get__(self, settings: Settings, _: object) -> str:
        if value := settings.environment.get(self.variable):
            return value
        raise NotConfigured(f"the environment variable {self.variable} is not set")


@dataclass(frozen=True)
class _Optional(Generic[D]):
    """A variable that may be left out, or be empty."""

    variable: str
    default: D

    def __get__(self, settings: Settings, _: object) -> str | D:
        return settings.environment.get(self.variable) or self.default


@dataclass(frozen=True)
class Settings:
    """Names the resources of a stack, from the environment of a function or of a library user.

    A function has only the variables that it needs, so each value is checked when it is read, and not before.

        >>> settings = Settings({"FANIN_BATCHES_TABLE": "my-batches"})
        >>> settings.batches_table
        'my-batches'
        >>> settings.words_table
        Traceback (most recent call last):
        ...
        fanin.errors.NotConfigured: the environment variable FANIN_WORDS_TABLE is not set

    Attributes:
        environment: variables by name.

    Raises:
        NotConfigured: by any property, if its variable is missing or malformed; the message names it.
    """

    environment: Mapping[str, str]

    @staticmethod
    def from_env() -> Settings:
        """Copy the environment variables of this process."""
        return Settings(dict(os.environ))

    api_url = _Required(names.ENV_API_URL)
    """Base URL of the HTTP API; append ``/v1/…``."""

    batches_table = _Required(names.ENV_BATCHES_TABLE)
    words_table = _Required(names.ENV_WORDS_TABLE)
    parts_table = _Required(names.ENV_PARTS_TABLE)
    directory_table = _Required(names.ENV_DIRECTORY_TABLE)
    _bus = _Required(names.ENV_BUS)

    @property
    def bus(self) -> str:
        """Name of the bus; its variable may have the ARN."""
        return self._bus.rpartition("/")[2]

    schedule_group = _Required(names.ENV_SCHEDULE_GROUP)
    schedule_role_arn = _Required(names.ENV_SCHEDULE_ROLE_ARN)
    timer_arn = _Required(names.ENV_TIMER_ARN)
    timer_dlq_arn = _Required(names.ENV_TIMER_DLQ_ARN)
    router_arn = _Required(names.ENV_ROUTER_ARN)
    unrouted_queue_url = _Optional(names.ENV_UNROUTED_QUEUE_URL, None)
    """URL of the queue for events that reach nobody; None if they are only counted."""

    ack_queue_url = _Optional(names.ENV_ACK_QUEUE_URL, None)
    """URL of the queue for acknowledgements; None if consumers acknowledge through the API only."""

    retry_queue_url = _Required(names.ENV_RETRY_QUEUE_URL)
    buffer_prefix = _Required(names.ENV_BUFFER_PREFIX)
    buffer_dead_letters_arn = _Optional(names.ENV_BUFFER_DEAD_LETTERS_ARN, None)
    """ARN of the queue for dead letters of buffers; None if their messages come again and again."""

    kms_key_arn = _Optional(names.ENV_KMS_KEY_ARN, None)
    """ARN of the KMS key for queues of buffers; None for a key that SQS manages."""

    scatter_queue_url = _Required(names.ENV_SCATTER_QUEUE_URL)
    redrive_queue_url = _Required(names.ENV_REDRIVE_QUEUE_URL)
    targets_queue_url = _Required(names.ENV_TARGETS_QUEUE_URL)
    webhook_hosts = _Optional(names.ENV_WEBHOOK_HOSTS, "")
    """Hosts that webhooks may name, separated by commas; empty allows none."""

    webhook_secret_arn = _Required(names.ENV_WEBHOOK_SECRET_ARN)

    @property
    def webhook_loopback(self) -> bool:
        """Whether webhooks may lead to this machine; only on a stack that runs on it."""
        return self.environment.get(names.ENV_WEBHOOK_LOOPBACK) == "true"

    jwt_scope_prefix = _Optional(names.ENV_JWT_SCOPE_PREFIX, "")
    """What the scopes of tokens begin with; empty if callers need no scopes."""

    claims_bucket = _Required(names.ENV_CLAIMS_BUCKET)

    @property
    def defaults(self) -> Defaults:
        """Values for what a request leaves out; variables that are not set leave fanin's own defaults."""
        from fanin.app.ports import Defaults  # noqa: PLC0415 - callers of the API need no ports

        return Defaults(
            open_idle_ttl=self._seconds(names.ENV_OPEN_IDLE_TTL, Defaults.open_idle_ttl),
            closed_idle_ttl=self._seconds(names.ENV_CLOSED_IDLE_TTL, Defaults.closed_idle_ttl),
            lifetime=self._seconds(names.ENV_LIFETIME, Defaults.lifetime),
            stall_after=self._seconds(names.ENV_STALL_AFTER, Defaults.stall_after, least=0),
            reply_to=self.environment.get(names.ENV_REPLY_QUEUE_URL, ""),
            targets=bool(self.environment.get(names.ENV_TARGETS_QUEUE_URL)),
            webhook_hosts=self.webhook_hosts,
            event_prefix=self._event_prefix,
            region=self.environment.get("AWS_REGION") or self.environment.get("AWS_DEFAULT_REGION", ""),
        )

    @property
    def _event_prefix(self) -> str:
        """Account, region and bus, as the ARN of the bus has them; empty where no bus is named."""
        *_, region, account, bus = ("", "", *self.environment.get(names.ENV_BUS, "").split(":"))
        place = [account, region, bus.rpartition("/")[2]]
        return "".join(f"{part}/" for part in place if part)

    @property
    def log_sample(self) -> int:
        """Percentage of invocations that log a line although nothing went wrong."""
        return self._number(names.ENV_LOG_SAMPLE, 0, range(101), "from 0 to 100")

    def _seconds(self, name: str, default: int, *, least: int = 1) -> int:
        return self._number(name, default, range(least, sys.maxsize), f"{least} or more whole seconds")

    def _number(self, name: str, default: int, allowed: range, said: str) -> int:
        value = self.environment.get(name) or str(default)
        if not (value.isascii() and value.isdigit() and int(value) in allowed):
            raise NotConfigured(f"the environment variable {name} must be {said}, not {value!r}")
        return int(value)
