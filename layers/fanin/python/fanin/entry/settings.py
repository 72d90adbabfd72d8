"""Settings from the environment. No other module of the package reads it, but for the command line's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from fanin import names
from fanin.app.ports import Defaults
from fanin.errors import NotConfigured


@dataclass(frozen=True)
class Settings:
    """What a function or a library user is told by its environment, each value checked when it is asked for.

    A function has only the variables it needs, so a missing one is an error of whoever asks for it. Every
    property raises NotConfigured, naming the variable, when it is missing or malformed.

    Attributes:
        environment: variables by name.
    """

    environment: Mapping[str, str]

    @classmethod
    def from_env(cls) -> Settings:
        """Take the process's environment as it is now."""
        return cls(dict(os.environ))

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
        return self._text(names.ENV_BUS)

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
        """Where events go that match no route; None where they are only counted."""
        return self.environment.get(names.ENV_UNROUTED_QUEUE_URL) or None

    @property
    def ack_queue_url(self) -> str:
        return self._text(names.ENV_ACK_QUEUE_URL)

    @property
    def retry_queue_url(self) -> str:
        return self._text(names.ENV_RETRY_QUEUE_URL)

    @property
    def buffer_prefix(self) -> str:
        return self._text(names.ENV_BUFFER_PREFIX)

    @property
    def scatter_queue_url(self) -> str:
        return self._text(names.ENV_SCATTER_QUEUE_URL)

    @property
    def claims_bucket(self) -> str:
        return self._text(names.ENV_CLAIMS_BUCKET)

    @property
    def defaults(self) -> Defaults:
        """Values for what callers leave open; those not set are fanin's own."""
        return Defaults(
            open_idle_ttl=self._seconds(names.ENV_OPEN_IDLE_TTL, Defaults.open_idle_ttl),
            closed_idle_ttl=self._seconds(names.ENV_CLOSED_IDLE_TTL, Defaults.closed_idle_ttl),
            lifetime=self._seconds(names.ENV_LIFETIME, Defaults.lifetime),
            reply_to=self.environment.get(names.ENV_REPLY_QUEUE_URL, ""),
        )

    def _text(self, name: str) -> str:
        value = self.environment.get(name, "")
        if not value:
            raise NotConfigured(f"the environment variable {name} is not set")
        return value

    def _seconds(self, name: str, default: int) -> int:
        value = self.environment.get(name, "")
        if not value:
            return default
        if not (value.isascii() and value.isdigit() and int(value) > 0):
            raise NotConfigured(f"the environment variable {name} must be whole seconds, not {value!r}")
        return int(value)
