"""The idempotent receiver: an envelope is handled once, and by one at a time, however often it comes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from fanin.app.api import Frames
from fanin.app.bisect import bisect
from fanin.client.consuming.acknowledging import Deliver, Outcome, undelivered
from fanin.client.frames.envelopes import Envelope
from fanin.domain.frames import DEFAULT_LEASE, Claim, Hold, Ticket
from fanin.errors import BatchGone, ItemFailed

logger = logging.getLogger("fanin")

_STALE: Final = 0.5  # share of its lease below which an envelope that waited for others is not begun


class Reception(Enum):
    """What became of an envelope, and so of the message that carried it."""

    HANDLED = auto()
    """It was handled here, and is marked: delete the message."""
    DROPPED = auto()
    """It had been handled before, or its frame is over: delete the message."""
    AGAIN = auto()
    """Another one is at it, or something failed: let the message come again."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a handler gets: the payload, and the receipt to make its effects happen exactly once.

    A process may die after its effect and before the mark; then the envelope is handled again. An effect
    that is stored under ``item`` (a conditional put, a unique key) happens once all the same.

    Attributes:
        item: id of the envelope, the same at every attempt.
        attempt: seconds; end of this attempt's lease. A later attempt has a larger one, so a store that
            remembers it can refuse one that was overtaken.
        envelope: frame, index, payload and content type.
    """

    item: str
    attempt: int
    envelope: Envelope

    @property
    def payload(self) -> bytes:
        return self.envelope.payload


Handle: TypeAlias = Callable[[Delivery], object]
"""Handles a payload. It raises ``ItemFailed`` to mark it failed for good, anything else to get it again."""


class IdempotentReceiver:
    """The receiver's end of guaranteed delivery: claim, handle, acknowledge.

    A claim is one conditional write, and so is the mark, so an envelope costs two. Who dies in between
    leaves a lease that runs out; then the envelope is handled by whoever gets it next.

    Args:
        frames: where claims are made.
        handle: does the work; it must take less time than the lease.
        deliver: tells the ledger what is done, ``tracker.delivery("api")`` or ``("queue")``.
        lease: seconds for which an envelope is claimed.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        frames: Frames,
        handle: Handle,
        deliver: Deliver,
        *,
        lease: int = DEFAULT_LEASE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._frames = frames
        self._handle = handle
        self._deliver = deliver
        self._lease = lease
        self._clock = clock

    def receive(self, envelopes: Sequence[Envelope]) -> list[Reception]:
        """See envelopes through: claims at once, handled one after the other, marked at once.

        Returns:
            For each envelope what became of it; copies of one share its fate.
        """
        unique = {envelope.ticket: envelope for envelope in envelopes}
        claims = self._claim(list(unique))
        receptions: dict[Ticket, Reception] = {}
        outcomes: dict[Ticket, Outcome] = {}
        for ticket, envelope in unique.items():
            found = claims[ticket]
            if isinstance(found, Reception):
                receptions[ticket] = found
            elif outcome := self._handled(found, envelope):
                outcomes[ticket] = outcome
            else:
                receptions[ticket] = Reception.AGAIN
        untold = undelivered(self._deliver, list(outcomes.values()))
        for ticket, outcome in outcomes.items():
            receptions[ticket] = Reception.AGAIN if outcome.item in untold else Reception.HANDLED
        return [receptions[envelope.ticket] for envelope in envelopes]

    def _claim(self, tickets: list[Ticket]) -> dict[Ticket, Claim | Reception]:
        """Claim envelopes; one that is refused spoils only itself."""
        found: dict[Ticket, Claim | Reception] = {}

        def claim(some: Sequence[Ticket]) -> None:
            claims = self._frames.claim(some, lease=self._lease)
            found.update((claim.ticket, _BY_HOLD.get(claim.hold, claim)) for claim in claims)

        for failed in bisect(tickets, claim):
            error = failed.error
            if failed.refused:
                logger.warning("an envelope of frame %d was refused: %s", failed.items[0].frame_id, error)
            else:
                count = len(failed.items)
                logger.warning("%d envelopes could not be claimed and come again: %s", count, error)
            fate = Reception.DROPPED if isinstance(error, BatchGone) else Reception.AGAIN
            found.update(dict.fromkeys(failed.items, fate))
        return found

    def _handled(self, claim: Claim, envelope: Envelope) -> Outcome | None:
        """Handle an envelope; None if it must come again."""
        if claim.until - self._clock() < self._lease * _STALE:
            return None  # those before it took too long: its lease might end in the handler's hands
        try:
            self._handle(Delivery(claim.item, claim.until, envelope))
        except ItemFailed as failed:
            return Outcome(claim.item, str(failed).encode(errors="replace").decode())
        except Exception:  # the handler's business: log it, and let the envelope come again
            logger.exception("envelope %s failed and comes again", claim.item)
            return None
        return Outcome(claim.item)


_BY_HOLD: Final = {
    Hold.DONE: Reception.DROPPED,
    Hold.ENDED: Reception.DROPPED,
    Hold.LEASED: Reception.AGAIN,
}
