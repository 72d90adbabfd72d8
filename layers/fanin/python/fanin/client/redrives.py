"""Redriving for people: a call waits until the redrive is finished, and repeats it if its worker has died."""

from collections.abc import Callable, Iterable, Iterator

from fanin.app.api import Fanin
from fanin.client.conversions import selection
from fanin.client.reading import POLLS, WaitingClock
from fanin.domain.paging import pages
from fanin.domain.redrives import OrdinalRange, Redrive, Redriving
from fanin.errors import ServiceUnavailable, Throttled

_STILL = 150.0
"""Seconds without progress after which the call is made again: the worker's lease is over by then."""


class RedriveCalls:
    """The calls of a tracker that redrive failed items."""

    services: Fanin
    clock: WaitingClock

    def redrive(
        self,
        batch_id: int,
        *,
        errors: str | Iterable[str] = (),
        ranges: Iterable[OrdinalRange | tuple[int, int]] = (),
        queue_url: str | None = None,
        dry_run: bool = False,
        wait: bool = True,
        progress: Callable[[Redriving], object] | None = None,
    ) -> Redriving:
        """Send the kept messages of failed items again, each failure once; see ``docs/how-to/redrive.md``.

        Those of a batch that has ended get the items of a new batch, which has the same user key, mode and
        metadata, and whose ``retry_of`` names this one. Items that a live batch holds are sent under their
        own ids. A second call sends nothing twice; what failed once more is redriven from the new batch.

            >>> from fanin import Tracker
            >>> tracker = Tracker.in_memory()
            >>> with tracker.batch() as batch:
            ...     group = batch.add(1)
            >>> receipts = tracker.fail(group, "disk full")
            >>> tracker.redrive(batch.id).not_kept  # nobody gave the message with the failure
            1

        Args:
            batch_id: the batch whose items failed.
            errors: only failures with one of these errors, or with one that begins like it, as in
                ``release``; ``tracker.errors`` lists them.
            ranges: only items with these ordinals: the first, and one past the last.
            queue_url: send to this queue, by URL or ARN; by default each message goes to its own queue.
            dry_run: count only.
            wait: until all failures were looked at; else a worker goes on with a large redrive.
            progress: called with what is known so far, while it waits.

        Returns:
            How many failures were sent, and what became of the others. ``batch_id`` is the batch that has
            the items now.

        Raises:
            InvalidRequest: the batch is live and does not hold its failed items, or the selection is invalid.
            ChannelRefused: fanin may not send to ``queue_url``.
        """
        chosen, service, clock = selection(errors, ranges), self.services.redrives, self.clock
        request = Redrive(chosen.errors, chosen.ranges, queue_url, dry_run)
        seen = service.redrive(batch_id, request)
        still, tries = clock.monotonic(), 0
        while wait and not seen.finished and not request.dry_run:
            if progress is not None:
                progress(seen)
            clock.sleep(POLLS.delay(tries))
            tries += 1
            now = self._look(batch_id, seen)
            if now != seen:
                seen, still, tries = now, clock.monotonic(), 0
            elif clock.monotonic() - still >= _STILL:
                service.redrive(batch_id, request)  # goes on, if the worker has died
                seen, still = self._look(batch_id, seen), clock.monotonic()
        return seen

    def redrives(self, batch_id: int) -> Iterator[Redriving]:
        """List the redrives of a batch's failures."""
        for page in pages(self.services.redrives.redrives, batch_id):
            yield from page.redrives

    def _look(self, batch_id: int, seen: Redriving) -> Redriving:
        try:
            return next((one for one in self.redrives(batch_id) if one.name == seen.name), seen)
        except (Throttled, ServiceUnavailable):
            return seen
