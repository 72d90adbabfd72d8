"""Live views: one reader for all viewers, slower while nothing changes; and the events that they get."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from anyio.to_thread import run_sync
from starlette.responses import Response, StreamingResponse

from fanin.errors import FaninError

SOONEST: Final = 1.0
"""Seconds between two reads while something changes."""
LATEST: Final = 30.0
"""Seconds between two reads if nothing has changed for long."""
LATEST_AFTER_ERRORS: Final = 60.0
SLOWER: Final = 1.5
HEARTBEAT: Final = 15.0
"""Seconds after which a viewer gets a sign of life, so that a connection that broke is noticed."""
FEEDS: Final = 64
"""How many views are read at a time."""
FAULT: Final = "the console has failed, and says more where it runs"
AGAIN_AFTER_FAULT: Final = 5.0
"""Seconds after which a browser asks again for a view whose reader has failed."""


@dataclass(frozen=True, slots=True)
class View:
    """What a reader has read.

    Attributes:
        fragments: element id → its inner HTML.
        facts: what the view shows, without what passes with time alone. If it stays equal, the reader slows
            down.
        over: whether it will never change again.
    """

    fragments: Mapping[str, str]
    facts: Hashable
    over: bool = False


@dataclass(frozen=True, slots=True)
class FeedError:
    """Why a view could not be read, and in how many seconds it will be tried again."""

    text: str
    seconds: float


Read: TypeAlias = Callable[[], View]
Update: TypeAlias = View | FeedError | None
"""What a viewer gets; None is a sign of life."""
Sleep: TypeAlias = Callable[[float], Awaitable[None]]


class TooManyViews(FaninError):
    """Too many different views are open at a time."""

    code = "too-many-views"
    retryable = True


class Feeds:
    """The readers of all views that somebody looks at.

    Args:
        sleep: waits for so many seconds.
    """

    def __init__(self, sleep: Sleep = asyncio.sleep) -> None:
        self._sleep = sleep
        self._feeds: dict[Hashable, _Feed] = {}
        self._closed = False

    def close(self) -> None:
        """Let all viewers go, and those who come later."""
        self._closed = True
        for feed in list(self._feeds.values()):
            feed.end()

    def __len__(self) -> int:
        return len(self._feeds)

    async def follow(self, key: Hashable, read: Read) -> AsyncIterator[Update]:
        """What a view shows, whenever that changes, until it is over; or until the viewer leaves, or `close`.

        Args:
            key: of the view: all who give the same share one reader.
            read: reads it; blocking.

        Raises:
            TooManyViews: no other view can be read now.
            Exception: whatever has ended the reader; all who look are told, and who looks next has another.
        """
        if self._closed:
            return
        feed = self._reader(key, read)
        feed.viewers += 1
        seen = 0
        try:
            while True:
                updated = await feed.after(seen, HEARTBEAT)
                if feed.fault is not None:
                    yield FeedError(FAULT, AGAIN_AFTER_FAULT)
                    raise feed.fault
                if feed.ended:
                    return
                if not updated:
                    yield None
                    continue
                seen = feed.number
                yield feed.latest
                if isinstance(feed.latest, View) and feed.latest.over:
                    return
        finally:
            feed.viewers -= 1
            if not feed.viewers:
                feed.stop()
                if self._feeds.get(key) is feed:
                    del self._feeds[key]

    def _reader(self, key: Hashable, read: Read) -> _Feed:
        """The reader of a view; another one if there is none, or if it has failed."""
        feed = self._feeds.get(key)
        if feed is None or feed.fault is not None:
            if feed is None and len(self._feeds) >= FEEDS:
                raise TooManyViews(f"{FEEDS} views are open already; close some of them")
            feed = self._feeds[key] = _Feed(read, self._sleep)
        return feed


class _Feed:
    """The reader of one view. Only its latest state is kept, however slow a viewer is.

    Viewers wait for an event without a lock: one who leaves while it waits can leave nothing locked.

    Attributes:
        latest: what was told last.
        number: how often something was told.
        viewers: how many look.
        fault: what has ended the reader; None if nothing has.
        ended: whether nothing comes any more, because the console stops.
    """

    def __init__(self, read: Read, sleep: Sleep) -> None:
        self._read = read
        self._sleep = sleep
        self._news = asyncio.Event()
        self.latest: Update = None
        self.number = 0
        self.viewers = 0
        self.fault: BaseException | None = None
        self.ended = False
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(self._ended)

    async def after(self, number: int, seconds: float) -> bool:
        """Wait for an update later than that of a number; False if none came within the time."""
        if self.number == number and self.fault is None and not self.ended:
            try:
                await asyncio.wait_for(self._news.wait(), seconds)
            except TimeoutError:
                return False
        return self.number > number

    def stop(self) -> None:
        """Read no more."""
        self._task.cancel()

    def end(self) -> None:
        """Read no more, and tell the viewers that nothing comes any more."""
        self.stop()
        self.ended = True
        self._wake()

    async def _run(self) -> None:
        pause, errors = SOONEST, 0
        facts: Hashable = None
        while True:
            try:
                view = await run_sync(self._read)
            except FaninError as error:
                errors += 1
                pause = min(LATEST_AFTER_ERRORS, max(error.retry_after or 0, SOONEST * 2**errors))
                self._tell(FeedError(str(error), pause))
            else:
                pause = SOONEST if view.facts != facts or errors else min(LATEST, pause * SLOWER)
                facts, errors = view.facts, 0
                if not isinstance(self.latest, View) or view.fragments != self.latest.fragments or view.over:
                    self._tell(view)
                if view.over:
                    return
            await self._sleep(pause)

    def _tell(self, update: Update) -> None:
        self.latest = update
        self.number += 1
        self._wake()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (fault := task.exception()) is not None:
            self.fault = fault
            self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


TYPE: Final = "text/event-stream"
AGAIN_MS: Final = 5_000
"""After how long a browser asks again where an answer cannot stay open, or where one broke."""
ID: Final = "Last-Event-ID"
"""Header in which a browser that asks again repeats the id of the last event (HTML Standard, 9.2.4)."""
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_MOST_SAME: Final = 99
_MEMORY: Final = re.compile(r"([0-9a-f]{16})\.([0-9]{1,3})")


def events(
    feeds: Feeds, key: Hashable, read: Read, *, streams: bool, headers: Mapping[str, str] = _NONE
) -> Response:
    """Answer with the events of a view: ``view``, ``trouble`` and ``over``.

    Args:
        feeds: the readers.
        key: of the view.
        read: reads it.
        streams: whether the answer may stay open; else it has one event, and the browser asks again.
        headers: of the request; they name the last event that the browser has.
    """
    more = {"X-Accel-Buffering": "no"}
    if not streams:
        return Response(_one_answer(read, headers.get(ID, "")), media_type=TYPE, headers=more)

    async def told() -> AsyncIterator[str]:
        yield f"retry: {AGAIN_MS}\n\n"
        over = False
        try:
            async for update in feeds.follow(key, read):
                over = isinstance(update, View) and update.over
                yield _told(update)
        except FaninError as refusal:  # the answer has begun; a browser asks again by itself
            yield _told(FeedError(str(refusal), AGAIN_MS / 1000))
        if over:
            yield _event("over", {})

    return StreamingResponse(told(), media_type=TYPE, headers=more)


def _one_answer(read: Read, last: str) -> str:
    """One event, and when to ask again: later and later while nothing changes, as the readers do.

    Nothing here remembers what a browser has seen. So the id of the event says it: a digest of the facts, and
    how often they were the same.
    """
    update: View | FeedError
    try:
        update = read()
    except FaninError as error:
        update = FeedError(str(error), 0)
    facts = update.facts if isinstance(update, View) else "trouble"
    digest = sha256(repr(facts).encode(errors="surrogatepass")).hexdigest()[:16]
    before = _MEMORY.fullmatch(last)
    same = min(int(before[2]) + 1, _MOST_SAME) if before and before[1] == digest else 0
    again = min(
        AGAIN_MS * SLOWER**same, 1000 * (LATEST_AFTER_ERRORS if isinstance(update, FeedError) else LATEST)
    )
    if isinstance(update, FeedError):
        update = replace(update, seconds=again / 1000)
    end = _event("over", {}) if isinstance(update, View) and update.over else ""
    return f"retry: {again:.0f}\nid: {digest}.{same}\n\n{_told(update)}{end}"


def _told(update: Update) -> str:
    match update:
        case View():
            return _event("view", dict(update.fragments))
        case FeedError():
            return _event("trouble", {"text": update.text, "seconds": update.seconds})
        case _:
            return ": still here\n\n"


def _event(name: str, data: dict[str, Any]) -> str:
    # JSON has no line ends outside of its strings, and in them they are escaped.
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
