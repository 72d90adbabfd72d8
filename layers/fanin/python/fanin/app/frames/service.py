"""Frames: guaranteed delivery of a known number of envelopes, on a closed batch.

The sender keeps what it sent until the frame is complete; receivers claim an envelope, handle it, and
acknowledge its item. A frame has no owner: any receiver can take any of its envelopes, and a sender that
restarts finds out what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.service import LedgerService
from fanin.app.ledger.totals import Totals
from fanin.app.ports.words import Claim as Lease
from fanin.app.ports.words import WordKey
from fanin.domain import ids, limits
from fanin.domain.batch import Batch, Kind, State
from fanin.domain.frames import Claim, Frame, Hold, OpenFrame, Ticket
from fanin.domain.principals import Principal
from fanin.errors import BatchNotFound, InvalidRequest


class FrameService:
    """Implements ``fanin.app.api.Frames`` over the ledger.

    Args:
        ledger: opens the batches, and lists what is missing; the service uses its ports.
    """

    def __init__(self, ledger: LedgerService) -> None:
        self._ports = ports = ledger.ports
        self._ledger = ledger
        self._known = KnownBatches(ports.batches, ports.clock)
        self._totals = Totals(ports)
        # Of a frame with totals, the sums take half of the rows, and the list of what is missing the others.
        self._half = ledger.rows // 2
        self._beside_totals = LedgerService(ports, known=self._known, rows=self._half)

    def open(self, request: OpenFrame, *, key: str | None = None, caller: Principal | None = None) -> Frame:
        limits.whole("size", request.size, 1, ids.MAX_COUNT)
        asked = request.batch()
        if request.reply_to:
            asked = replace(request, reply_to=self._ports.channels.resolve(request.reply_to)).batch()
        return Frame.of(self._ledger.open(asked, key=key, caller=caller))

    def status(self, frame_id: int, *, cursor: str | None = None, limit: int = 100) -> Frame:
        batch = _frame(self._known.current(frame_id))
        frame = Frame.of(self._totals.counted(batch, budget=self._half))
        if frame.state is State.COMPLETE:
            return frame
        ledger = self._beside_totals if batch.totals else self._ledger
        page = ledger.missing(frame_id, cursor=cursor, limit=limit)
        if frame.state is State.CLOSED and cursor is page.cursor is None and not page.ranges:
            # Nothing is missing, but the last receiver died before it could complete the frame.
            return Frame.of(self._ledger.verify(frame_id).batch)
        return frame.lacking(tuple((found.start, found.stop) for found in page.ranges), page.cursor)

    def claim(self, tickets: Sequence[Ticket], *, lease: int = limits.DEFAULT_ENVELOPE_LEASE) -> list[Claim]:
        limits.at_most("claims", tickets, limits.MAX_CLAIMS)
        limits.whole("lease", lease, 1, limits.MAX_ENVELOPE_LEASE)
        if len(set(tickets)) < len(tickets):
            raise InvalidRequest("an envelope is named twice in one call; claim each once")
        frames = self._known.fresh({ticket.frame_id for ticket in tickets})
        for frame in frames.values():
            _frame(frame)
        for ticket in tickets:
            limits.whole("index", ticket.index, 0, frames[ticket.frame_id].items - 1)
        now_ms = self._ports.clock.now()
        now, until = now_ms // 1000, -(-now_ms // 1000) + lease  # a lease is never shorter than asked for
        live = [ticket for ticket in tickets if not frames[ticket.frame_id].state.terminal]
        found = self._ports.words.claim(
            [self._lease(ticket, frames[ticket.frame_id], now, until) for ticket in live]
        )
        held = {
            ticket: (Hold.CLAIMED if answer.taken else Hold.LEASED if answer.pending else Hold.DONE, answer)
            for ticket, answer in zip(live, found, strict=True)
        }
        claims = []
        for ticket in tickets:
            frame = frames[ticket.frame_id]
            item = f"{ids.issue(frame.batch_id, 0, frame.items, frame.salt).prefix}:{ticket.index}"
            if ticket in held:
                hold, answer = held[ticket]
                claims.append(Claim(ticket, hold, item, answer.until))
            else:
                hold = Hold.DONE if frame.state is State.COMPLETE else Hold.ENDED
                claims.append(Claim(ticket, hold, item))
        return claims

    def _lease(self, ticket: Ticket, frame: Batch, now: int, until: int) -> Lease:
        # Envelopes are acknowledged by their ids, so the word of level 0 alone says whether one is done.
        number, position = divmod(ticket.index, self._ports.tree.width)
        return Lease(WordKey(ticket.frame_id, 0, number), position, now, until, frame.expires_at)


def _frame(batch: Batch) -> Batch:
    if batch.kind is not Kind.FRAME:
        raise BatchNotFound(f"batch {batch.batch_id} is not a frame; open one with POST /v1/frames")
    return batch
