"""Targets: who is called back when a batch ends, each on its own.

A caller declares them when it opens a batch. They are kept beside the batch, and each is told once the batch
has ended: at least once, and not again after it is known to have been told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

MAX_TARGETS: Final = 5
MAX_TASK_TOKEN: Final = 2_048
"""Characters; see "SendTaskSuccess", AWS Step Functions API Reference."""
MAX_CALLBACK_ID: Final = 1_024
"""Characters; see "SendDurableExecutionCallbackSuccess", AWS Lambda API Reference."""
CALLBACK_ID: Final = "[A-Za-z0-9+/]+={0,2}"
MAX_URL: Final = 2_048
"""Characters of a webhook's URL."""
PATIENCE_MS: Final = 86_400_000
"""How long a target is tried before it is parked."""
_SHOWN: Final = 4


class TargetType(StrEnum):
    STEP_FUNCTIONS = "step_functions"
    DURABLE_CALLBACK = "durable_callback"
    SQS = "sqs"
    WEBHOOK = "webhook"


class When(StrEnum):
    """Which ends a target is told of.

    Attributes:
        COMPLETE: the batch ended ``complete``, and none of its items failed.
        FAILED: every other end.
        ANY: every end.
    """

    COMPLETE = "complete"
    FAILED = "failed"
    ANY = "any"


class TargetState(StrEnum):
    """How far a target is.

    Attributes:
        PENDING: nobody has tried to tell it.
        FAILED: it was tried, and is tried again.
        DELIVERED: it was told, or waits for nothing any more.
        SKIPPED: the batch ended in a way that it did not ask for.
        PARKED: it was tried for a day, or refuses for good; it is told again only on request.
    """

    PENDING = "pending"
    FAILED = "failed"
    DELIVERED = "delivered"
    SKIPPED = "skipped"
    PARKED = "parked"

    @property
    def settled(self) -> bool:
        """Whether nothing more is to be done, however often a job asks for it."""
        return self in {TargetState.DELIVERED, TargetState.SKIPPED}


@dataclass(frozen=True, slots=True)
class Target:
    """Who is called back when a batch ends. A type has exactly one of the fields below ``when``.

    Attributes:
        type: what it is.
        when: which ends it is told of.
        task_token: of a Step Functions task that waits, up to 2,048 characters.
        callback_id: of a callback of a Lambda durable function, up to 1,024 characters.
        queue_url: URL or ARN of a standard SQS queue with the tag ``fanin:channel``.
        url: of a webhook; https only.
    """

    type: TargetType
    when: When = When.ANY
    task_token: str | None = field(default=None, repr=False)
    callback_id: str | None = field(default=None, repr=False)
    queue_url: str | None = field(default=None, repr=False)
    url: str | None = field(default=None, repr=False)

    @property
    def to(self) -> str:
        """Where it points, with everything masked that would let a reader use it."""
        if self.type is TargetType.SQS:
            return (self.queue_url or "").rpartition("/")[2]
        if self.type is TargetType.WEBHOOK:
            return f"https://{urlsplit(self.url or '').hostname}/…"
        secret = self.task_token or self.callback_id or ""
        return f"…{secret[-_SHOWN:]}" if len(secret) > 4 * _SHOWN else "…"

    def wants(self, succeeded: bool) -> bool:
        """Whether it is told of an end; ``succeeded``: complete, and no item failed."""
        return self.when is When.ANY or (self.when is When.COMPLETE) is succeeded


FIELD: Final[Mapping[TargetType, str]] = {
    TargetType.STEP_FUNCTIONS: "task_token",
    TargetType.DURABLE_CALLBACK: "callback_id",
    TargetType.SQS: "queue_url",
    TargetType.WEBHOOK: "url",
}
"""The one field that says where a target of the type is."""


@dataclass(frozen=True, slots=True)
class TargetReport:
    """A target of a batch, and how far it is.

    Attributes:
        number: place among the batch's targets, from 0.
        type: what it is.
        when: which ends it is told of.
        to: where it points; tokens and the paths of URLs are masked.
        state: how far it is.
        attempts: how often somebody tried to tell it and noted the outcome.
        last_error: why the last attempt failed; None if it did not.
        delivered_at: when it was told, ms; None if it was not.
    """

    number: int
    type: TargetType
    when: When
    to: str
    state: TargetState
    attempts: int = 0
    last_error: str | None = None
    delivered_at: int | None = None


@dataclass(frozen=True, slots=True)
class TargetReports:
    """The targets of a batch.

    Attributes:
        targets: in the order in which they were declared.
    """

    targets: Sequence[TargetReport]
