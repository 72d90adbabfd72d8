"""Redriving for people: a call waits until the redrive is finished, and repeats it if its worker has died."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from fanin.adapters.backoff import Backoff
from fanin.app.api import Redrives
from fanin.client.clock import WaitingClock
from fanin.client.paging import follow_cursor
from fanin.domain.redrives import Redrive, Redriving
from fanin.errors import ServiceUnavailable, Throttled

_POLLS: Final = Backoff(base=0.25, cap=5, fraction=lambda: 1.0)
_STILL: Final = 150.0
"""Seconds without progress after which the call is made again: the worker's lease is over by then."""


class RedriveCalls:
    """Redrives failed items, and follows redrives.

    Args:
        redrives: the service.
        clock: waits.
    """

    def __init__(self, redrives: Redrives, clock: WaitingClock) -> None:
        self._redrives = redrives
        self._clock = clock

    def redrive(
        self,
        batch_id: int,
        request: Redrive,
        *,
        wait: bool = True,
        progress: Callable[[Redriving], object] | None = None,
    ) -> Redriving:
        """Redrive, and wait until it is finished."""
        seen = self._redrives.redrive(batch_id, request)
        still, tries = self._clock.monotonic(), 0
        while wait and not seen.finished and not request.dry_run:
            if progress is not None:
                progress(seen)
            self._clock.sleep(_POLLS.delay(tries))
            tries += 1
            now = self._look(batch_id, seen)
            if now != seen:
                seen, still, tries = now, self._clock.monotonic(), 0
            elif self._clock.monotonic() - still >= _STILL:
                self._redrives.redrive(batch_id, request)  # goes on, if the worker has died
                seen, still = self._look(batch_id, seen), self._clock.monotonic()
        return seen

    def all(self, batch_id: int) -> Iterator[Redriving]:
        """List the redrives of a batch, following its pages."""
        for page in follow_cursor(lambda cursor: self._redrives.redrives(batch_id, cursor=cursor)):
            yield from page.redrives

    def _look(self, batch_id: int, seen: Redriving) -> Redriving:
        try:
            return next((one for one in self.all(batch_id) if one.name == seen.name), seen)
        except (Throttled, ServiceUnavailable):
            return seen
