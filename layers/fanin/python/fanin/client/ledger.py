"""The ledger's calls for people: they take timedeltas and streams of any length."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final, cast

from fanin.client.conversions import (
    Duration,
    Moment,
    member,
    milliseconds,
    seconds,
    selection,
    several,
    targets,
)
from fanin.client.items_in_hand import IN_HAND
from fanin.client.merging import REPEATS, mark_all, merge_verdicts, repeat_rest
from fanin.client.paging import chunks, follow_cursor
from fanin.client.reading import ReadingCalls
from fanin.domain.acks import Acks, Count, Failure, ItemRange, Receipt, Result
from fanin.domain.batch import Batch, Mode, OnDeadline, OnFailure, OpenBatch, State
from fanin.domain.failures import Keep, KeptMessage, checked_message
from fanin.domain.ids import Group
from fanin.domain.limits import MAX_COUNTS, MAX_FAILURES, MAX_IDS, MAX_RANGES, MAX_REASON, shown
from fanin.domain.reports import Expired, ReleasedItems, Verdict
from fanin.domain.selection import OrdinalRange
from fanin.domain.targets import Target, TargetReport
from fanin.domain.tolerance import Tolerance
from fanin.domain.totals import check_names, check_values
from fanin.errors import InvalidRequest, ItemHasChild, OutcomeUnknown, ServiceUnavailable
from fanin.wire.messages import pack

FAILURES_BYTES: Final = 900_000
"""Bytes of the failures of one request; one with a larger message has a request of its own."""


class LedgerCalls(ReadingCalls):
    """The calls on batches that every ``Tracker`` has, wherever its ledger is.

    Calls are safe to repeat, except ``open`` and ``add`` without a key, and what estimated batches count. If
    no answer comes to an addition without a key or to a count, they raise ``OutcomeUnknown``. They raise the
    errors that ``fanin.app.api.Ledger`` names.

    Args:
        ledger: the service that keeps the batches.
        clock: tells the time from which a timedelta counts, and waits; the machine's by default.
    """

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
        stall_after: Duration | None = None,
        metadata: Mapping[str, str] | None = None,
        keep: Keep | str | None = None,
        on_failure: OnFailure | str = OnFailure.DONE,
        tolerated_failures: Tolerance | int | None = None,
        on_end: Iterable[Target | Mapping[str, Any]] = (),
        totals: Iterable[str] = (),
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
            stall_after: time without activity until ``Batch Stalled`` tells that nothing moves, with the most
                likely reason; a timedelta, or seconds, 10 seconds to 365 days; 0 for never.
            metadata: small map of strings, returned with events.
            keep: ``message`` keeps the messages of failed items with the batch, the default; ``reason`` keeps
                their reasons alone, whoever fails them.
            on_failure: ``done``: an item that fails is done; or ``hold``: it stays pending until it is
                acknowledged, redriven and done, or released.
            tolerated_failures: the failures beyond which the batch is cancelled with ``cause="failures"``:
                a number, or a ``Tolerance`` with a share of the items.
            on_end: who is called back when the batch ends, up to five: each a ``Target``, or an object such
                as ``{"type": "sqs", "when": "complete", "queue_url": url}``.
            totals: names of up to four whole numbers that are summed up over the items that are done, such as
                ``["rows", "cents"]``; see ``ack``.
            key: idempotency key: repeating the same request with the same key returns the same batch, in its
                present state. With a key, give the deadline as a point in time: a timedelta would make the
                repeat a different request.

        Raises:
            InvalidItemId: ``parent_item`` was not issued by this service.
            ItemHasChild: ``parent_item`` has another child batch, which lives or is complete.
            BatchNotFound, BatchGone: the batch of ``parent_item`` or ``retry_of`` does not exist or is gone.
            ChannelRefused: a queue of ``on_end`` does not exist, or lacks the tag ``fanin:channel``.
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
            stall_after=seconds(stall_after),
            metadata=dict(metadata or {}),
            keep=None if keep is None else member(Keep, keep),
            on_failure=member(OnFailure, on_failure),
            tolerated_failures=_tolerance(tolerated_failures),
            on_end=targets(on_end),
            totals=check_names(totals),
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
        return self.ended.note(self.ledger.close(batch_id))

    def cancel(self, batch_id: int) -> Batch:
        """End a batch now as ``cancelled``; a batch that has ended stays as it is."""
        return self.ended.note(self.ledger.cancel(batch_id))

    def ack(
        self,
        items: str | Result | Group | Iterable[str | Result] = (),
        *,
        ranges: Iterable[ItemRange] = (),
        counts: Iterable[Count] = (),
        totals: Mapping[str, int] | None = None,
    ) -> list[Receipt]:
        """Mark items done: any number, of any batches.

        More than one request can carry is sent in several, one after the other. Ids are checked before
        anything of their request is marked; so when a later request is refused, the earlier ones are marked.

        Args:
            items: an item id, several, or a whole group, which is sent as one range. An item that brings
                something to the totals of its batch is a ``Result``.
            ranges: ranges of items.
            counts: numbers of items without ids, for estimated batches.
            totals: what a single item id brings to the totals of its batch: whole numbers within ±2⁵³ by
                name. Values count once, with the first acknowledgement of their item.

        Returns:
            One receipt for each batch.

        Raises:
            InvalidItemId: an id is malformed, forged, or beyond its batch.
            InvalidRequest: a value is not a whole number, or the batch of its item has no such total.
        """
        if totals is not None:
            if not isinstance(items, str):
                raise InvalidRequest(
                    "totals go with a single item id; give several items as Result(item, totals)"
                )
            items = Result(items, check_values(totals))
        if isinstance(items, Group):
            ranges, items = [ItemRange(items.prefix), *ranges], ()
        if not isinstance(items, Iterable | Result):
            raise InvalidRequest(f"items must be an item id, several, or a group, not {shown(items)}")
        named = [items] if isinstance(items, str | Result) else items
        ranges = several("ranges", ranges, ItemRange, "[ItemRange(group.prefix, 0, 10)]")
        counts = several("counts", counts, Count, "[Count(batch_id, 10)]")
        requests = zip_longest(
            chunks(named, max_items=MAX_IDS),
            chunks(ranges, max_items=MAX_RANGES),
            chunks(counts, max_items=MAX_COUNTS),
            fillvalue=(),
        )
        return mark_all(self._mark, (_acks(*request) for request in requests))

    def _mark(self, acks: Acks) -> Sequence[Receipt]:
        """Make one request, and repeat what it leaves."""

        def call(acks: Acks) -> Sequence[Receipt]:
            if acks.failures:
                return self.ledger.fail(acks.failures)
            return self.ledger.ack(acks.items, ranges=acks.ranges, counts=acks.counts, results=acks.results)

        return self.ended.learn(repeat_rest(call, acks, replace(REPEATS, sleep=self.clock.sleep)))

    def fail(
        self,
        items: str | Failure | Iterable[str | Failure],
        reason: str = "",
        *,
        message: KeptMessage | str | None = None,
        totals: Mapping[str, int] | None = None,
    ) -> list[Receipt]:
        """Mark items done as failed: any number, of any batches.

        The message of a failed item is kept with the batch, so that it can be read and sent again. In a
        batch that was opened with ``on_failure="hold"`` the items stay pending: they are held.

        Args:
            items: item ids; or ``Failure``, each with a reason and a message of its own.
            reason: for the item ids. The first 1,024 characters of a reason are kept.
            message: for the item ids: the message, or its text.
            totals: what a single item id brings to the totals of its batch all the same; see ``ack``.

        Returns:
            One receipt for each batch.

        Raises:
            InvalidItemId: an id is malformed, forged, or beyond its batch.
            RequestTooLarge: a message has more than 4 MiB as JSON.
        """
        named = [items] if isinstance(items, str | Failure) else items
        example = "[item, Failure(other_item, reason)]"
        if totals is not None and not isinstance(items, str):
            raise InvalidRequest(
                "totals go with a single item id; give several items as Failure(item, reason, totals=…)"
            )
        brought = check_values(totals or {})
        kept_message = KeptMessage(message) if isinstance(message, str) else message
        failures = (
            Failure(item, reason, kept_message, totals=brought) if isinstance(item, str) else item
            for item in several("items", named, (str, Failure), example)
        )
        kept = (replace(failure, reason=_kept(failure.reason)) for failure in failures)
        requests = chunks(kept, max_items=MAX_FAILURES, size_of=failure_bytes, max_bytes=FAILURES_BYTES)
        return mark_all(self._mark, (Acks(failures=page) for page in requests))

    def release(
        self,
        batch_id: int,
        *,
        errors: str | Iterable[str] = (),
        ranges: Iterable[OrdinalRange | tuple[int, int]] = (),
    ) -> ReleasedItems:
        """Give held items up: mark them as failed, so that their batch can complete.

        An item is released if it meets both conditions; without conditions, every held item is. An item
        that a redrive has sent again is not held: its consumer decides about it.

        Args:
            batch_id: a batch that was opened with ``on_failure="hold"``.
            errors: only items that failed for one of these errors, or for one that begins like it. Numbers
                and quoted texts in them are ignored.
            ranges: only items with these ordinals, as ``failures`` lists them: ``(start, stop)``.

        Returns:
            How many were released, and the batch afterwards.

        Raises:
            InvalidRequest: the batch holds no items, or a condition is invalid.
        """
        chosen = selection(errors, ranges)
        first, *others = follow_cursor(lambda at: self.ledger.release(batch_id, chosen, cursor=at))
        released = first.released + sum(page.released for page in others)
        return ReleasedItems(self.ended.note([first, *others][-1].batch), released)

    def redeliver(self, batch_id: int) -> Sequence[TargetReport]:
        """Have those targets of an ended batch told again that are parked, or that nobody has tried yet.

        Returns:
            All targets, as they are before they are told again.

        Raises:
            InvalidRequest: the batch has not ended.
        """
        return self.ledger.redeliver(batch_id).targets

    def verify(self, batch_id: int, *, repair: bool = True) -> Verdict:
        """Recompute from its items whether a batch is done, and report what disagrees.

        Args:
            batch_id: the batch.
            repair: correct what disagrees.
        """
        return merge_verdicts(
            follow_cursor(lambda cursor: self.ledger.verify(batch_id, cursor=cursor, repair=repair))
        )

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


def _tolerance(given: Tolerance | int | None) -> Tolerance | None:
    if given is None or isinstance(given, Tolerance):
        return given
    if isinstance(given, int):
        return Tolerance(count=given)
    raise InvalidRequest(
        f"tolerated_failures must be a number of failures or a Tolerance, such as Tolerance(percent=5), not"
        f" {shown(given)}"
    )


def _acks(items: Sequence[str | Result], ranges: Sequence[ItemRange], counts: Sequence[Count]) -> Acks:
    results = [one for one in items if isinstance(one, Result)]
    plain = [one for one in items if not isinstance(one, Result)] if results else items
    return Acks(cast("Sequence[str]", plain), ranges, counts, results=results)


def _kept(reason: str) -> str:
    """The part of a reason that is kept."""
    if not isinstance(reason, str):
        raise InvalidRequest(f"a reason must be text, not {shown(reason)}; write str(error) for an error")
    return reason[:MAX_REASON]


def failure_bytes(failure: Failure) -> int:
    """Most bytes of a failure in a request."""
    message = 0 if failure.message is None else len(pack(checked_message(failure.message)))
    return 64 + len(failure.item) + 6 * len(failure.reason) + message  # six: the longest escape JSON has
