"""A frame: a closed batch of envelopes between a sender and a receiver, and the leases on its envelopes.

Only a bit of the frame's batch says whether an envelope was handled. A lease merely keeps two receivers from
handling it at the same time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from fanin.domain.batch import Batch, Kind, OpenBatch, State
from fanin.domain.limits import DEFAULT_ENVELOPE_LEASE

SOURCE = "source"
DESTINATION = "destination"
REPLY_TO = "reply_to"

DEFAULT_TTL = 3_600
"""Seconds without progress until a frame counts as stale."""


@dataclass(frozen=True, slots=True)
class OpenFrame:
    """A request for a frame.

    Attributes:
        size: number of envelopes.
        source: the sender's name, for people and events.
        destination: the receiver's name.
        reply_to: URL or ARN of a queue for Complete Frame, Repeat Requested, Frame Ended; it must carry the
            tag ``fanin:channel``.
        ttl: seconds without progress until a repeat is requested, and again until the frame is given up.
        user_key: the sender's own name for the frame, returned with its events.
        totals: names of up to four whole numbers that are summed up over the envelopes that were handled.
    """

    size: int
    source: str = ""
    destination: str = ""
    reply_to: str = ""
    ttl: int = DEFAULT_TTL
    user_key: str = ""
    totals: Sequence[str] = ()

    def batch(self) -> OpenBatch:
        """The frame as a batch: closed, with as many items as envelopes."""
        about = {SOURCE: self.source, DESTINATION: self.destination, REPLY_TO: self.reply_to}
        return OpenBatch(
            user_key=self.user_key,
            idle_ttl=self.ttl,
            metadata={name: value for name, value in about.items() if value},
            kind=Kind.FRAME,
            size=self.size,
            totals=self.totals,
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame, and one page of the envelopes that are not handled: a selective acknowledgement.

    Attributes:
        frame_id: its batch id.
        state: where the batch is in its life; ``complete`` when every envelope was handled.
        size: number of envelopes.
        ttl: seconds without progress until it counts as stale.
        about: source, destination and reply channel, where given.
        user_key: the sender's own name.
        missing: half-open ranges of indices, ascending; empty once the frame is complete.
        cursor: ask with it for the next page of ``missing``; None at the end.
        totals: sums of what its envelopes have brought, by the names of its totals.
        totals_exact: whether the totals are the sums of every envelope that was handled; of a large frame
            of which much is missing, some parts are not read.
    """

    frame_id: int
    state: State
    size: int
    ttl: int
    about: Mapping[str, str]
    user_key: str = ""
    missing: tuple[tuple[int, int], ...] = ()
    cursor: str | None = None
    totals: Mapping[str, int] = field(default_factory=dict)
    totals_exact: bool = False

    @classmethod
    def of(cls, batch: Batch) -> "Frame":
        """The frame of a batch, without its missing envelopes."""
        asked = batch.items, batch.closed_idle_ttl, batch.metadata, batch.user_key
        exact = batch.totals_exact
        return cls(batch.batch_id, batch.state, *asked, totals=batch.totals, totals_exact=exact)


@dataclass(frozen=True, slots=True)
class Ticket:
    """Names one envelope: its frame, and its index from 0."""

    frame_id: int
    index: int


@dataclass(frozen=True, slots=True)
class ClaimEnvelopes:
    """A receiver's request to lease envelopes.

    Attributes:
        tickets: the envelopes, each named once.
        lease: seconds.
    """

    tickets: Sequence[Ticket]
    lease: int = DEFAULT_ENVELOPE_LEASE


class Hold(StrEnum):
    """What a receiver should do with an envelope that it claimed."""

    CLAIMED = "claimed"
    """Handle it: no other receiver will before the lease ends."""
    LEASED = "leased"
    """Leave it for later: another receiver is handling it."""
    DONE = "done"
    """Drop it: it was handled before."""
    ENDED = "ended"
    """Drop it: its frame was given up, and its sender was told."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a receiver that claimed an envelope.

    Attributes:
        ticket: the envelope.
        hold: what the receiver should do.
        item: item id of the envelope, which acknowledges or fails it.
        until: when the lease ends, seconds since the epoch; 0 where the envelope is not leased.
    """

    ticket: Ticket
    hold: Hold
    item: str
    until: int = 0


def mark_of(batch: Batch, now: int) -> int:
    """The ``touched_at`` that marks a frame as asked to repeat: a value that activity never writes.

    Activity is rounded down to a tenth of the idle time. The mark is one millisecond before such a step, so
    the next activity is always later than the mark.
    """
    return batch.rounded(now) - 1


def is_marked(batch: Batch) -> bool:
    """Whether a repeat was requested for the frame, without any activity since."""
    return batch.rounded(batch.touched_at) != batch.touched_at
