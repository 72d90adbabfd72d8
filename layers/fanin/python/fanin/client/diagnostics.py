"""What is wrong with a batch, and sending its failed items again.

The notes that producers and consumers make for diagnostics never get in their way. A redrive waits until it
is finished, and repeats the call if its worker has died.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence

from fanin.app.api import Fanin
from fanin.app.bisect import bisect
from fanin.client.conversions import selection
from fanin.client.reading import POLLS, WaitingClock
from fanin.domain.diagnosis import Diagnosis, Retry, SentItems
from fanin.domain.limits import MAX_NOTES
from fanin.domain.paging import pages
from fanin.domain.redrives import OrdinalRange, Redrive, Redriving
from fanin.domain.reports import Attention
from fanin.errors import ServiceUnavailable, Throttled

logger = logging.getLogger("fanin")

_STILL = 150.0
"""Seconds without progress after which a redrive is asked for again: its worker's lease is over by then."""


class DiagnosticCalls:
    """The calls on diagnostics and redrives that every ``Tracker`` has."""

    services: Fanin
    clock: WaitingClock

    def why(self, batch_id: int) -> Diagnosis:
        """Say why a batch is not finished: findings, most likely first, each with what to do.

        It takes at most 100 reads of rows and queues, and writes nothing. Counts of SQS are approximate, so a
        finding that stands on them says "probably".

        Args:
            batch_id: the batch.

        Raises:
            BatchNotFound, BatchGone: the batch does not exist, or is gone.
        """
        return self.services.diagnostics.why(batch_id)

    def attention(self, *, cursor: str | None = None, limit: int = 100) -> Attention:
        """List the batches that a person should look at: live ones first, the most urgent before others.

        Each has what is wrong, in words, and the command that helps. A failure that was redriven is not
        listed. It reads what is wrong, however many batches there are.

        Args:
            cursor: of the page before; a page whose cursor is None is the last.
            limit: how many batches a page has at most.
        """
        return self.services.diagnostics.attention(cursor=cursor, limit=limit)

    def note_sent(self, batch_id: int, sent: SentItems) -> None:
        """Note that a queue has accepted the messages of some items, so that ``why`` knows where to look.

        ``batch.send`` does so by itself. If you send messages yourself, call this once for each block.
        A note that cannot be written is logged, and nothing is raised: the messages are sent.
        """
        try:
            self.services.diagnostics.note_sent(batch_id, sent)
        except Exception as error:  # noqa: BLE001  whatever it is, the messages are sent
            logger.warning("batch %s: it could not be noted what was sent: %s", batch_id, error)

    def note_retries(self, retries: Sequence[Retry]) -> None:
        """Note failed attempts whose messages come again, so that ``why`` can say what their error is.

        Consumers of the library do so by themselves. What cannot be noted is logged, and nothing is raised:
        an item that is refused, such as one of a batch that is gone, keeps no other from being noted.
        """
        for start in range(0, len(retries), MAX_NOTES):
            try:
                failed = bisect(retries[start : start + MAX_NOTES], self.services.diagnostics.note_retries)
            except Exception as error:  # noqa: BLE001  whatever it is, the work goes on
                logger.warning("%d failed attempts could not be noted: %s", len(retries) - start, error)
                return
            for one in failed:
                left = len(one.items) if one.refused else len(retries) - start
                logger.warning("%d failed attempts could not be noted: %s", left, one.error)
            if not all(one.refused for one in failed):
                return

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
