"""One reader for all viewers of a view, which reads less often while nothing changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from anyio.to_thread import run_sync

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
class Trouble:
    """Why a view could not be read, and in how many seconds it will be tried again."""

    text: str
    seconds: float


Read: TypeAlias = Callable[[], View]
Update: TypeAlias = View | Trouble | None
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

    async def close(self) -> None:
        """Let all viewers go, and those who come later."""
        self._closed = True
        for feed in list(self._feeds.values()):
            await feed.end()

    def __len__(self) -> int:
        return len(self._feeds)

    async def follow(self, key: Hashable, read: Read) -> AsyncIterator[Update]:
        """What a view shows, whenever that changes, until it is over; or until the viewer leaves, or `close`.

        Args:
            key: of the view: all who give the same share one reader.
            read: reads it; blocking.

        Raises:
            TooManyViews: no other view can be read now.
        """
        if self._closed:
            return
        feed = self._feeds.get(key)
        if feed is None:
            if len(self._feeds) >= FEEDS:
                raise TooManyViews(f"{FEEDS} views are open already; close some of them")
            feed = self._feeds[key] = _Feed(read, self._sleep)
        feed.viewers += 1
        seen = 0
        try:
            while True:
                updated = await feed.after(seen, HEARTBEAT)
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


class _Feed:
    """The reader of one view. Only its latest state is kept, however slow a viewer is."""

    def __init__(self, read: Read, sleep: Sleep) -> None:
        self._read = read
        self._sleep = sleep
        self._changed = asyncio.Condition()
        self.latest: Update = None
        self.number = 0
        self.viewers = 0
        self.ended = False
        self._task = asyncio.create_task(self._run())

    async def after(self, number: int, seconds: float) -> bool:
        """Wait for an update later than that of a number; False if none came within the time."""
        async with self._changed:
            try:
                await asyncio.wait_for(self._changed.wait_for(lambda: self.number > number), seconds)
            except TimeoutError:
                if self._task.done():
                    self._task.result()  # raises the fault that ended it
                return False
            return True

    def stop(self) -> None:
        """Read no more."""
        self._task.cancel()

    async def end(self) -> None:
        """Read no more, and tell the viewers that nothing comes any more."""
        self.stop()
        async with self._changed:
            self.ended = True
            self.number += 1
            self._changed.notify_all()

    async def _run(self) -> None:
        pause, errors = SOONEST, 0
        facts: Hashable = None
        while True:
            try:
                view = await run_sync(self._read)
            except FaninError as error:
                errors += 1
                pause = min(LATEST_AFTER_ERRORS, max(error.retry_after or 0, SOONEST * 2**errors))
                await self._tell(Trouble(str(error), pause))
            else:
                pause = SOONEST if view.facts != facts or errors else min(LATEST, pause * SLOWER)
                facts, errors = view.facts, 0
                if not isinstance(self.latest, View) or view.fragments != self.latest.fragments or view.over:
                    await self._tell(view)
                if view.over:
                    return
            await self._sleep(pause)

    async def _tell(self, update: Update) -> None:
        async with self._changed:
            self.latest = update
            self.number += 1
            self._changed.notify_all()
