"""Redriving for people: a call waits until the redrive is finished, and repeats it if its worker has died."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from fanin.adapters.backoff import Backoff
from fanin.app.api import Redrives
from fanin.client.paging import follow_cursor
from fanin.client.reading import WaitingClock
from fanin.domain.redrives import Redrive, Redriving
from fanin.errors import ServiceUnavailable, Throttled

_POLLS: Final = Backoff(base=0.25, cap=5, fraction=lambda: 1.0)
_STILL: Final = 150.0
"""Seconds without progress after which the call is made again: the worker's lease is over by then."""


def redrive(
    redrives: Redrives,
    clock: WaitingClock,
    batch_id: int,
    request: Redrive,
    *,
    wait: bool = True,
    progress: Callable[[Redriving], object] | None = None,
) -> Redriving:
    """Redrive, and wait until it is finished."""
    seen = redrives.redrive(batch_id, request)
    still, tries = clock.monotonic(), 0
    while wait and not seen.finished and not request.dry_run:
        if progress is not None:
            progress(seen)
        clock.sleep(_POLLS.delay(tries))
        tries += 1
        now = _look(redrives, batch_id, seen)
        if now != seen:
            seen, still, tries = now, clock.monotonic(), 0
        elif clock.monotonic() - still >= _STILL:
            redrives.redrive(batch_id, request)  # goes on, if the worker has died
            seen, still = _look(redrives, batch_id, seen), clock.monotonic()
    return seen


def redrives_of(redrives: Redrives, batch_id: int) -> Iterator[Redriving]:
    """List the redrives of a batch, following its pages."""
    for page in follow_cursor(lambda cursor: redrives.redrives(batch_id, cursor=cursor)):
        yield from page.redrives


def _look(redrives: Redrives, batch_id: int, seen: Redriving) -> Redriving:
    try:
        return next((one for one in redrives_of(redrives, batch_id) if one.name == seen.name), seen)
    except (Throttled, ServiceUnavailable):
        return seen
