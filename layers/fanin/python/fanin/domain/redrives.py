"""Redriving failed items: which of them, and what became of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from fanin.domain import limits
from fanin.domain.failures import error_of
from fanin.domain.ids import MAX_ITEMS
from fanin.errors import RequestTooLarge


@dataclass(frozen=True, slots=True)
class OrdinalRange:
    """Items of a batch by their ordinals, as listings of failures and of missing items show them.

    Attributes:
        start: ordinal of the first.
        stop: one past the last.
    """

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Selection:
    """Which failures are meant; those that meet both conditions. Without conditions, all.

    Attributes:
        errors: what failures have in common (``error_of``), or the beginning of it; one of them must match.
        ranges: ordinals; the item must lie in one of them.
    """

    errors: Sequence[str] = ()
    ranges: Sequence[OrdinalRange] = ()

    def check(self) -> None:
        """Refuse a selection that is too large, or has an empty range.

        Raises:
            RequestTooLarge: there are too many errors or ranges, or the errors have too many bytes.
            InvalidRequest: an error is not text, or a range ends before it begins.
        """
        limits.at_most("errors", self.errors, limits.MAX_ERRORS)
        limits.at_most("ranges", self.ranges, limits.MAX_SELECTED_RANGES)
        for error in self.errors:
            limits.text("an error", error, limits.MAX_REASON, least=1)
        size, most = sum(len(error.encode()) for error in self.errors), limits.MAX_ERRORS_BYTES
        if size > most:
            raise RequestTooLarge(f"{size} bytes of errors in one call; send at most {most}")
        for one in self.ranges:
            limits.whole("the end of a range", one.stop, 1, MAX_ITEMS)
            limits.whole("the start of a range", one.start, 0, one.stop - 1)

    def takes(self, ordinal: int, reason: str) -> bool:
        """Whether a failure of an item, for a reason, is meant."""
        if self.ranges and not any(one.start <= ordinal < one.stop for one in self.ranges):
            return False
        return not self.errors or self._names(error_of(reason))

    def _names(self, error: str) -> bool:
        return any(error.startswith((text, error_of(text))) for text in self.errors)

    @property
    def stop(self) -> int | None:
        """One past the last ordinal that it can take; None if there is no such bound."""
        return max((one.stop for one in self.ranges), default=None)


NAMED = 10
"""How many of the failures without a message a redrive names."""
MAX_REFUSALS = 20
"""How many different reasons of queues a redrive tells apart; the others are counted together."""
OTHER_REFUSALS = "other reasons"


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
