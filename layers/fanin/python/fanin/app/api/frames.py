"""The calls of guaranteed delivery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from fanin.domain.limits import DEFAULT_ENVELOPE_LEASE

if TYPE_CHECKING:
    from fanin.domain.frames import Claim, Frame, OpenFrame, Ticket
    from fanin.domain.principals import Principal


class Frames(Protocol):
    """Guaranteed delivery of a known number of envelopes."""

    def open(self, request: OpenFrame, *, key: str | None = None, caller: Principal | None = None) -> Frame:
        """Open a frame; with an idempotency key, at most one frame for each key of a caller.

        Raises:
            ChannelRefused: the reply channel is not a queue that fanin may use.
            IdempotencyKeyReused: the key was used with another request.
        """
        ...

    def status(self, frame_id: int, *, cursor: str | None = None, limit: int = 100) -> Frame:
        """A frame, and one page of its missing envelopes.

        Raises:
            BatchNotFound: there is no such frame.
            BatchGone: it is past its lifetime.
        """
        ...

    def claim(self, tickets: Sequence[Ticket], *, lease: int = DEFAULT_ENVELOPE_LEASE) -> list[Claim]:
        """Claim up to 1,000 envelopes for ``lease`` seconds (1 to 43,200); one answer for each, in order.

        Raises:
            InvalidRequest: the lease or an index is out of bounds, or an envelope is named twice.
            RequestTooLarge: there are more than 1,000 envelopes.
            BatchNotFound: there is no such frame.
            BatchGone: it is past its lifetime.
        """
        ...
