"""The calls that read batches, for people: they follow pages, and wait for the end."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

from fanin.adapters.backoff import Backoff
from fanin.adapters.system import SystemClock
from fanin.app.api import Ledger
from fanin.client.conversions import Duration, member, patience
from fanin.client.ended_batches import EndedBatches
from fanin.domain import reports
from fanin.domain.batch import Batch, State
from fanin.domain.failures import KeptMessage
from fanin.domain.ids import parse_item
from fanin.domain.limits import MAX_PAGE
from fanin.domain.paging import pages
from fanin.domain.picture import Picture
from fanin.domain.targets import TargetReport

POLLS: Final = Backoff(base=0.25, cap=5, fraction=lambda: 1.0)


class WaitingClock(Protocol):
    """Tells the time, and waits; a test passes one that it moves. ``SystemClock`` is the machine's clock."""

    def now(self) -> int:
        """The time in milliseconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never less than before."""

    def sleep(self, seconds: float) -> None:
        """Wait for ``seconds``."""


class ReadingCalls:
    """The calls that only read, which every ``Tracker`` has; they may be repeated at will.

    Args:
        ledger: the service that keeps the batches.
        clock: tells the time from which a timedelta counts, and waits; the machine's by default.
    """

    def __init__(self, ledger: Ledger, clock: WaitingClock | None = None) -> None:
        self.ledger = ledger
        self.clock: WaitingClock = clock or SystemClock()
        self.ended = EndedBatches(self.clock.monotonic)

    def status(self, batch_id: int, *, exact: bool = False) -> reports.Progress:
        """Read a batch and how far it is.

        Args:
            batch_id: the batch.
            exact: count the items that are done, however many reads that takes; by default the answer has
                bounds, from at most 67 reads. How many failed, and totals, are exact if the batch says so.
        """
        progress = self.ledger.status(batch_id, exact=exact)
        self.ended.note(progress.batch)
        return self._counted(progress) if exact and not progress.exact else progress

    def _row(self, batch_id: int) -> Batch:
        return self.ledger.status(batch_id, brief=True).batch

    def _counted(self, progress: reports.Progress) -> reports.Progress:
        """The progress of a batch with more pending words than one call reads: what is missing is added up.

        An item that is done meanwhile may still count as pending, but none counts as done that is not.
        """
        batch = progress.batch
        ranges = self.iter_missing(batch.batch_id)
        pending = sum(max(0, min(found.stop, batch.items) - found.start) for found in ranges)
        done = batch.items - pending
        return replace(progress, done_min=done, done_max=done)

    def wait(self, batch_id: int, timeout: Duration | float | None = None) -> reports.Progress:
        """Wait until a batch has ended, polling every 0.25 to 5 seconds.

        Args:
            batch_id: the batch; it must be closed, because an open batch never completes.
            timeout: seconds, or a timedelta; None waits for as long as the batch lives.

        Raises:
            TimeoutError: the batch has not ended in time.
            InvalidRequest: the timeout is none.
        """
        most = patience(timeout)
        give_up = self.clock.monotonic() + most
        attempt = 0
        while not (progress := self.status(batch_id)).batch.state.terminal:
            left = give_up - self.clock.monotonic()
            if left <= 0:
                raise TimeoutError(f"batch {batch_id} is still {progress.batch.state} after {most} s")
            self.clock.sleep(min(POLLS.delay(attempt), left))
            attempt += 1
        return progress

    def missing(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> reports.Missing:
        """Read one page of the ranges of items that are not done; ``iter_missing`` gives all."""
        return self.ledger.missing(batch_id, cursor=cursor, limit=limit)

    def iter_missing(self, batch_id: int) -> Iterator[reports.MissingRange]:
        """All ranges of items that are not done, ascending, read a page at a time."""
        for page in pages(self.missing, batch_id, limit=MAX_PAGE):
            yield from page.ranges

    def picture(self, batch_id: int, *, level: int | None = None, number: int = 0) -> Picture:
        """Look at one node of a batch's summary tree, and the up to 64 parts below it, from at most 66 reads.

        Args:
            batch_id: the batch, which must not be estimated.
            level: of the node: 0 shows items with their states. By default the root, as it is now.
            number: of the node on its level; that of a cell looks one level further down.
        """
        return self.ledger.picture(batch_id, level=level, number=number)

    def results(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> reports.Results:
        """Read one page of the results of items that are done; ``iter_results`` gives all."""
        return self.ledger.results(batch_id, cursor=cursor, limit=limit)

    def iter_results(self, batch_id: int) -> Iterator[reports.ItemResult]:
        """All results of items that are done so far, by ordinal, read a page at a time."""
        for page in pages(self.results, batch_id, limit=MAX_PAGE):
            yield from page.results

    def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> reports.Failures:
        """Read one page of the failed items; ``iter_failures`` gives all."""
        return self.ledger.failures(batch_id, cursor=cursor, limit=limit)

    def iter_failures(self, batch_id: int) -> Iterator[reports.FailedItem]:
        """All failed items in the order they were added, read a page at a time."""
        for page in pages(self.failures, batch_id, limit=MAX_PAGE):
            yield from page.failures

    def kept_message(self, item: str) -> KeptMessage | None:
        """Read the message of a failed item; None if it was not kept.

        Args:
            item: its id, as ``failures`` lists it.

        Raises:
            InvalidItemId: the id is malformed.
            FailureNotFound: the item has not failed.
        """
        block, ordinal = parse_item(item)
        return self.ledger.failure(block.batch_id, ordinal).message

    def errors(self, batch_id: int) -> tuple[reports.ErrorGroup, ...]:
        """Count the failed items of a batch by error, the most frequent first.

        Reasons that differ in numbers, ids, quoted texts, paths and URLs alone are one error. All failures
        are read for this, some hundreds a request.
        """
        found = pages(self.ledger.errors, batch_id)
        return reports.by_error(group for page in found for group in page.errors)

    def targets(self, batch_id: int) -> Sequence[TargetReport]:
        """Read who is called back when a batch ends, and how far each is; tokens and URLs are masked."""
        return self.ledger.targets(batch_id).targets

    def list(
        self,
        state: State | str | None = None,
        *,
        user_key: str | None = None,
        parent: int | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> reports.Batches:
        """Read one page of the batches in a state, with a user key or a parent; ``iter_batches`` gives all.

        Args:
            state: only batches in this state.
            user_key: only batches that were opened with this user key, the newest first.
            parent: only batches that are nested in this one: the last of each of its items.
            cursor: of the page before.
            limit: most batches of a page. A page may have fewer; only a None cursor marks the end.
        """
        of = None if state is None else member(State, state)
        return self.ledger.list(of, user_key=user_key, parent=parent, cursor=cursor, limit=limit)

    def counts(self) -> reports.BatchCounts:
        """How many batches are in each state; reads small entries of an index, and no batch."""
        return self.ledger.counts()

    def iter_batches(
        self, state: State | str | None = None, *, user_key: str | None = None, parent: int | None = None
    ) -> Iterator[Batch]:
        """All batches in a state, with a user key (the newest first) or a parent, read a page at a time."""
        for page in pages(self.list, state, user_key=user_key, parent=parent, limit=MAX_PAGE):
            yield from page.batches
