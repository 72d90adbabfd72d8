"""The repeater: it keeps every envelope until its frame is complete, and repeats those that are missing."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from math import inf
from typing import Final, NamedTuple

from fanin import names
from fanin.adapters.backoff import Backoff
from fanin.app.api import Frames
from fanin.app.bisect import bisect
from fanin.client.frames.envelopes import (
    OCTETS,
    Envelope,
    Notice,
    PayloadCheck,
    Transport,
    check_content_type,
)
from fanin.client.frames.repeat_buffer import IndexRange, SetAside, SqliteRepeatBuffer
from fanin.domain import limits
from fanin.domain.batch import State
from fanin.domain.frames import DESTINATION, REPLY_TO, SOURCE, Frame, OpenFrame
from fanin.domain.ids import MAX_COUNT
from fanin.domain.limits import MAX_PAGE, chunks
from fanin.domain.paging import pages
from fanin.errors import GONE, EnvelopesRefused, FaninError, InvalidRequest, ServiceUnavailable


class CheckSchedule:
    """The frames that are not complete, and when each is checked next.

    Args:
        frames: ids of frames that are due now.
        backoff: waits between the checks of a frame, with jitter.
        clock: tells the time in seconds, monotonic.
    """

    def __init__(self, frames: Iterable[int], backoff: Backoff, clock: Callable[[], float]) -> None:
        self._backoff = backoff
        self._clock = clock
        self._next = {frame: (clock(), 0) for frame in frames}
        """When each frame is checked next, and how often it was before."""

    def __len__(self) -> int:
        return len(self._next)

    def __contains__(self, frame_id: int) -> bool:
        return frame_id in self._next

    def add(self, frame_id: int) -> None:
        """Check a frame after the first wait, because it is sent now."""
        self._next[frame_id] = (self._after(0), 0)

    def hasten(self, frame_id: int) -> None:
        """Check a frame at the next occasion."""
        self._next[frame_id] = (self._clock(), 0)

    def hasten_all(self) -> None:
        """Check all frames at the next occasion."""
        for frame_id in self._next:
            self.hasten(frame_id)

    def forget(self, frame_id: int) -> None:
        """Check a frame no more; an unknown frame is ignored."""
        self._next.pop(frame_id, None)

    def due(self) -> Iterator[int]:
        """Frames to check now; each is due again after its next wait."""
        for frame_id in list(self._next):
            due, attempt = self._next.get(frame_id, (inf, 0))
            if due <= self._clock():
                self._next[frame_id] = (self._after(attempt + 1), attempt + 1)
                yield frame_id

    def _after(self, attempt: int) -> float:
        return self._clock() + self._backoff.delay(attempt, self._backoff.base / 2)


logger = logging.getLogger("fanin")

FRAME_SIZE: Final = 1_000
MAX_FRAMES: Final = 10
"""From how many frames an envelope may be missing, by default."""
_REPEATS: Final = Backoff(base=5, cap=300)
_FAULTS: Final = (FaninError, OSError)
_CHUNK: Final = 100  # envelopes given to the transport at once


class Sending(NamedTuple):
    """What became of envelopes that were to be sent.

    Attributes:
        held: whether the buffer holds any of them.
        failed: whether the transport failed as a whole, so that the rest was not tried.
    """

    held: bool
    failed: bool


def send_envelopes(
    transport: Transport, buffer: SqliteRepeatBuffer, frame_id: int, ranges: Iterable[IndexRange]
) -> Sending:
    """Send the envelopes of a frame in some ranges; ranges are taken as they are needed.

    One that cannot be sent holds up no other, and those that never can be are set aside.

    Raises:
        FaninError: the buffer cannot be read, or a range cannot be had.
    """

    def send(envelopes: Sequence[Envelope]) -> None:
        try:
            transport(envelopes)
        except OSError as error:
            raise ServiceUnavailable(f"the transport failed: {error}") from error
        except EnvelopesRefused as refused:
            for index, reason in refused.reasons.items():
                logger.warning("envelope %d of frame %d is set aside: %s", index, frame_id, reason)
            buffer.set_aside(frame_id, refused.reasons)

    held = False
    for chunk in chunks(buffer.read(frame_id, ranges), max_items=_CHUNK):
        held = True
        failures = bisect(chunk, send, on_defect=True)
        for failed in failures:
            logger.warning(
                "%d envelopes of frame %d from index %d were not sent, repeating them later: %s",
                len(failed.items),
                frame_id,
                failed.items[0].index,
                failed.error,
            )
        if sum(len(failed.items) for failed in failures) == len(chunk):
            return Sending(held, failed=True)
    return Sending(held, failed=False)


class Repeater:
    """Sends payloads and repeats them until they are delivered, through crashes and lost messages.

    ``put`` keeps a payload. ``flush`` opens frames for the payloads that wait, and sends them. ``tick`` does
    what is due: it reads the reply channel, asks which envelopes are missing, and sends those again. Call
    ``flush`` and ``tick`` from a thread of your own every second or so, or let ``run`` do it.

    A crash loses nothing that the buffer keeps: a frame that was opened and not filled ends by itself, and a
    frame whose envelopes are in the buffer is repeated until it is complete. A frame that timed out is
    dissolved: what is missing is sent in a new frame, as a new delivery.

    An envelope that can never be sent holds up no other: ``put`` refuses it where the transport can tell, and
    one that is found later is set aside in the buffer, with the reason. ``set_aside`` lists them;
    ``buffer.put_back`` sends one again, ``buffer.discard`` drops it. Until then they count in the buffer's
    usage. A frame of which only such envelopes are missing is left to time out.

    So is an envelope that receivers never handle: it is set aside once it was missing from ``max_frames``
    frames. The count begins with the first of them of which receivers handled others, so an outage of all
    receivers sets nothing aside.

    All calls except ``put`` must come from one thread. ``docs/how-to/patterns/frames.md`` has an example
    that runs.

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
        max_frames: from how many frames an envelope may be missing; None repeats it for ever.

    Raises:
        InvalidRequest: ``transport`` or ``notices`` cannot be called, or the template opens no frame.
    """

    def __init__(
        self,
        frames: Frames,
        transport: Transport,
        buffer: SqliteRepeatBuffer,
        *,
        template: OpenFrame | None = None,
        notices: Callable[[], Iterable[Notice]] = tuple,
        backoff: Backoff = _REPEATS,
        clock: Callable[[], float] = time.monotonic,
        max_frames: int | None = MAX_FRAMES,
    ) -> None:
        if max_frames is not None:
            limits.whole("max_frames", max_frames, 1, MAX_COUNT)
        self._max_frames = max_frames
        for name, argument in (("transport", transport), ("notices", notices)):
            if not callable(argument):
                raise InvalidRequest(f"{name} must be a function, not {type(argument).__name__}")
        self._frames = frames
        self._transport = transport
        self._template = template or OpenFrame(size=FRAME_SIZE)
        _check_template(self._template)
        self._notices = notices
        self._backoff = backoff
        self._outstanding = CheckSchedule(buffer.frames(), backoff, clock)
        self._transport_failed = False
        self._unfilled: Frame | None = None
        self.buffer = buffer

    def put(self, payload: bytes, content_type: str = OCTETS) -> None:
        """Keep a payload for delivery.

        Raises:
            InvalidRequest: the payload is not bytes, the content type is not text that UTF-8 can carry, or
                the transport can never send them.
            BufferFull: the buffer holds as much as it may, or its disk is full; slow down, and try again.
        """
        if not isinstance(payload, bytes):
            raise InvalidRequest(f"a payload must be bytes, not {type(payload).__name__}; encode it")
        check_content_type(content_type)
        if isinstance(self._transport, PayloadCheck):
            self._transport.check(payload, content_type)
        self.buffer.put(payload, content_type)

    def set_aside(self) -> list[SetAside]:
        """The envelopes that can never be sent, or that receivers never handle, with the reasons."""
        return self.buffer.aside()

    def flush(self) -> None:
        """Open frames for all payloads that wait, and send them.

        A transport that fails raises nothing here, because what was not sent is repeated.

        Raises:
            FaninError: no frame could be opened or filled; the payloads keep waiting.
        """
        while waiting := self.buffer.waiting:
            # A frame that did not fit on the disk is filled later; otherwise each try would open another.
            frame = self._unfilled or self._frames.open(
                replace(self._template, size=min(waiting, self._template.size))
            )
            self._unfilled = frame
            size = frame.size
            self.buffer.assign(frame.frame_id, size)
            self._unfilled = None
            self._outstanding.add(frame.frame_id)
            self._send(frame.frame_id, [(0, size)])

    def tick(self) -> int:
        """Read the reply channel, and check the frames that are due.

        Returns:
            How many frames are not complete.
        """
        self._read_notices()
        for frame_id in self._outstanding.due():
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
        self._outstanding.hasten_all()

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
            self._outstanding.hasten(notice.frame)
            if notice.kind == names.MESSAGE_COMPLETE_FRAME:
                with suppress(*_FAULTS):
                    self._forget(notice.frame)

    def _check(self, frame_id: int) -> None:
        """Send the missing envelopes of a frame again, or forget the frame if it is complete.

        Of a frame that the service no longer knows, everything is missing, up to the largest size there is:
        a sender with a larger template may have opened it.
        """
        listing = pages(self._frames.status, frame_id, limit=MAX_PAGE)
        try:
            frame = next(listing)
        except GONE:
            frame = Frame(frame_id, State.ORPHANED, 0, 0, {}, missing=((0, MAX_COUNT),))
        missing = (page.missing for page in chain([frame], listing))
        if frame.state is State.COMPLETE:
            self._forget(frame_id)
        elif frame.state.terminal:
            self._dissolve(frame, chain.from_iterable(missing))
            self._forget(frame_id)
        elif not self._send_missing(frame_id, missing):
            self._forget(frame_id)  # what is missing was set aside, so there is nothing left to deliver

    def _dissolve(self, frame: Frame, missing: Iterable[IndexRange]) -> None:
        """Let what is missing of a frame that was given up wait for another one."""
        ranges = list(missing)
        others = sum(stop - start for start, stop in ranges) < frame.size
        given_up = self.buffer.release(
            frame.frame_id, ranges, others_delivered=others, max_frames=self._max_frames
        )
        if given_up:
            logger.error(
                "%d envelopes of frame %d are set aside: receivers never handled them in %s frames",
                given_up,
                frame.frame_id,
                self._max_frames,
            )

    def _send_missing(self, frame_id: int, missing: Iterable[Sequence[IndexRange]]) -> bool:
        """Send what is missing of a frame again, page by page; what a page lists is sent before the next.

        Returns:
            Whether there is something left to deliver.
        """
        listed = held = False
        for ranges in missing:
            listed = listed or bool(ranges)
            sending = self._send(frame_id, ranges)
            held = held or sending.held
            if sending.failed:
                break
        return held or not listed

    def _forget(self, frame_id: int) -> None:
        self.buffer.drop(frame_id)
        self._outstanding.forget(frame_id)

    def _send(self, frame_id: int, ranges: Iterable[IndexRange]) -> Sending:
        """Send envelopes; what is not sent is repeated when the frame is due."""
        sending = send_envelopes(self._transport, self.buffer, frame_id, ranges)
        if sending.failed:
            self._transport_failed = True
        elif sending.held and self._transport_failed:
            self._transport_failed = False
            self.reconnected()
        return sending


def _check_template(template: OpenFrame) -> None:
    """Refuse what the service would refuse whenever a frame is opened."""
    limits.whole("the template's size", template.size, 1, MAX_COUNT)
    limits.whole("the template's ttl", template.ttl, limits.MIN_IDLE_TTL, limits.MAX_LIFETIME)
    limits.text("the template's user_key", template.user_key, limits.MAX_USER_KEY)
    for name in (SOURCE, DESTINATION, REPLY_TO):
        limits.text(f"the template's {name}", getattr(template, name), limits.MAX_METADATA_VALUE)
