"""Redriving failed items: which of them, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fanin.domain import limits
from fanin.domain.selection import OrdinalRange, Selection

NAMED: Final = 10
"""How many of the failures without a message a redrive names."""
MAX_REFUSALS: Final = 20
"""How many different reasons of queues a redrive tells apart; the others are counted together."""
OTHER_REFUSALS: Final = "other reasons"


@dataclass(frozen=True, slots=True)
class Redrive(Selection):
    """Which failures to send again, and where to.

    Attributes:
        queue_url: URL or ARN of the queue to send to; None sends each message to the queue it came from.
        dry_run: only count; nothing is written or sent.
    """

    queue_url: str | None = None
    dry_run: bool = False

    def check(self) -> None:
        """Refuse what ``Selection.check`` refuses, and a queue that is not text."""
        Selection.check(self)
        if self.queue_url is not None:
            limits.text("queue_url", self.queue_url, limits.MAX_CHANNEL, least=1)


class RedriveState(StrEnum):
    """How far a redrive is."""

    RUNNING = "running"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Redriving:
    """A redrive, and what became of the failures that it has looked at so far.

    Attributes:
        name: its name within the batch; empty for a dry run.
        retry_of: the batch whose failures it sends again.
        batch_id: the batch that has the items now: a new one, or the same batch if it holds its failed items;
            None as long as nothing was sent.
        state: whether failures are still being looked at.
        items: failures that were sent again under this redrive.
        already: failures that another redrive has sent.
        not_kept: failures whose message was not kept, so that nothing can be sent.
        not_kept_items: ordinals of the first of these.
        refused: why queues were not sent to, and how many failures each reason left where they are.
        errors: as requested.
        ranges: as requested.
        queue_url: as requested.
        started_at: ms; None for a dry run.
    """

    name: str
    retry_of: int
    batch_id: int | None
    state: RedriveState
    items: int = 0
    already: int = 0
    not_kept: int = 0
    not_kept_items: Sequence[int] = ()
    refused: Mapping[str, int] = field(default_factory=dict)
    errors: Sequence[str] = ()
    ranges: Sequence[OrdinalRange] = ()
    queue_url: str | None = None
    started_at: int | None = None

    @property
    def finished(self) -> bool:
        """Whether all failures of the selection were looked at."""
        return self.state is RedriveState.FINISHED


@dataclass(frozen=True, slots=True)
class Redrivings:
    """One page of the redrives of a batch."""

    redrives: Sequence[Redriving]
    cursor: str | None = None
