"""Where messages can be sent again: each queue is looked at once in a while, not for every page."""

from __future__ import annotations

from typing import Final, NamedTuple

from fanin.app.ports import Ports
from fanin.errors import ChannelRefused, InvalidRequest

_FRESH_MS: Final = 60_000
_MOST: Final = 1_000
_SHOWN: Final = 300


class _Seen(NamedTuple):
    """A queue, as it was when it was looked at.

    Attributes:
        at: when, ms.
        url: its URL; None if messages cannot be sent to it.
        why: why they cannot; None if they can.
    """

    at: int
    url: str | None
    why: str | None


class Destinations:
    """Resolves the queues that failed messages came from.

    Args:
        ports: the queues and the clock.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._known: dict[str, _Seen] = {}

    def look_again(self) -> None:
        """Forget what is known: whoever presses again may have mended a queue just now."""
        self._known.clear()

    def refusal(self, queue: str) -> str | None:
        """Why messages cannot be sent to a queue, given by URL or ARN; None if they can."""
        return self._look(queue).why

    def url(self, queue: str) -> str | None:
        """The URL of a queue; None if messages cannot be sent to it."""
        return self._look(queue).url

    def _look(self, queue: str) -> _Seen:
        now = self._ports.clock.now()
        seen = self._known.get(queue)
        if seen is None or now - seen.at >= _FRESH_MS:
            try:
                seen = _Seen(now, self._ports.channels.resolve(queue, new=False, again=True), None)
            except (ChannelRefused, InvalidRequest) as error:
                seen = _Seen(now, None, str(error)[:_SHOWN])
            while len(self._known) >= _MOST:
                del self._known[next(iter(self._known))]
            self._known[queue] = seen
        return seen
