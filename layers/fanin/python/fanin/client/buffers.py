"""The two ends of a bounded buffer: a producer that waits for room, and a taker that waits for work."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from fanin.app.api import Buffers
from fanin.client.backoff import Backoff
from fanin.domain.buffer import Accepted, Released, Work
from fanin.errors import LimitReached

ROOM_WAITS: Final = Backoff(first=0.5, most=10.0)
"""How long a producer waits after each rejection, unless it is told otherwise."""
_WAIT: Final = 20  # seconds: the longest that one call waits for work


class Producer:
    """Puts work into a buffer; when it is full, waits for room.

    Waits are jittered, grow with each rejection, and are no shorter than the service asks for. So producers
    slow down to the pace of the consumers, however many they are.

    Args:
        buffers: the service.
        name: of the buffer.
        backoff: how long to wait after each rejection.
        now: the time in seconds, from any beginning.
    """

    def __init__(
        self,
        buffers: Buffers,
        name: str,
        *,
        backoff: Backoff | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._buffers = buffers
        self._name = name
        self._backoff = backoff or ROOM_WAITS
        self._now = now

    def put(self, *payloads: str, timeout: float | None = None, key: str | None = None) -> Accepted:
        """Put work in, all of it or none, waiting while there is no room.

        Args:
            payloads: 1 to 10 texts.
            timeout: seconds to wait at the most; None waits as long as it takes.
            key: makes a repeat return the same items.

        Raises:
            LimitReached: there was no room in all that time.
        """
        give_up = None if timeout is None else self._now() + timeout
        attempt = 0
        while True:
            try:
                return self.put_now(*payloads, key=key)
            except LimitReached as error:
                if give_up is not None and self._now() >= give_up:
                    raise
                self._backoff.wait(attempt, error.retry_after)
                attempt += 1

    def put_now(self, *payloads: str, key: str | None = None) -> Accepted:
        """Put work in without waiting.

        Raises:
            LimitReached: there is no room.
        """
        return self._buffers.put(self._name, payloads, key=key)


class Taker:
    """Takes work out of a buffer, and gives its slots back when it is done.

    ::

        tracker.taker("renders").run(render)

    Args:
        buffers: the service.
        name: of the buffer.
        most: payloads to ask for at a time.
        wait: seconds to wait for work in one call.
        visibility_timeout: seconds until work that is not done comes again; by default the queue's own.
    """

    def __init__(
        self,
        buffers: Buffers,
        name: str,
        *,
        most: int = 10,
        wait: int = _WAIT,
        visibility_timeout: int | None = None,
    ) -> None:
        self._buffers = buffers
        self._name = name
        self._most = most
        self._wait = wait
        self._visibility_timeout = visibility_timeout

    def take(self) -> Sequence[Work]:
        """Take work, none if none came in time."""
        return self._buffers.take(
            self._name, most=self._most, wait=self._wait, visibility_timeout=self._visibility_timeout
        )

    def done(self, *work: Work) -> Released:
        """Give back the slots of work that is done."""
        return self._buffers.done(self._name, [one.receipt for one in work])

    def run(self, handle: Callable[[str], object], *, until_empty: bool = False) -> int:
        """Handle payload after payload, and give back the slots of those that went well, in one call a take.

        An error of ``handle`` is raised when what went well has been given back; the other work comes again.

        Args:
            handle: gets a payload.
            until_empty: stop when a take finds nothing; else go on for ever.

        Returns:
            How many slots were given back.
        """
        total = 0
        while (taken := self.take()) or not until_empty:
            finished: list[Work] = []
            try:
                for work in taken:
                    handle(work.payload)
                    finished.append(work)
            finally:
                if finished:
                    total += self.done(*finished).done
        return total
