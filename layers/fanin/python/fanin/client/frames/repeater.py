"""The repeater: it keeps every envelope until its frame is complete, and repeats those that are missing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, runtime_checkable

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.app.api import Frames
from fanin.app.bisect import bisect
from fanin.client.frames.envelopes import OCTETS, Envelope
from fanin.client.frames.repeat_buffer import IndexRange, RepeatBuffer, SetAside
from fanin.client.paging import chunks
from fanin.domain import limits
from fanin.domain.batch import State
from fanin.domain.frames import Frame, OpenFrame
from fanin.domain.ids import MAX_COUNT
from fanin.domain.limits import MAX_PAGE
from fanin.errors import (
    BatchGone,
    BatchNotFound,
    EnvelopesRefused,
    FaninError,
    InvalidRequest,
    ServiceUnavailable,
)

logger = logging.getLogger("fanin")

Transport: TypeAlias = Callable[[Sequence[Envelope]], object]
"""Sends envelopes of one frame.

It raises an error of fanin, or OSError, if some may not have been sent; they are sent again later. It raises
``EnvelopesRefused`` for those that it can never send; they are set aside. An error that blames what is in the
envelopes (``InvalidRequest``, or any other) is traced to the envelope, so that the others are sent.
"""

FRAME_SIZE: Final = 1_000
_CHUNK: Final = 100  # envelopes given to the transport at once
_REPEATS: Final = Backoff(base=5, cap=300)
_FAULTS: Final = (FaninError, OSError)


@runtime_checkable
class PayloadCheck(Protocol):
    """A ``Transport`` that knows beforehand what it can never send, as ``SqsTransport`` does."""

    def check(self, payload: bytes, content_type: str) -> None:
        """Check that a payload can be sent.

        Raises:
            InvalidRequest: the payload can never be sent.
        """
        ...


@dataclass(frozen=True, slots=True)
class Notice:
    """A message from a frame's reply channel.

    Attributes:
        kind: ``Complete Frame``, ``Frame Ended`` or ``Repeat Requested``.
        frame: id of the frame.
    """

    kind: str
    frame: int


@dataclass(slots=True)
class _NextCheck:
    """When a frame is checked next.

    Attributes:
        due: on the repeater's clock, in seconds.
        attempt: how often the frame was checked before.
    """

    due: float
    attempt: int = 0


class Repeater:
    """Sends payloads and repeats them until they are delivered, through crashes and lost messages.

    ``put`` keeps a payload. ``flush`` opens frames for the payloads that wait, and sends them. ``tick`` does
    what is due: it reads the reply channel, asks which envelopes are missing, and sends those again. Call
    ``flush`` and ``tick`` from a thread of your own every second or so, or let ``run`` do it.

    A crash loses nothing that the buffer keeps: a frame that was opened and not filled ends by itself, and a
    frame whose envelopes are in the buffer is repeated until it is complete. A frame that timed out is
    dissolved: what is missing is sent in a new frame, as a new delivery.

    An envelope that can never be sent holds up no other: ``put`` refuses it where the transport can tell, and
    one that is found later is set aside in the buffer, with the reason. ``aside`` lists them;
    ``buffer.put_back`` sends one again, ``buffer.discard`` drops it. Until then they count in the buffer's
    usage. A frame of which only such envelopes are missing is left to time out.

    All calls except ``put`` must come from one thread. ``docs/patterns/frames.md`` has an example that runs.

    Args:
        frames: the service, ``tracker.frames``.
        transport: sends envelopes; ``SqsTransport`` does, to a queue.
        buffer: keeps envelopes.
        template: source, destination, reply channel and ttl of the frames; its size is the largest size.
        notices: takes the messages that are on the reply channel; ``queue_notices`` does, from SQS.
        backoff: waits between the repeats of a frame, with jitter, so that senders do not repeat at the same
            time. An envelope that is still in the queue counts as missing and is sent again, so the first
            wait should not be shorter than receivers take.
        clock: tells the time in seconds, monotonic.

    Raises:
        InvalidRequest: ``transport`` or ``notices`` cannot be called, or the template's size is not a whole
            number from 1.
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
        for name, argument in (("transport", transport), ("notices", notices)):
            if not callable(argument):
                raise InvalidRequest(f"{name} must be a function, not {type(argument).__name__}")
        self._frames = frames
        self._transport = transport
        self._template = template or OpenFrame(size=FRAME_SIZE)
        limits.whole("the template's size", self._template.size, 1, MAX_COUNT)
        self._notices = notices
        self._backoff = backoff
        self._clock = clock
        self._outstanding = {frame: _NextCheck(clock()) for frame in buffer.frames()}
        self._transport_failed = False
        self._unfilled: Frame | None = None
        self.buffer = buffer

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        """Keep a payload for delivery.

        Raises:
            InvalidRequest: the payload is not bytes, or the transport can never send it.
            BufferFull: the buffer holds as much as it may, or its disk is full; slow down, and try again.
        """
        if not isinstance(payload, bytes):
            raise InvalidRequest(f"a payload must be bytes, not {type(payload).__name__}; encode it")
        if not isinstance(content_type, str):
            raise InvalidRequest(f"a content type must be text, not {type(content_type).__name__}")
        if isinstance(self._transport, PayloadCheck):
            self._transport.check(payload, content_type)
        self.buffer.put(payload, content_type)

    def aside(self) -> list[SetAside]:
        """The envelopes that can never be sent, with the reasons, oldest first."""
        return self.buffer.aside()

    def flush(self) -> None:
        """Open frames for all payloads that wait, and send them.

        A transport that fails raises nothing here, because what was not sent is repeated.

        Raises:
            FaninError: no frame could be opened or filled; the payloads keep waiting.
        """
        while waiting := self.buffer.waiting:
            # A frame that did not fit on the disk is filled later; otherwise each try would open another.
            frame = self._unfilled or self._frames.open(self._sized(min(waiting, self._template.size)))
            self._unfilled = frame
            size = frame.size
            self.buffer.assign(frame.frame_id, size)
            self._unfilled = None
            self._outstanding[frame.frame_id] = _NextCheck(self._next(0))
            self._send(frame.frame_id, [(0, size)])

    def tick(self) -> int:
        """Read the reply channel, and check the frames that are due.

        Returns:
            How many frames are not complete.
        """
        self._read_notices()
        for frame_id, next_check in list(self._outstanding.items()):
            if next_check.due > self._clock():
                continue
            next_check.attempt += 1
            next_check.due = self._next(next_check.attempt)
            try:
                self._check(frame_id)
            except _FAULTS as error:
                logger.warning("frame %d cannot be checked now, trying again later: %s", frame_id, error)
            except Exception:  # an error of one frame must not stop the others
                logger.exception("frame %d cannot be checked", frame_id)
        return len(self._outstanding)

    def reconnected(self) -> None:
        """Check all frames at the next tick, because receivers can be reached again.

        The repeater does this on its own when the transport works again after an error.
        """
        for frame_id in self._outstanding:
            self._outstanding[frame_id] = _NextCheck(self._clock())

    def run(self, until: Callable[[], bool] = lambda: False, *, pause: float = 1.0) -> None:
        """Flush and tick until told to stop.

        Args:
            until: called before each round; True stops.
            pause: seconds between two rounds.
        """
        while not until():
            try:
                self.flush()
            except _FAULTS as error:
                logger.warning("no frame can be opened now, trying again later: %s", error)
            self.tick()
            self._backoff.sleep(pause)

    def _sized(self, size: int) -> OpenFrame:
        plan = self._template
        return OpenFrame(size, plan.source, plan.destination, plan.reply_to, plan.ttl, plan.user_key)

    def _next(self, attempt: int) -> float:
        return self._clock() + self._backoff.delay(attempt, self._backoff.base / 2)

    def _read_notices(self) -> None:
        try:
            notices = list(self._notices())
        except _FAULTS as error:
            logger.warning("the reply channel cannot be read now, trying again later: %s", error)
            return
        except Exception:  # the frames are checked even if the notices fail
            logger.exception("the reply channel cannot be read")
            return
        for notice in notices:
            if notice.frame not in self._outstanding:
                continue
            # Checked at this tick, even if the buffer cannot drop a complete frame now.
            self._outstanding[notice.frame] = _NextCheck(self._clock())
            if notice.kind == names.MESSAGE_COMPLETE_FRAME:
                with suppress(*_FAULTS):
                    self._forget(notice.frame)

    def _check(self, frame_id: int) -> None:
        """Send the missing envelopes of a frame again, or forget the frame if it is complete.

        Of a frame that the service no longer knows, everything is missing, up to the largest size there is:
        a sender with a larger template may have opened it.
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
        elif not self._send(frame_id, frame.missing) and frame.missing and frame.cursor is None:
            self._forget(frame_id)  # what is missing was set aside, so there is nothing left to deliver

    def _missing(self, frame: Frame) -> list[IndexRange]:
        """All ranges that are missing of a frame, from every page."""
        ranges = list(frame.missing)
        while frame.cursor is not None:
            frame = self._frames.status(frame.frame_id, cursor=frame.cursor, limit=MAX_PAGE)
            ranges += frame.missing
        return ranges

    def _forget(self, frame_id: int) -> None:
        self.buffer.drop(frame_id)
        self._outstanding.pop(frame_id, None)

    def _send(self, frame_id: int, ranges: Iterable[IndexRange]) -> bool:
        """Send envelopes; what is not sent is repeated when the frame is due.

        Returns:
            Whether the buffer holds any of them.

        Raises:
            FaninError: the buffer cannot be read.
        """
        held = False
        for chunk in chunks(self.buffer.read(frame_id, ranges), max_items=_CHUNK):
            held = True
            failures = bisect(chunk, self._send_some, on_defect=True)
            for failed in failures:
                logger.warning(
                    "%d envelopes of frame %d from index %d were not sent, repeating them later: %s",
                    len(failed.items),
                    frame_id,
                    failed.items[0].index,
                    failed.error,
                )
            if sum(len(failed.items) for failed in failures) == len(chunk):
                self._transport_failed = True
                return held
        if held and self._transport_failed:
            self._transport_failed = False
            self.reconnected()
        return held

    def _send_some(self, envelopes: Sequence[Envelope]) -> None:
        """Send envelopes, and set aside those that the transport can never send."""
        try:
            self._transport(envelopes)
        except OSError as error:
            raise ServiceUnavailable(f"the transport failed: {error}") from error
        except EnvelopesRefused as refused:
            frame_id = envelopes[0].frame
            for index, reason in refused.reasons.items():
                logger.warning("envelope %d of frame %d is set aside: %s", index, frame_id, reason)
            self.buffer.set_aside(frame_id, refused.reasons)
