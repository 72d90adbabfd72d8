"""The idempotent receiver: it handles each envelope once, however often the envelope is delivered."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, TypeAlias

from fanin.app.api import Frames
from fanin.app.bisect import bisect
from fanin.client.consuming.acknowledging import Acknowledger, QueueAcknowledger
from fanin.client.consuming.window import check_returned
from fanin.client.frames.envelopes import Envelope
from fanin.domain import limits
from fanin.domain.frames import Claim, Hold, Ticket
from fanin.domain.limits import MAX_ENVELOPE_LEASE
from fanin.domain.marks import Done, Failure, Mark
from fanin.domain.totals import with_values
from fanin.errors import BatchGone, FaninError, InvalidRequest, ItemFailed

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


logger = logging.getLogger("fanin")


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
        totals: what ``add`` was given, by the names of the frame's totals.
    """

    item: str
    fencing_token: int
    envelope: Envelope
    totals: dict[str, int] = field(default_factory=dict, compare=False)

    def add(self, **values: int) -> None:
        """Add to the totals of the frame, such as ``delivery.add(rows=812)``.

        The values count once, with the first acknowledgement of the envelope. Several calls add up.

        Args:
            values: a whole number within ±2⁵³ for each total that the frame was opened with.

        Raises:
            InvalidRequest: a value, or its sum with the earlier ones, is not such a number; nothing is added.
        """
        self.totals.update(with_values(self.totals, values))

    @property
    def payload(self) -> bytes:
        return self.envelope.payload


DeliveryHandler: TypeAlias = Callable[[Delivery], object]
"""Handles a payload. It raises ``ItemFailed`` to mark it failed for good, any other error to get it again."""


