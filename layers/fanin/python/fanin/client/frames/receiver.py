"""The idempotent receiver: it handles each envelope once, however often the envelope is delivered."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from fanin.app.api import Frames
from fanin.app.bisect import bisect
from fanin.client.consuming.acknowledging import Acknowledger, ItemOutcome, unacknowledged
from fanin.client.frames.envelopes import Envelope
from fanin.domain.frames import DEFAULT_LEASE, Claim, Hold, Ticket
from fanin.errors import BatchGone, ItemFailed

logger = logging.getLogger("fanin")

_STALE: Final = 0.5  # share of its lease that must be left for an envelope to be handled


class Disposition(Enum):
    """What became of an envelope, and so of the message that carried it."""

    HANDLED = auto()
    """It was handled and acknowledged: delete the message."""
    DROPPED = auto()
    """It was handled before, or its frame has ended: delete the message."""
    REDELIVER = auto()
    """Another receiver is handling it, or something failed: let the queue deliver the message again."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A payload for a handler, with what the handler needs to make its effect happen exactly once.

    A process may die after the effect and before the acknowledgement; then the envelope is handled again. An
    effect that is stored under ``item``, by a conditional put or a unique key, happens once even so.

    Attributes:
        item: id of the envelope, the same in every attempt.
        fencing_token: larger in each later attempt, so that a store that remembers it can refuse the write of
            an attempt whose lease has run out; the end of this attempt's lease, in seconds since the epoch.
            See "How to do distributed locking", Martin Kleppmann, 2016.
        envelope: frame, index, payload and content type.
    """

    item: str
    fencing_token: int
    envelope: Envelope

    @property
    def payload(self) -> bytes:
        return self.envelope.payload


DeliveryHandler: TypeAlias = Callable[[Delivery], object]
"""Handles a payload. It raises ``ItemFailed`` to mark it failed for good, any other error to get it again."""


class IdempotentReceiver:
    """Handles each envelope once, however often it is delivered, and never twice at the same time.

    It claims each envelope, handles it, and acknowledges it. The claim and the acknowledgement are one
    conditional write each. If a receiver dies in between, its lease runs out, and the envelope is handled by
    the receiver that gets it next. The pattern is "Idempotent Receiver", Enterprise Integration Patterns.

    ::

        receiver = IdempotentReceiver(tracker.frames, handle, tracker.acknowledger())
        handler = SqsReceiver(receiver)  # a Lambda handler

    Args:
        frames: makes the claims, as ``tracker.frames`` does.
        handle: does the work, in less time than the lease.
        acknowledge: tells the ledger what is done: ``tracker.acknowledger("api")`` or ``("queue")``.
        lease: seconds for which an envelope is claimed.
        clock: tells the time in seconds since the epoch.
    """

    def __init__(
        self,
        frames: Frames,
        handle: DeliveryHandler,
        acknowledge: Acknowledger,
        *,
        lease: int = DEFAULT_LEASE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._frames = frames
        self._handle = handle
        self._acknowledge = acknowledge
        self._lease = lease
        self._clock = clock

    def receive(self, envelopes: Sequence[Envelope]) -> list[Disposition]:
        """Claim envelopes together, handle them one after the other, acknowledge them together.

        Args:
            envelopes: any number, of any frames, copies included.

        Returns:
            What became of each envelope, in the same order; copies of an envelope have the same disposition.
        """
        unique = {envelope.ticket: envelope for envelope in envelopes}
        claims = self._claim(list(unique))
        dispositions: dict[Ticket, Disposition] = {}
        outcomes: dict[Ticket, ItemOutcome] = {}
        for ticket, envelope in unique.items():
            found = claims[ticket]
            if isinstance(found, Disposition):
                dispositions[ticket] = found
            elif outcome := self._handle_claimed(found, envelope):
                outcomes[ticket] = outcome
            else:
                dispositions[ticket] = Disposition.REDELIVER
        unmarked = unacknowledged(self._acknowledge, list(outcomes.values()))
        for ticket, outcome in outcomes.items():
            dispositions[ticket] = Disposition.REDELIVER if outcome.item in unmarked else Disposition.HANDLED
        return [dispositions[envelope.ticket] for envelope in envelopes]

    def _claim(self, tickets: list[Ticket]) -> dict[Ticket, Claim | Disposition]:
        """Claim envelopes; one that is refused does not affect the others."""
        found: dict[Ticket, Claim | Disposition] = {}

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
            disposition = Disposition.DROPPED if isinstance(error, BatchGone) else Disposition.REDELIVER
            found.update(dict.fromkeys(failed.items, disposition))
        return found

    def _handle_claimed(self, claim: Claim, envelope: Envelope) -> ItemOutcome | None:
        """Handle an envelope; None if it must come again."""
        if claim.until - self._clock() < self._lease * _STALE:
            return None  # the envelopes before it took so long that its lease might end during the handling
        try:
            self._handle(Delivery(claim.item, claim.until, envelope))
        except ItemFailed as failed:
            return ItemOutcome(claim.item, failed.reason)
        except Exception:  # whatever the handler raises, the queue delivers the envelope again
            logger.exception("envelope %s failed and comes again", claim.item)
            return None
        return ItemOutcome(claim.item)


_BY_HOLD: Final = {
    Hold.DONE: Disposition.DROPPED,
    Hold.ENDED: Disposition.DROPPED,
    Hold.LEASED: Disposition.REDELIVER,
}
