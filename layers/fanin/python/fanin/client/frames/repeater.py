"""The repeater: keeps every envelope until its frame is complete, and sends again what is missing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.app.api import Frames
from fanin.client.frames.envelopes import OCTETS, Envelope
from fanin.client.frames.repeat_buffer import RepeatBuffer, Span
from fanin.client.paging import pages
from fanin.domain.batch import State
from fanin.domain.frames import Frame, OpenFrame
from fanin.domain.ids import MAX_COUNT
from fanin.domain.limits import MAX_PAGE
from fanin.errors import BatchGone, BatchNotFound, FaninError

logger = logging.getLogger("fanin")

Transport: TypeAlias = Callable[[Sequence[Envelope]], object]
"""Sends envelopes; raises an error of fanin's, or OSError, if some may not have been sent."""

FRAME_SIZE: Final = 1_000
_CHUNK: Final = 100  # envelopes given to the transport at once
_REPEATS: Final = Backoff(base=5, cap=300)
_FAULTS: Final = (FaninError, OSError)


@dataclass(frozen=True, slots=True)
class Notice:
    """A message of a frame's reply channel.

    Attributes:
        kind: ``Complete Frame``, ``Frame Ended`` or ``Repeat Requested``.
        frame: the frame.
    """

    kind: str
    frame: int


@dataclass(slots=True)
class _Watch:
    """When a frame is looked at next, and how often it was."""

    due: float
    attempt: int = 0


class Repeater:
    """The sender's end of guaranteed delivery.

    ``put`` keeps a payload; ``flush`` asks for frames for what waits, and sends it; ``tick`` does what is
    due: it hears the reply channel, asks which envelopes are missing, and sends those again. A service thread
    of yours calls ``flush`` and ``tick`` now and then, or ``run`` does both.

    A crash at any step loses nothing that the buffer keeps: a frame that was asked for and never filled ends
    by itself, and a frame that the buffer knows is repeated until it is complete. A frame that timed out
    is dissolved: what is missing is sent in a new frame, as a new delivery.

    Use it from one thread; only ``put`` may be called from others.

    Args:
        frames: the service.
        transport: sends envelopes.
        buffer: keeps them.
        template: source, destination, reply channel and ttl of the frames; its size is the largest.
        notices: takes what has come on the reply channel; ``queue_notices`` does, from SQS.
        backoff: waits between repeats of a frame; jittered, so that senders do not repeat together. What is
            still in the queue counts as missing and is sent again, so let the first wait be no shorter than
            receivers take to get there.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        frames: Frames,
        transport: Transport,
        buffer: RepeatBuffer,
        *,
        template: OpenFrame | None = None,
        notices: Callable[[], Iterable[Notice]] = tuple,
        backoff: Backoff = _REPEATS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._frames = frames
        self._transport = transport
        self._template = template or OpenFrame(size=FRAME_SIZE)
        self._notices = notices
        self._backoff = backoff
        self._clock = clock
        self._watches = {frame: _Watch(clock()) for frame in buffer.frames()}
        self._down = False
        self.buffer = buffer

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        """Keep a payload for delivery.

        Raises:
            BufferFull: too much is under way; slow down.
        """
        self.buffer.put(payload, content_type)

    def flush(self) -> None:
        """Ask for frames for everything that waits, and send it.

        What cannot be sent is no error, since it is repeated.

        Raises:
            FaninError: no frame could be asked for; what waits goes on waiting.
        """
        while waiting := self.buffer.waiting:
            size = min(waiting, self._template.size)
            frame = self._frames.open(self._sized(size))
            self.buffer.assign(frame.frame_id, size)
            self._watches[frame.frame_id] = _Watch(self._next(0))
            self._send(frame.frame_id, [(0, size)])

    def tick(self) -> int:
        """Do what is due.

        Returns:
            How many frames are under way.
        """
        self._hear()
        for frame_id, watch in list(self._watches.items()):
            if watch.due > self._clock():
                continue
            watch.attempt += 1
            watch.due = self._next(watch.attempt)
            try:
                self._look(frame_id)
            except _FAULTS as error:
                logger.warning("frame %d is looked at again later: %s", frame_id, error)
        return len(self._watches)

    def reconnected(self) -> None:
        """Look at all frames now: the way to the receivers is open again.

        Called by itself when the transport works after it had failed.
        """
        for frame_id in self._watches:
            self._watches[frame_id] = _Watch(self._clock())

    def run(self, until: Callable[[], bool] = lambda: False, *, pause: float = 1.0) -> None:
        """Flush and tick until told to stop.

        Args:
            until: asked before each round; True stops.
            pause: seconds between rounds.
        """
        while not until():
            try:
                self.flush()
            except _FAULTS as error:
                logger.warning("no frame can be asked for now: %s", error)
            self.tick()
            self._backoff.sleep(pause)

    def _sized(self, size: int) -> OpenFrame:
        plan = self._template
        return OpenFrame(size, plan.source, plan.destination, plan.reply_to, plan.ttl, plan.user_key)

    def _next(self, attempt: int) -> float:
        return self._clock() + self._backoff.delay(attempt, self._backoff.base / 2)

    def _hear(self) -> None:
        try:
            heard = list(self._notices())
        except _FAULTS as error:
            logger.warning("the reply channel is heard later: %s", error)
            return
        for notice in heard:
            if notice.kind == names.MESSAGE_COMPLETE_FRAME:
                self._forget(notice.frame)
            elif notice.frame in self._watches:
                self._watches[notice.frame] = _Watch(self._clock())

    def _look(self, frame_id: int) -> None:
        """Repeat what is missing of a frame, or forget it if nothing is.

        Of one that the service no longer knows, all is missing: another sender may have made it larger.
        """
        try:
            frame = self._frames.status(frame_id, limit=MAX_PAGE)
        except (BatchNotFound, BatchGone):
            frame = Frame(frame_id, State.ORPHANED, 0, 0, {}, missing=((0, MAX_COUNT),))
        if frame.state is State.COMPLETE:
            self._forget(frame_id)
        elif frame.state.terminal:
            self.buffer.release(frame_id, self._missing(frame))
            self._forget(frame_id)
        else:
            self._send(frame_id, frame.missing)

    def _missing(self, frame: Frame) -> list[Span]:
        """All that is missing of a frame, every page of it."""
        spans = list(frame.missing)
        while frame.cursor is not None:
            frame = self._frames.status(frame.frame_id, cursor=frame.cursor, limit=MAX_PAGE)
            spans += frame.missing
        return spans

    def _forget(self, frame_id: int) -> None:
        self.buffer.drop(frame_id)
        self._watches.pop(frame_id, None)

    def _send(self, frame_id: int, spans: Iterable[Span]) -> None:
        """Send envelopes; what fails is due again later."""
        try:
            for chunk in pages(self.buffer.read(frame_id, spans), most=_CHUNK):
                self._transport(chunk)
        except _FAULTS as error:
            logger.warning("frame %d is repeated later: %s", frame_id, error)
            self._down = True
            return
        if self._down:
            self._down = False
            self.reconnected()
