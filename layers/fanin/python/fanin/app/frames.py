"""Guaranteed delivery: frames of a known number of envelopes on a closed batch; messages to their senders.

The sender keeps what it sent until the frame is complete; receivers claim an envelope, handle it, and
acknowledge its item. A frame has no owner: any receiver can take any of its envelopes, and a sender that
restarts finds out what is missing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fanin import names
from fanin.app.api import Ledger
from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.service import LedgerService
from fanin.app.ledger.walk import count_totals
from fanin.app.ports import Ports
from fanin.app.ports.batches import Activity
from fanin.app.ports.events import Event
from fanin.app.ports.queues import Outgoing
from fanin.app.ports.words import Claimed, ItemClaim, WordKey
from fanin.domain import ids, limits
from fanin.domain.access import Principal
from fanin.domain.batch import RETENTION, Batch, Kind, State
from fanin.domain.frames import REPLY_TO, Claim, Frame, Hold, OpenFrame, Ticket, is_marked, mark_of
from fanin.errors import BatchNotFound, FaninError, InvalidRequest


class FrameService:
    """Implements ``fanin.app.api.Frames`` over the ledger.

    Args:
        ledger: opens the batches, and lists what is missing; the service uses its ports.
    """

    def __init__(self, ledger: LedgerService) -> None:
        self._ports = ports = ledger.ports
        self._ledger = ledger
        self._known = KnownBatches(ports.batches, ports.clock)
        # Of a frame with totals, the sums take half of the rows, and the list of what is missing the others.
        self._half = ledger.rows // 2
        self._beside_totals = LedgerService(ports, known=self._known, rows=self._half)

    def open(self, request: OpenFrame, *, key: str | None = None, caller: Principal | None = None) -> Frame:
        limits.whole("size", request.size, 1, ids.MAX_COUNT)
        if request.reply_to:
            request = replace(request, reply_to=self._ports.channels.resolve(request.reply_to))
        return Frame.of(self._ledger.open(request.batch(), key=key, caller=caller))

    def status(self, frame_id: int, *, cursor: str | None = None, limit: int = 100) -> Frame:
        batch = _frame(self._known.current(frame_id))
        frame = Frame.of(count_totals(self._ledger.ports, batch, budget=self._half))
        if frame.state is State.COMPLETE:
            return frame
        ledger = self._beside_totals if batch.totals else self._ledger
        page = ledger.missing(frame_id, cursor=cursor, limit=limit)
        if frame.state is State.CLOSED and cursor is page.cursor is None and not page.ranges:
            # Nothing is missing, but the last receiver died before it could complete the frame.
            return Frame.of(self._ledger.verify(frame_id).batch)
        missing = tuple((found.start, found.stop) for found in page.ranges)
        return replace(frame, missing=missing, cursor=page.cursor)

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
        leases: dict[Ticket, ItemClaim] = {}
        for ticket in tickets:
            frame = frames[ticket.frame_id]
            if not frame.state.terminal:
                # Envelopes are acknowledged by their ids: the word of level 0 alone says whether one is done.
                number, position = divmod(ticket.index, self._ports.tree.width)
                word = WordKey(ticket.frame_id, 0, number)
                leases[ticket] = ItemClaim(word, position, now, until, frame.expires_at)
        answers = dict(zip(leases, self._ports.words.claim(list(leases.values())), strict=True))
        return [_claimed(ticket, frames[ticket.frame_id], answers.get(ticket)) for ticket in tickets]


def _claimed(ticket: Ticket, frame: Batch, answer: Claimed | None) -> Claim:
    """What became of a claim; None was asked of a frame that has ended."""
    item = f"{ids.issue(frame.batch_id, 0, frame.items, frame.salt).prefix}:{ticket.index}"
    if answer is None:
        return Claim(ticket, Hold.DONE if frame.state is State.COMPLETE else Hold.ENDED, item)
    hold = Hold.CLAIMED if answer.taken else Hold.LEASED if answer.pending else Hold.DONE
    return Claim(ticket, hold, item, answer.until)


def _frame(batch: Batch) -> Batch:
    if batch.kind is not Kind.FRAME:
        raise BatchNotFound(f"batch {batch.batch_id} is not a frame; open one with POST /v1/frames")
    return batch


# How frames handle their ends and idle times; ``fanin.app.services.Patterns`` calls these for the ledger.

LISTED = 1_000
"""How many missing ranges a request to repeat lists; the sender asks for the rest."""


def ended(event: Event) -> Event:
    """Make the event of a frame's end; its type says Frame instead of Batch."""
    return event._replace(detail_type=event.detail_type.replace("Batch", "Frame"))


def announced(ports: Ports, batch: Batch) -> None:
    """Tell the sender that its frame has ended: after the event, which no broken channel may hold up."""
    complete = batch.state is State.COMPLETE
    kind = names.MESSAGE_COMPLETE_FRAME if complete else names.MESSAGE_FRAME_ENDED
    _tell(ports, batch, kind, {"state": batch.state.value})


def idle(ports: Ports, ledger: Ledger, batch: Batch) -> State | None:
    """Request a repeat of the missing envelopes, once for each stall; end the frame if that did not help.

    The request is recorded by one conditional write of the row's ``touched_at``, after the message is sent: a
    crash in between sends it again, and an acknowledgement in between overrules it. A frame whose sender
    cannot be reached is marked as well, so that it ends in time; the error is raised then.
    """
    now = ports.clock.now()
    if is_marked(batch) or now >= (batch.expires_at - RETENTION) * 1000:
        return State.TIMED_OUT
    page = ledger.missing(batch.batch_id, limit=LISTED)
    missing = [[found.start, found.stop] for found in page.ranges]
    said = {"missing": missing, "more": page.cursor is not None}
    try:
        _tell(ports, batch, names.MESSAGE_REPEAT_REQUESTED, said)
    except Exception as error:
        if not (isinstance(error, FaninError) and error.retryable):
            _mark(ports, batch, now)
        raise
    _mark(ports, batch, now)
    return None


def _mark(ports: Ports, batch: Batch, now: int) -> None:
    mark = mark_of(batch, now)
    ports.batches.touch(batch.batch_id, Activity(mark, batch.active(mark).due_at))


def _tell(ports: Ports, batch: Batch, kind: str, said: Mapping[str, object]) -> None:
    """Send a message to the frame's reply channel, if it has one; a refusal does not stop the frame."""
    channel = batch.metadata.get(REPLY_TO)
    if channel is None:
        return
    body = {"type": kind, "frame_id": batch.batch_id, "size": batch.items, **said}
    attributes = {names.ATTRIBUTE_TYPE: kind, names.ATTRIBUTE_CORRELATION: str(batch.batch_id)}
    ports.channels.send([Outgoing(channel, json.dumps(body, separators=(",", ":")), attributes)])
