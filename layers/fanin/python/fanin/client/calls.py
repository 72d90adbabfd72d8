"""The ledger's calls for people: times as they write them, streams of any length, pages followed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import zip_longest
from typing import Final

from fanin.adapters.system import SystemClock
from fanin.app.api import Ledger
from fanin.client.backoff import Backoff
from fanin.client.clock import Clock
from fanin.client.friendly import Moment, Span, choice, milliseconds, seconds
from fanin.client.merging import receipts_by_batch, verdict_of
from fanin.client.paging import followed, pages
from fanin.domain.acks import Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Batch, Mode, OnDeadline, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.limits import MAX_COUNTS, MAX_FAILURES, MAX_IDS, MAX_PAGE, MAX_RANGES, MAX_REASON
from fanin.domain.reports import (
    Batches,
    Expired,
    FailedItem,
    Failures,
    Missing,
    MissingRange,
    Progress,
    Verdict,
)

_REQUEST_BYTES: Final = 900_000  # of the API's 1 MiB, less what JSON puts around
_POLLS: Final = Backoff(first=0.25, most=5, chance=lambda: 1.0)


class LedgerCalls:
    """What one can ask of a ledger, whichever it is.

    Every call raises the errors of ``fanin.errors`` that ``fanin.app.api.Ledger`` names.

    Args:
        ledger: who keeps the batches.
        clock: from which a timedelta counts, and by which it waits; the machine's by default.
    """

    def __init__(self, ledger: Ledger, clock: Clock | None = None) -> None:
        self.ledger = ledger
        self.clock: Clock = clock or SystemClock()

    def open(
        self,
        *,
        user_key: str = "",
        mode: Mode | str = Mode.EXACT,
        idle_ttl: Span | None = None,
        lifetime: Span | None = None,
        deadline: Moment | None = None,
        on_deadline: OnDeadline | str = OnDeadline.TIME_OUT,
        limit: int | None = None,
        parent_item: str | None = None,
        metadata: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Batch:
        """Open a batch; what is left out takes the service's settings.

        Args:
            user_key: the caller's own name for the batch, returned with its events.
            mode: ``exact``, or ``estimated`` for one counter that may count a repeat twice.
            idle_ttl: without activity this long, the batch is orphaned.
            lifetime: hard end of the batch and its rows, at most 365 days.
            deadline: when ``on_deadline`` happens; a timedelta counts from now.
            on_deadline: ``time_out``, or ``complete`` with what is missing.
            limit: most items that may be pending at a time.
            parent_item: item of another batch that this one acknowledges when it completes.
            metadata: small map of strings, returned with events.
            key: idempotency key: a repeat of the same request with it gives the same batch, as it is then.
                Give such a request its deadline as a point in time; one that counts from now is another.
        """
        return self.ledger.open(
            OpenBatch(
                user_key=user_key,
                mode=choice(Mode, mode),
                idle_ttl=seconds(idle_ttl),
                lifetime=seconds(lifetime),
                deadline=None if deadline is None else milliseconds(deadline, self.clock.now()),
                on_deadline=choice(OnDeadline, on_deadline),
                limit=limit,
                parent_item=parent_item,
                metadata=dict(metadata or {}),
            ),
            key=key,
        )

    def add(self, batch_id: int, count: int, *, key: str | None = None) -> Group:
        """Add items to an open batch; with a key, at most once for each key."""
        return self.ledger.add(batch_id, count, key=key)

    def close(self, batch_id: int) -> Batch:
        """Take no more items; completes the batch at once if all are done."""
        return self.ledger.close(batch_id)

    def cancel(self, batch_id: int) -> Batch:
        """End a batch now; one that has ended stays as it is."""
        return self.ledger.cancel(batch_id)

    def ack(
        self,
        items: str | Group | Iterable[str] = (),
        *,
        ranges: Iterable[ItemRange] = (),
        counts: Iterable[Count] = (),
    ) -> list[Receipt]:
        """Mark items done, any number of any batches.

        What is more than one request may carry is sent in several, one after the other; ids are checked
        request by request, so that one that is refused may come after items that were marked.

        Args:
            items: an item id, many, or a whole group, which counts as one range.
            ranges: ranges of groups.
            counts: acknowledgements without ids, for estimated batches.

        Returns:
            One receipt for each batch.
        """
        if isinstance(items, Group):
            ranges, items = [ItemRange(items.prefix), *ranges], ()
        requests = zip_longest(
            pages([items] if isinstance(items, str) else items, most=MAX_IDS),
            pages(ranges, most=MAX_RANGES),
            pages(counts, most=MAX_COUNTS),
            fillvalue=(),
        )
        return receipts_by_batch(
            receipt
            for ids, spans, numbers in requests
            for receipt in self.ledger.ack(ids, ranges=spans, counts=numbers)
        )

    def fail(self, items: str | Failure | Iterable[str | Failure], reason: str = "") -> list[Receipt]:
        """Mark items done as failed, any number of any batches.

        Args:
            items: item ids, or ``Failure`` where each has a reason of its own.
            reason: of those that have none; its first 1,024 characters are kept.

        Returns:
            One receipt for each batch.
        """
        named = [items] if isinstance(items, str | Failure) else items
        failures = (Failure(item, reason) if isinstance(item, str) else item for item in named)
        kept = (Failure(failure.item, failure.reason[:MAX_REASON]) for failure in failures)
        requests = pages(kept, most=MAX_FAILURES, size_of=_wire_bytes, most_bytes=_REQUEST_BYTES)
        return receipts_by_batch(receipt for page in requests for receipt in self.ledger.fail(page))

    def status(self, batch_id: int, *, exact: bool = False) -> Progress:
        """How far a batch is: bounds from at most 66 reads, or the exact count."""
        return self.ledger.status(batch_id, exact=exact)

    def wait(self, batch_id: int, timeout: Span | float | None = None) -> Progress:
        """Wait until a batch has ended, looking every 0.25 to 5 seconds.

        Args:
            batch_id: the batch; somebody must close it, since an open batch never completes.
            timeout: seconds, or a timedelta; None waits as long as the batch lives.

        Raises:
            TimeoutError: it has not ended in time.
        """
        patience = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        give_up = float("inf") if patience is None else self.clock.monotonic() + patience
        attempt = 0
        while not (progress := self.status(batch_id)).batch.state.terminal:
            left = give_up - self.clock.monotonic()
            if left <= 0:
                raise TimeoutError(f"batch {batch_id} is still {progress.batch.state} after {patience} s")
            self.clock.sleep(min(_POLLS.delay(attempt), left))
            attempt += 1
        return progress

    def missing(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Missing:
        """One page of the ranges not done; ``iter_missing`` gives all."""
        return self.ledger.missing(batch_id, cursor=cursor, limit=limit)

    def iter_missing(self, batch_id: int) -> Iterator[MissingRange]:
        """All ranges of items not done, ascending, read a page at a time."""
        for page in followed(lambda cursor: self.missing(batch_id, cursor=cursor, limit=MAX_PAGE)):
            yield from page.ranges

    def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Failures:
        """One page of the failed items; ``iter_failures`` gives all."""
        return self.ledger.failures(batch_id, cursor=cursor, limit=limit)

    def iter_failures(self, batch_id: int) -> Iterator[FailedItem]:
        """All failed items, by ordinal, read a page at a time."""
        for page in followed(lambda cursor: self.failures(batch_id, cursor=cursor, limit=MAX_PAGE)):
            yield from page.failures

    def verify(self, batch_id: int, *, repair: bool = True) -> Verdict:
        """Recompute the verdict of a whole batch from the leaves up; report and repair what disagrees."""
        return verdict_of(followed(lambda cursor: self.ledger.verify(batch_id, cursor=cursor, repair=repair)))

    def list(self, state: State | str, *, cursor: str | None = None, limit: int = 100) -> Batches:
        """One page of the batches of a state; ``iter_batches`` gives all."""
        return self.ledger.list(choice(State, state), cursor=cursor, limit=limit)

    def iter_batches(self, state: State | str) -> Iterator[Batch]:
        """All batches of a state, read a page at a time."""
        for page in followed(lambda cursor: self.list(state, cursor=cursor, limit=MAX_PAGE)):
            yield from page.batches

    def expire(self, state: State | str, *, idle_since: Moment) -> Expired:
        """Orphan live batches of a state without activity since then; remove ended ones.

        Args:
            state: the state.
            idle_since: as of when; a timedelta counts from now, so the past is a negative one.
        """
        return self.ledger.expire(choice(State, state), idle_since=milliseconds(idle_since, self.clock.now()))


def _wire_bytes(failure: Failure) -> int:
    return 32 + len(failure.item) + 6 * len(failure.reason)  # six bytes: the longest escape JSON has
