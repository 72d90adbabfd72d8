"""Messages to senders about their frames: Complete Frame, Frame Ended, Repeat Requested."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from fanin import names
from fanin.app.api import Ledger
from fanin.app.ports import Ports
from fanin.app.ports.batches import Activity
from fanin.app.ports.channels import Outgoing
from fanin.app.ports.events import Event
from fanin.domain.batch import RETENTION, Batch, State
from fanin.domain.frames import REPLY_TO, is_marked, mark_of
from fanin.errors import FaninError

LISTED: Final = 1_000
"""How many missing ranges a request to repeat lists; the sender asks for the rest."""


class FrameNotices:
    """How frames handle their ends and idle times: the hooks of ``fanin.app.ledger.kinds``.

    Args:
        ports: the batch rows and the channels.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def ended(self, _ledger: Ledger, _batch: Batch, event: Event) -> Event:
        """Make the event of a frame's end; its type says Frame instead of Batch."""
        return event._replace(detail_type=event.detail_type.replace("Batch", "Frame"))

    def announced(self, batch: Batch) -> None:
        """Tell the sender that its frame has ended: after the event, which no broken channel may hold up."""
        complete = batch.state is State.COMPLETE
        kind = names.MESSAGE_COMPLETE_FRAME if complete else names.MESSAGE_FRAME_ENDED
        self._tell(batch, kind, {"state": batch.state.value})

    def idle(self, ledger: Ledger, batch: Batch) -> State | None:
        """Request a repeat of the missing envelopes, once for each stall; end the frame if that did not help.

        The request is recorded by one conditional write of the row's ``touched_at``, after the message is
        sent: a crash in between sends it again, and an acknowledgement in between overrules it. A frame whose
        sender cannot be reached is marked as well, so that it ends in time; the error is raised then.
        """
        now = self._ports.clock.now()
        if is_marked(batch) or now >= (batch.expires_at - RETENTION) * 1000:
            return State.TIMED_OUT
        page = ledger.missing(batch.batch_id, limit=LISTED)
        missing = [[found.start, found.stop] for found in page.ranges]
        try:
            self._tell(
                batch, names.MESSAGE_REPEAT_REQUESTED, {"missing": missing, "more": page.cursor is not None}
            )
        except Exception as error:
            if not (isinstance(error, FaninError) and error.retryable):
                self._mark(batch, now)
            raise
        self._mark(batch, now)
        return None

    def _mark(self, batch: Batch, now: int) -> None:
        mark = mark_of(now, batch.idle_ttl)
        self._ports.batches.touch(batch.batch_id, Activity(mark, batch.active(mark).due_at))

    def _tell(self, batch: Batch, kind: str, said: Mapping[str, object]) -> None:
        """Send a message to the frame's reply channel, if it has one; a refusal does not stop the frame."""
        channel = batch.metadata.get(REPLY_TO)
        if channel is None:
            return
        body = {"type": kind, "frame_id": batch.batch_id, "size": batch.items, **said}
        attributes = {
            names.ATTRIBUTE_TYPE: kind,
            names.ATTRIBUTE_CORRELATION: str(batch.batch_id),
        }
        self._ports.channels.send([Outgoing(channel, json.dumps(body, separators=(",", ":")), attributes)])
