"""A frame: a closed batch of envelopes between a sender and a receiver, and the leases on its envelopes.

Whether an envelope was handled is a bit of the frame's batch and nothing else. A lease only keeps two
receivers from handling it at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from fanin.domain.batch import Batch, Kind, OpenBatch, State, touched

SOURCE: Final = "source"
DESTINATION: Final = "destination"
REPLY_TO: Final = "reply_to"

DEFAULT_TTL: Final = 3_600
"""Seconds without progress until a frame counts as stale."""

DEFAULT_LEASE: Final = 30
"""Seconds for which an envelope is claimed."""


@dataclass(frozen=True, slots=True)
class OpenFrame:
    """What a sender says when it asks for a frame.

    Attributes:
        size: number of envelopes.
        source: the sender's name, for people and events.
        destination: the receiver's name.
        reply_to: queue URL or ARN that gets Complete Frame and Repeat Requested; it carries the tag
            ``fanin:channel``.
        ttl: seconds without progress until a repeat is requested, and again until the frame is given up.
        user_key: the sender's own name for the frame, returned with its events.
    """

    size: int
    source: str = ""
    destination: str = ""
    reply_to: str = ""
    ttl: int = DEFAULT_TTL
    user_key: str = ""

    def batch(self) -> OpenBatch:
        """The batch that the frame is: closed, with as many items as envelopes."""
        about = {SOURCE: self.source, DESTINATION: self.destination, REPLY_TO: self.reply_to}
        return OpenBatch(
            user_key=self.user_key,
            idle_ttl=self.ttl,
            metadata={name: value for name, value in about.items() if value},
            kind=Kind.FRAME,
            size=self.size,
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame, and one page of what its receivers have not handled: the selective acknowledgement.

    Attributes:
        frame_id: its batch id.
        state: where the batch is in its life; ``complete`` when every envelope was handled.
        size: number of envelopes.
        ttl: seconds without progress until it counts as stale.
        about: source, destination and reply channel, where given.
        user_key: the sender's own name.
        missing: half-open ranges of indices, ascending; none once the frame is complete.
        cursor: ask with it for the next page of ``missing``; None at the end.
    """

    frame_id: int
    state: State
    size: int
    ttl: int
    about: Mapping[str, str]
    user_key: str = ""
    missing: tuple[tuple[int, int], ...] = ()
    cursor: str | None = None

    @classmethod
    def of(cls, batch: Batch) -> Frame:
        """The frame of a batch, without what is missing."""
        return cls(
            batch.batch_id,
            batch.state,
            batch.items,
            batch.closed_idle_ttl,
            batch.metadata,
            batch.user_key,
        )

    def lacking(self, missing: tuple[tuple[int, int], ...], cursor: str | None) -> Frame:
        """The same frame with a page of what is missing."""
        return replace(self, missing=missing, cursor=cursor)


@dataclass(frozen=True, slots=True)
class Ticket:
    """Names one envelope: its frame, and its index from 0."""

    frame_id: int
    index: int


@dataclass(frozen=True, slots=True)
class ClaimEnvelopes:
    """What a receiver says to lease envelopes.

    Attributes:
        tickets: the envelopes, each named once.
        lease: seconds.
    """

    tickets: Sequence[Ticket]
    lease: int = DEFAULT_LEASE


class Hold(StrEnum):
    """What a receiver that asked for an envelope may do with it."""

    CLAIMED = "claimed"
    """Handle it: nobody else will before the lease is over."""
    LEASED = "leased"
    """Leave it for later: another one is at it."""
    DONE = "done"
    """Drop it: it was handled."""
    ENDED = "ended"
    """Drop it: its frame was given up, and who sent it knows."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a receiver that asked for an envelope.

    Attributes:
        ticket: the envelope.
        hold: what the receiver may do.
        item: item id of the envelope, to acknowledge or fail it by.
        until: when the lease ends, seconds since the epoch; 0 where there is none.
    """

    ticket: Ticket
    hold: Hold
    item: str
    until: int = 0


def mark_of(now: int, ttl: int) -> int:
    """The ``touched_at`` of a frame for which a repeat was requested: a time that no activity leaves.

    Activity is rounded down to a tenth of the idle time; the mark stands one millisecond before that, so
    the next activity is always later than it.
    """
    return touched(now, ttl) - 1


def is_marked(batch: Batch) -> bool:
    """Whether a repeat was requested for the frame, and nothing has happened since."""
    return touched(batch.touched_at, batch.idle_ttl) != batch.touched_at