class IdempotentReceiver:
    """Handles each envelope once, however often it is delivered, and never twice at the same time.

    It claims each envelope, handles it, and acknowledges it. The claim and the acknowledgement are one
    conditional write each. Envelopes are claimed and acknowledged together only as far as the handler is
    likely to get in a quarter of the lease, by how long it took before; the claim itself counts too. Where
    claims take long, a short lease would be over too soon for any envelope to be begun, so the receiver takes
    a longer one, and warns. If a receiver dies in between, its lease runs out, and the envelope is handled by
    the receiver that gets it next. The pattern is "Idempotent Receiver", Enterprise Integration Patterns.

    ::

        receiver = IdempotentReceiver(tracker.frames, handle, tracker.acknowledger())
        handler = SqsReceiver(receiver)  # a Lambda handler

    Args:
        frames: makes the claims, as ``tracker.frames`` does.
        handle: does the work of one envelope, within half of the lease.
        acknowledge: tells the ledger what is done, and returns when it is marked: ``tracker.acknowledger()``.
        lease: seconds for which an envelope is claimed; at least eight times as long as a claim takes, or the
            receiver takes a longer one.
        clock: tells the time in seconds, monotonic. It measures how much of a lease is over since it was
            asked for, so it need not agree with the clock of the service.

    Raises:
        InvalidRequest: the lease is not a whole number of seconds from 1 to 43,200; ``handle`` cannot be
            called; or ``acknowledge`` sends to the ack queue. It returns before the items are marked, so an
            envelope that comes again after its lease would be handled twice.
    """

    def __init__(
        self,
        frames: Frames,
        handle: DeliveryHandler,
        acknowledge: Acknowledger,
        *,
        lease: int = limits.DEFAULT_ENVELOPE_LEASE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if isinstance(acknowledge, QueueAcknowledger):
            raise InvalidRequest(
                "a receiver of frames cannot acknowledge through the ack queue, where marks may come after "
                'the lease; pass tracker.acknowledger("api")'
            )
        if not callable(handle):
            raise InvalidRequest(f"handle must be a function of a Delivery, not {type(handle).__name__}")
        limits.whole("lease", lease, 1, limits.MAX_ENVELOPE_LEASE)
        self._frames = frames
        self._handle = handle
        self._acknowledge = acknowledge
        self._plan = LeasePlan(lease)
        self._clock = clock

    def receive(self, envelopes: Sequence[Envelope]) -> list[Disposition]:
        """Claim envelopes together, handle them one after the other, acknowledge them together.

        Args:
            envelopes: any number, of any frames, copies included.

        Returns:
            What became of each envelope, in the same order; copies of an envelope have the same disposition.
        """
        left = list({envelope.ticket: envelope for envelope in envelopes}.values())
        dispositions: dict[Ticket, Disposition] = {}
        while left:
            seconds = self._plan.lease()
            together = self._plan.together(seconds)
            lease = TakenLease(self._clock(), seconds)
            claims, answered = self._claim([envelope.ticket for envelope in left[:together]], seconds)
            if answered:
                self._plan.claimed(self._clock() - lease.asked_at)
            dispositions |= self._handle_together(left[:together], claims, lease)
            left = left[together:]
            if not answered:  # the service would not answer the next claim either
                break
        return [dispositions.get(envelope.ticket, Disposition.REDELIVER) for envelope in envelopes]

    def _handle_together(
        self, envelopes: Sequence[Envelope], claims: Mapping[Ticket, Claim | Disposition], lease: TakenLease
    ) -> dict[Ticket, Disposition]:
        """Handle envelopes that were claimed together, and acknowledge them in one call.

        Returns:
            What became of them; those that it does not name come again.
        """
        dispositions: dict[Ticket, Disposition] = {}
        marks: dict[Ticket, Mark] = {}
        for envelope in envelopes:
            found = claims.get(envelope.ticket)
            if isinstance(found, Disposition):
                dispositions[envelope.ticket] = found
            elif found and (mark := self._handle_claimed(found, envelope, lease)):
                marks[envelope.ticket] = mark
        unsettled = self._acknowledge(list(marks.values())) if marks else {}
        for place, ticket in enumerate(marks):
            if error := unsettled.get(place):
                logger.warning("an envelope of frame %d comes again: %s", ticket.frame_id, error)
            else:
                dispositions[ticket] = Disposition.HANDLED
        return dispositions

    def _claim(self, tickets: list[Ticket], lease: int) -> tuple[dict[Ticket, Claim | Disposition], bool]:
        """Claim envelopes; one that is refused does not affect the others.

        Returns:
            What was found of each, and whether the service answered for all of them.
        """
        found: dict[Ticket, Claim | Disposition] = {}
        answered = True

        def claim(some: Sequence[Ticket]) -> None:
            claims = self._frames.claim(some, lease=lease)
            found.update((claim.ticket, _BY_HOLD.get(claim.hold, claim)) for claim in claims)

        for failed in bisect(tickets, claim, on_defect=True):
            error = failed.error
            if failed.refused:
                logger.warning("an envelope of frame %d was refused: %s", failed.items[0].frame_id, error)
            else:
                count = len(failed.items)
                logger.warning("%d envelopes could not be claimed and come again: %s", count, error)
                answered = answered and not isinstance(error, FaninError)
            disposition = Disposition.DROPPED if isinstance(error, BatchGone) else Disposition.REDELIVER
            found.update(dict.fromkeys(failed.items, disposition))
        return found, answered

    def _handle_claimed(self, claim: Claim, envelope: Envelope, lease: TakenLease) -> Mark | None:
        """Handle an envelope that was claimed; None if it must come again."""
        began = self._clock()
        if not lease.leaves_time(began):
            logger.warning(
                "envelope %s comes again: %.1f s of its lease of %d s were over before it was begun; "
                "choose a longer lease if that happens often",
                claim.item,
                began - lease.asked_at,
                lease.seconds,
            )
            return None
        delivery = Delivery(claim.item, claim.until, envelope)
        try:
            check_returned(self._handle(delivery))
        except ItemFailed as failed:
            return Failure(claim.item, failed.reason[: limits.MAX_REASON], totals=delivery.totals)
        except Exception:  # whatever the handler raises, the queue delivers the envelope again
            logger.exception("envelope %s failed and comes again", claim.item)
            return None
        finally:
            self._plan.handled(self._clock() - began)
        return Done(claim.item, delivery.totals)


_BY_HOLD: Final = {
    Hold.DONE: Disposition.DROPPED,
    Hold.ENDED: Disposition.DROPPED,
    Hold.LEASED: Disposition.REDELIVER,
}
