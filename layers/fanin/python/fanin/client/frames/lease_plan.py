"""How long a receiver leases envelopes, and how many together: by the times of its claims and handlers."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Final

from fanin.domain.limits import MAX_ENVELOPE_LEASE

logger = logging.getLogger("fanin")

_QUICKEST: Final = 0.001  # seconds
_BEGUN_WITHIN: Final = 1 / 4
"""Envelopes that were claimed together are begun within this share of their lease.

A handler may take half of it; the rest is for the acknowledgement.
"""
_CLAIMS_IN_A_LEASE: Final = 8
"""A lease lasts for so many claims: one takes half of the time in which envelopes may be begun."""


@dataclass(frozen=True, slots=True)
class TakenLease:
    """A lease, by the receiver's own clock.

    Attributes:
        asked_at: when it was asked for, in seconds. It begins later, so it lasts at least until
            ``asked_at + seconds``.
        seconds: how long it lasts.
    """

    asked_at: float
    seconds: int

    def leaves_time(self, now: float) -> bool:
        """Whether an envelope that is begun now can be handled and acknowledged before the lease ends."""
        return now - self.asked_at <= self.seconds * _BEGUN_WITHIN


class LeasePlan:
    """Plans a receiver's next claim.

    A lease that is over before the claim is answered would let no envelope be begun, however often it comes
    again. So where claims keep taking long, the plan is a longer lease than the receiver was given.

    Args:
        seconds: of a lease, where claims are fast enough.
    """

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._handler_takes: float | None = None  # seconds, lately
        self._claims_took = (0.0, 0.0)

    def claimed(self, seconds: float) -> None:
        """Note how long the service took to answer a claim; a single slow claim changes nothing."""
        self._claims_took = (self._claims_took[1], seconds)

    def handled(self, seconds: float) -> None:
        """Note how long the handler took."""
        self._handler_takes = max(seconds, (self._handler_takes or 0) / 2, _QUICKEST)

    def lease(self) -> int:
        """Seconds of the next lease."""
        claim_takes = min(self._claims_took)
        needed = math.ceil(claim_takes * _CLAIMS_IN_A_LEASE)
        if needed <= self._seconds:
            return self._seconds
        lease = max(self._seconds, min(needed, MAX_ENVELOPE_LEASE))
        logger.warning(
            "a claim takes %.1f s, too long for a lease of %d s: taking one of %d s; choose a longer lease, "
            "and a visibility timeout that is at least as long",
            claim_takes,
            self._seconds,
            lease,
        )
        return lease

    def together(self, lease: int) -> int:
        """How many envelopes to claim in one call; only one while nobody knows how long they take."""
        if self._handler_takes is None:
            return 1
        return max(1, int((lease * _BEGUN_WITHIN - min(self._claims_took)) / self._handler_takes))
