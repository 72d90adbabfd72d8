"""The ledger's calls for people: they take timedeltas and streams of any length, and follow pages."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import zip_longest
from typing import Final

from fanin.adapters.backoff import Backoff
from fanin.adapters.system import SystemClock
from fanin.app.api import Ledger
from fanin.client.clock import Clock
from fanin.client.conversions import Duration, Moment, member, milliseconds, seconds, several
from fanin.client.items_in_hand import IN_HAND
from fanin.client.merging import REPEATS, mark_all, merge_verdicts, repeat_rest
from fanin.client.paging import chunks, follow_cursor
from fanin.domain.acks import Acks, Count, Failure, ItemRange, Receipt
from fanin.domain.batch import Batch, Mode, OnDeadline, OpenBatch, State
from fanin.domain.ids import Group
from fanin.domain.limits import MAX_COUNTS, MAX_FAILURES, MAX_IDS, MAX_PAGE, MAX_RANGES, MAX_REASON, shown
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
from fanin.errors import InvalidRequest, ItemHasChild, OutcomeUnknown, ServiceUnavailable

_REQUEST_BYTES: Final = 900_000  # the API takes 1 MiB; the rest is for the JSON around the failures
_POLLS: Final = Backoff(base=0.25, cap=5, fraction=lambda: 1.0)


class LedgerCalls:
    """The calls on batches that every ``Tracker`` has, wherever its ledger is.

    Calls are safe to repeat, except ``open`` and ``add`` without a key, and what estimated batches count. If
    no answer comes to an addition without a key or to a count, they raise ``OutcomeUnknown``. They raise the
    errors that ``fanin.app.api.Ledger`` names.

    Args:
        ledger: the service that keeps the batches.
        clock: tells the time from which a timedelta counts, and waits; the machine's by default.
    """

    def __init__(self, ledger: Ledger, clock: Clock | None = None) -> None:
        self.ledger = ledger
        self.clock: Clock = clock or SystemClock()

    def open(
        self,
        *,
        user_key: str = "",
        mode: Mode | str = Mode.EXACT,
        idle_ttl: Duration | None = None,
        lifetime: Duration | None = None,
        deadline: Moment | None = None,
        on_deadline: OnDeadline | str = OnDeadline.TIME_OUT,
        limit: int | None = None,
        parent_item: str | None = None,
        retry_of: int | None = None,
        metadata: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> Batch:
        """Open a batch; the service's settings supply what you leave out.

        Args:
            user_key: your own name for the batch, returned with its events.
            mode: ``exact``, or ``estimated``: one counter, which counts a repeated acknowledgement twice.
            idle_ttl: time without activity until the batch is orphaned; a timedelta, or seconds.
            lifetime: time until a live batch is orphaned; a timedelta, or seconds; 1 minute to 365 days.
            deadline: when ``on_deadline`` happens: a datetime, a timedelta from now, or ms since the epoch.
            on_deadline: ``time_out``, or ``complete``, which lists what is missing.
            limit: most items that may be pending at a time.
            parent_item: item of another batch; marked done when this batch completes, else failed. An item
                has one such batch at a time. In a handler that names the item of its message here, the
                consumer leaves the item to this batch; when the message comes again, so does this batch.
            retry_of: id of the batch whose failed items this batch retries; its events show it.
            metadata: small map of strings, returned with events.
            key: idempotency key: repeating the same request with the same key returns the same batch, in its
                present state. With a key, give the deadline as a point in time: a timedelta would make the
                repeat a different request.

        Raises:
            InvalidItemId: ``parent_item`` was not issued by this service.
            ItemHasChild: ``parent_item`` has another child batch, which lives or is complete.
            BatchNotFound, BatchGone: the batch of ``parent_item`` or ``retry_of`` does not exist or is gone.
            IdempotencyKeyReused: the key was used for a different request.
        """
        request = OpenBatch(
            user_key=user_key,
            mode=member(Mode, mode),
            idle_ttl=seconds(idle_ttl),
            lifetime=seconds(lifetime),
            deadline=None if deadline is None else milliseconds(deadline, self.clock.now()),
            on_deadline=member(OnDeadline, on_deadline),
            limit=limit,
            parent_item=parent_item,
            retry_of=retry_of,
            metadata=dict(metadata or {}),
        )
        if parent_item is None or not IN_HAND.expects_child(parent_item):
            return self.ledger.open(request, key=key)
        batch = self._open_or_resume(request, key)
        IN_HAND.leave_to_child(parent_item)
        return batch

    def _open_or_resume(self, request: OpenBatch, key: str | None) -> Batch:
        """Open the child of an item whose message is handled, or return that of an earlier delivery."""
        try:
            return self.ledger.open(request, key=key)
        except ItemHasChild as refused:
            if refused.child is None:
                raise
            return self.ledger.status(refused.child).batch

    def add(self, batch_id: int, count: int, *, key: str | None = None) -> Group:
        """Add items to an open batch, and get their ids.

        Args:
            batch_id: the batch.
            count: number of items, 1 to 2^32 - 1.
            key: idempotency key: a repeat with the same key returns the same items. Without one, a key is
                made for this call, so that what the library repeats by itself adds nothing twice; a call of
                yours that repeats this one adds other items.

        Raises:
            OutcomeUnknown: no answer came to a call without a key, so it may have added items.
            BatchClosed: the batch accepts no more items.
            LimitReached: the batch has a limit, and too many items are pending.
            IdempotencyKeyReused: the key was used with a different count.
        """
        if key is not None:
            return self.ledger.add(batch_id, count, key=key)
        try:
            return self.ledger.add(batch_id, count, key=uuid.uuid4().hex)
        except ServiceUnavailable as error:
            raise OutcomeUnknown(
                f"{error}; {count} items may have been added to batch {batch_id}, which cannot complete then"
                " because nobody knows them. Pass a key to add, so that a repeat returns the same items"
            ) from error

    def close(self, batch_id: int) -> Batch:
        """Accept no more items; a batch of which all items are done completes at once."""
        return self.ledger.close(batch_id)

    def cancel(self, batch_id: int) -> Batch:
        """End a batch now as ``cancelled``; a batch that has ended stays as it is."""
        return self.ledger.cancel(batch_id)

    def ack(
        self,
        items: str | Group | Iterable[str] = (),
        *,
        ranges: Iterable[ItemRange] = (),
        counts: Iterable[Count] = (),
    ) -> list[Receipt]:
        """Mark items done: any number, of any batches.

        More than one request can carry is sent in several, one after the other. Ids are checked before
        anything of their request is marked; so when a later request is refused, the earlier ones are marked.

        Args:
            items: an item id, several, or a whole group, which is sent as one range.
            ranges: ranges of items.
            counts: numbers of items without ids, for estimated batches.

        Returns:
            One receipt for each batch.

        Raises:
            InvalidItemId: an id is malformed, forged, or beyond its batch.
        """
        if isinstance(items, Group):
            ranges, items = [ItemRange(items.prefix), *ranges], ()
        if not isinstance(items, Iterable):
            raise InvalidRequest(f"items must be an item id, several, or a group, not {shown(items)}")
        ranges = several("ranges", ranges, ItemRange, "[ItemRange(group.prefix, 0, 10)]")
        counts = several("counts", counts, Count, "[Count(batch_id, 10)]")
        requests = zip_longest(
            chunks([items] if isinstance(items, str) else items, max_items=MAX_IDS),
            chunks(ranges, max_items=MAX_RANGES),
            chunks(counts, max_items=MAX_COUNTS),
            fillvalue=(),
        )
        return mark_all(self._mark, (Acks(*request) for request in requests))

    def _mark(self, acks: Acks) -> Sequence[Receipt]:
        """Make one request, and repeat what it leaves."""

        def call(acks: Acks) -> Sequence[Receipt]:
            if acks.failures:
                return self.ledger.fail(acks.failures)
            return self.ledger.ack(acks.items, ranges=acks.ranges, counts=acks.counts)

        return repeat_rest(call, acks, replace(REPEATS, sleep=self.clock.sleep))

    def fail(self, items: str | Failure | Iterable[str | Failure], reason: str = "") -> list[Receipt]:
        """Mark items done as failed: any number, of any batches.

        Args:
            items: item ids; or ``Failure``, each with a reason of its own.
            reason: for the item ids. The first 1,024 characters of a reason are kept.

        Returns:
            One receipt for each batch.

        Raises:
            InvalidItemId: an id is malformed, forged, or beyond its batch.
        """
        named = [items] if isinstance(items, str | Failure) else items
        example = "[item, Failure(other_item, reason)]"
        failures = (
            Failure(item, reason) if isinstance(item, str) else item
            for item in several("items", named, (str, Failure), example)
        )
        kept = (Failure(failure.item, _kept(failure.reason)) for failure in failures)
        requests = chunks(kept, max_items=MAX_FAILURES, size_of=_wire_bytes, max_bytes=_REQUEST_BYTES)
        return mark_all(self._mark, (Acks(failures=page) for page in requests))

    def status(self, batch_id: int, *, exact: bool = False) -> Progress:
        """Read a batch and how far it is.

        Args:
            batch_id: the batch.
            exact: count the items that are done; by default the answer has bounds, from at most 67 reads.
        """
        return self.ledger.status(batch_id, exact=exact)

    def wait(self, batch_id: int, timeout: Duration | float | None = None) -> Progress:
        """Wait until a batch has ended, polling every 0.25 to 5 seconds.

        Args:
            batch_id: the batch; it must be closed, because an open batch never completes.
            timeout: seconds, or a timedelta; None waits for as long as the batch lives.

        Raises:
            TimeoutError: the batch has not ended in time.
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
        """Read one page of the ranges of items that are not done; ``iter_missing`` gives all."""
        return self.ledger.missing(batch_id, cursor=cursor, limit=limit)

    def iter_missing(self, batch_id: int) -> Iterator[MissingRange]:
        """All ranges of items that are not done, ascending, read a page at a time."""
        for page in follow_cursor(lambda cursor: self.missing(batch_id, cursor=cursor, limit=MAX_PAGE)):
            yield from page.ranges

    def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Failures:
        """Read one page of the failed items; ``iter_failures`` gives all."""
        return self.ledger.failures(batch_id, cursor=cursor, limit=limit)

    def iter_failures(self, batch_id: int) -> Iterator[FailedItem]:
        """All failed items in the order they were added, read a page at a time."""
        for page in follow_cursor(lambda cursor: self.failures(batch_id, cursor=cursor, limit=MAX_PAGE)):
            yield from page.failures

    def verify(self, batch_id: int, *, repair: bool = True) -> Verdict:
        """Recompute from its items whether a batch is done, and report what disagrees.

        Args:
            batch_id: the batch.
            repair: correct what disagrees.
        """
        return merge_verdicts(
            follow_cursor(lambda cursor: self.ledger.verify(batch_id, cursor=cursor, repair=repair))
        )

    def list(
        self,
        state: State | str | None = None,
        *,
        user_key: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Batches:
        """Read one page of the batches in a state, with a user key, or both; ``iter_batches`` gives all.

        Args:
            state: only batches in this state.
            user_key: only batches that were opened with this user key, the newest first.
            cursor: of the page before.
            limit: most batches of a page. A page may have fewer; only a None cursor marks the end.
        """
        of = None if state is None else member(State, state)
        return self.ledger.list(of, user_key=user_key, cursor=cursor, limit=limit)

    def iter_batches(
        self, state: State | str | None = None, *, user_key: str | None = None
    ) -> Iterator[Batch]:
        """All batches in a state, with a user key (the newest first), or both, read a page at a time."""
        for page in follow_cursor(
            lambda cursor: self.list(state, user_key=user_key, cursor=cursor, limit=MAX_PAGE)
        ):
            yield from page.batches

    def expire(self, state: State | str, *, idle_since: Moment) -> Expired:
        """Clean up batches without activity: orphan those that are alive, remove those that have ended.

        Args:
            state: which batches.
            idle_since: those without activity since then; a timedelta counts from now, so it is negative.
        """
        return self.ledger.expire(member(State, state), idle_since=milliseconds(idle_since, self.clock.now()))

    def remove(self, batch_id: int) -> Expired:
        """Remove one ended batch: it reads as gone from now on. Its end is announced all the same.

        Its row is deleted within days; its words stay, and are paid for, until its lifetime is over.

        Returns:
            The batch and its items; zeros if it was removed before.

        Raises:
            InvalidRequest: the batch is live; cancel it first.
            BatchNotFound: the batch does not exist, or was removed long ago.
        """
        return self.ledger.remove(batch_id)


def _kept(reason: str) -> str:
    """The part of a reason that is kept."""
    if not isinstance(reason, str):
        raise InvalidRequest(f"a reason must be text, not {shown(reason)}; write str(error) for an error")
    return reason[:MAX_REASON]


def _wire_bytes(failure: Failure) -> int:
    return 32 + len(failure.item) + 6 * len(failure.reason)  # six bytes: the longest escape JSON has
