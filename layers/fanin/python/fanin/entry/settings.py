"""Settings from environment variables; only the command line reads some of its own besides."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fanin import names
from fanin.errors import NotConfigured

if TYPE_CHECKING:
    from fanin.app.ports import Defaults


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

    @property
    def api_url(self) -> str:
        """Base URL of the HTTP API; append ``/v1/…``."""
        return self._text(names.ENV_API_URL)

    @property
    def batches_table(self) -> str:
        return self._text(names.ENV_BATCHES_TABLE)

    @property
    def words_table(self) -> str:
        return self._text(names.ENV_WORDS_TABLE)

    @property
    def parts_table(self) -> str:
        return self._text(names.ENV_PARTS_TABLE)

    @property
    def directory_table(self) -> str:
        return self._text(names.ENV_DIRECTORY_TABLE)

    @property
    def bus(self) -> str:
        """Name of the bus; its variable may have the ARN."""
        return self._text(names.ENV_BUS).rpartition("/")[2]

    @property
    def schedule_group(self) -> str:
        return self._text(names.ENV_SCHEDULE_GROUP)

    @property
    def schedule_role_arn(self) -> str:
        return self._text(names.ENV_SCHEDULE_ROLE_ARN)

    @property
    def timer_arn(self) -> str:
        return self._text(names.ENV_TIMER_ARN)

    @property
    def timer_dlq_arn(self) -> str:
        return self._text(names.ENV_TIMER_DLQ_ARN)

    @property
    def router_arn(self) -> str:
        return self._text(names.ENV_ROUTER_ARN)

    @property
    def unrouted_queue_url(self) -> str | None:
        """URL of the queue for events that reach nobody; None if they are only counted."""
        return self.environment.get(names.ENV_UNROUTED_QUEUE_URL) or None

    @property
    def ack_queue_url(self) -> str | None:
        """URL of the queue for acknowledgements; None if consumers acknowledge through the API only."""
        return self.environment.get(names.ENV_ACK_QUEUE_URL) or None

    @property
    def retry_queue_url(self) -> str:
        return self._text(names.ENV_RETRY_QUEUE_URL)

    @property
    def buffer_prefix(self) -> str:
        return self._text(names.ENV_BUFFER_PREFIX)

    @property
    def buffer_dead_letters_arn(self) -> str | None:
        """ARN of the queue for dead letters of buffers; None if their messages come again and again."""
        return self.environment.get(names.ENV_BUFFER_DEAD_LETTERS_ARN) or None

    @property
    def kms_key_arn(self) -> str | None:
        """ARN of the KMS key for queues of buffers; None for a key that SQS manages."""
        return self.environment.get(names.ENV_KMS_KEY_ARN) or None

    @property
    def scatter_queue_url(self) -> str:
        return self._text(names.ENV_SCATTER_QUEUE_URL)

    @property
    def redrive_queue_url(self) -> str:
        return self._text(names.ENV_REDRIVE_QUEUE_URL)

    @property
    def targets_queue_url(self) -> str:
        return self._text(names.ENV_TARGETS_QUEUE_URL)

    @property
    def webhook_hosts(self) -> str:
        """Hosts that webhooks may name, separated by commas; empty allows none."""
        return self.environment.get(names.ENV_WEBHOOK_HOSTS, "")

    @property
    def webhook_secret_arn(self) -> str:
        return self._text(names.ENV_WEBHOOK_SECRET_ARN)

    @property
    def webhook_loopback(self) -> bool:
        """Whether webhooks may lead to this machine; only on a stack that runs on it."""
        return self.environment.get(names.ENV_WEBHOOK_LOOPBACK) == "true"

    @property
    def jwt_scope_prefix(self) -> str:
        """What the scopes of tokens begin with; empty if callers need no scopes."""
        return self.environment.get(names.ENV_JWT_SCOPE_PREFIX, "")

    @property
    def claims_bucket(self) -> str:
        return self._text(names.ENV_CLAIMS_BUCKET)

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
        value = self.environment.get(names.ENV_LOG_SAMPLE, "") or "0"
        if not (value.isascii() and value.isdigit() and int(value) <= 100):  # noqa: PLR2004 - a percentage
            raise NotConfigured(
                f"the environment variable {names.ENV_LOG_SAMPLE} must be from 0 to 100, not {value!r}"
            )
        return int(value)

    def _text(self, name: str) -> str:
        value = self.environment.get(name, "")
        if not value:
            raise NotConfigured(f"the environment variable {name} is not set")
        return value

    def _seconds(self, name: str, default: int, *, least: int = 1) -> int:
        value = self.environment.get(name, "")
        if not value:
            return default
        if not (value.isascii() and value.isdigit() and int(value) >= least):
            raise NotConfigured(
                f"the environment variable {name} must be {least} or more whole seconds, not {value!r}"
            )
        return int(value)
