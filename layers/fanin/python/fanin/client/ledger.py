"""The calls on batches, for people: they take timedeltas, and read all pages of an answer."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from fanin.client.conversions import (
    Duration,
    Moment,
    batch_request,
    member,
    milliseconds,
    seconds,
    selection,
    tolerance,
    whole_numbers,
)
from fanin.client.items_in_hand import IN_HAND
from fanin.client.marking import MarkingCalls
from fanin.client.paging import follow_cursor
from fanin.domain.batch import (
    Batch,
    ChangeLimits,
    ChildFailures,
    CloseWhen,
    Mode,
    OnDeadline,
    OnFailure,
    OpenBatch,
    State,
)
from fanin.domain.failures import Keep, Tolerance
from fanin.domain.ids import Group
from fanin.domain.keys import MAX_KEYS, ItemKey, KeyedItem, checked_key
from fanin.domain.limits import chunks
from fanin.domain.marks import batch_of
from fanin.domain.redrives import OrdinalRange
from fanin.domain.reports import Expired, ReleasedItems, Verdict, merge_verdicts
from fanin.domain.targets import Target, TargetReport
from fanin.errors import (
    BatchClosed,
    BatchGone,
    FaninError,
    InvalidRequest,
    ItemHasChild,
    OutcomeUnknown,
    ServiceUnavailable,
)


class LedgerCalls(MarkingCalls):
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
        child_failures: ChildFailures | str = ChildFailures.FAIL,
        tolerated_failures: Tolerance | int | None = None,
        on_end: Iterable[Target | Mapping[str, Any]] = (),
        totals: Iterable[str] = (),
        results: bool = False,
        max_items: int | None = None,
        milestones: Iterable[int] = (),
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
            parent_item: item of another batch. It is marked done when this batch completes without failures,
                or with no more than it tolerates; else failed. An item has one such batch at a time. In a
                handler that names the item of its message here, the consumer leaves the item to this batch;
                when the message comes again, so does this batch.
            retry_of: id of the batch whose failed items this batch retries; its events show it.
            stall_after: time without activity until ``Batch Stalled`` tells that nothing moves, with the most
                likely reason; a timedelta, or seconds, 10 seconds to 365 days; 0 for never.
            metadata: small map of strings, returned with events.
            keep: ``message`` keeps the messages of failed items with the batch, the default; ``reason`` keeps
                their reasons alone, whoever fails them.
            on_failure: ``done``: an item that fails is done; or ``hold``: it stays pending until it is
                acknowledged, redriven and done, or released.
            child_failures: ``fail``: an item fails if a batch nested in it has failures; or ``ignore``.
            tolerated_failures: the failures beyond which the batch is cancelled with ``cause="failures"``:
                a number, or a ``Tolerance`` with a share of the items.
            on_end: who is called back when the batch ends, up to five: each a ``Target``, or an object such
                as ``{"type": "sqs", "when": "complete", "queue_url": url}``.
            totals: names of up to four whole numbers that are summed up over the items that are done, such as
                ``["rows", "cents"]``; see ``ack``.
            results: whether the results of items are kept; see ``ack``.
            max_items: most items that it takes in all. An addition beyond that raises ``MaxItemsReached``,
                which fails an item whose handler lets it pass; so a batch that grows from inside ends.
            milestones: percents of its items, from 1 to 100 and up to ten, such as ``[50, 90]``. ``Batch
                Progress`` tells of each once: of a closed batch when so much is done, and of the others
                right before the end.
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
        request = batch_request(
            self.clock.now(),
            user_key=user_key,
            mode=mode,
            idle_ttl=idle_ttl,
            lifetime=lifetime,
            deadline=deadline,
            on_deadline=on_deadline,
            limit=limit,
            parent_item=parent_item,
            retry_of=retry_of,
            stall_after=stall_after,
            metadata=metadata,
            keep=keep,
            on_failure=on_failure,
            child_failures=child_failures,
            tolerated_failures=tolerated_failures,
            on_end=on_end,
            totals=totals,
            results=results,
            max_items=max_items,
            milestones=milestones,
        )
        if parent_item is None or not IN_HAND.expects_child(parent_item):
            return self.ledger.open(request, key=key)
        batch = self._open_or_resume(request, key)
        if batch.state.terminal and not batch.used:
            raise BatchClosed(
                f"batch {batch.batch_id} has ended as {batch.state} before anything was added, so it does not"
                f" mark item {parent_item}; open another, with another key"
            )
        IN_HAND.leave_to_child(parent_item)
        return batch

    def change(
        self,
        batch_id: int,
        *,
        deadline: Moment | None = None,
        tolerated_failures: Tolerance | int | None = None,
        stall_after: Duration | None = None,
        milestones: Iterable[int] | None = None,
    ) -> Batch:
        """Change limits of a live batch; what is left out stays.

        Args:
            batch_id: the batch.
            deadline: as for ``open``.
            tolerated_failures: as for ``open``. It counts at once: a batch that exceeds it is cancelled.
            stall_after: as for ``open``. Other processes may work with the old one for half a minute.
            milestones: as for ``open``, in place of those before; none below the last one that was told.

        Raises:
            InvalidRequest: nothing changes, a value is out of range, or the batch has ended, is estimated and
                gets a tolerance, or carries a scatter, frame or buffer, which has limits of its own.
            BatchNotFound, BatchGone: there is no such batch.
        """
        at = None if deadline is None else milliseconds(deadline, self.clock.now())
        percents = None if milestones is None else whole_numbers("milestones", milestones)
        change = ChangeLimits(at, tolerance(tolerated_failures), seconds(stall_after), percents)
        return self.ledger.change(batch_id, change)

    def _open_or_resume(self, request: OpenBatch, key: str | None) -> Batch:
        """Open the child of an item whose message is handled, or return that of an earlier delivery."""
        try:
            return self.ledger.open(request, key=key)
        except ItemHasChild as refused:
            return self.ledger.status(refused.child).batch
        except (InvalidRequest, BatchGone):
            self._learn_end(request.parent_item)
            raise

    def _learn_end(self, item: str | None) -> None:
        """Learn whether the batch of an item has ended, so that its other messages are dropped."""
        batch_id = batch_of(item or "")
        if batch_id is None:
            return
        try:
            self.ended.note(self.ledger.status(batch_id, brief=True).batch)
        except BatchGone:
            self.ended.gone(batch_id)
        except FaninError:
            return  # the next message asks again

    def find_key(self, batch_id: int, key: str) -> KeyedItem:
        """Find the item of a key: its id, and whether it is done.

        Raises:
            KeyNotFound: the batch has no such item.
        """
        return self.ledger.find_key(batch_id, key_of_item=key)

    @overload
    def add(self, batch_id: int, count: int, *, item: str | None = None, key: str | None = None) -> Group: ...
    @overload
    def add(
        self, batch_id: int, *, keys: Iterable[str | ItemKey], item: str | None = None
    ) -> list[KeyedItem]: ...
    def add(
        self,
        batch_id: int,
        count: int | None = None,
        *,
        keys: Iterable[str | ItemKey] | None = None,
        item: str | None = None,
        key: str | None = None,
    ) -> Group | list[KeyedItem]:
        """Add items to an open batch, and get their ids.

        Args:
            batch_id: the batch.
            count: number of items, 1 to 2^32 - 1.
            keys: instead, the keys of the items: texts of 1 to 512 bytes in UTF-8. One key is one item of the
                batch, by whoever, however often. They are added 98 at a time, and a repeat is safe.
            item: the pending item of the batch that adds them, which it may also while the batch drains. Its
                keys are its own, whoever handles its message. Without a key its id is the key, so that it
                adds once. Handlers use ``message.add_items``.
            key: idempotency key: a repeat with the same key returns the same items. Without one, a key is
                made for this call, so that what the library repeats by itself adds nothing twice; a call of
                yours that repeats this one adds other items.

        Raises:
            OutcomeUnknown: no answer came to a call without a key, so it may have added items.
            BatchClosed: the batch accepts no more items.
            ItemDone: ``item`` is done.
            MaxItemsReached: the batch would have more than its ``max_items``.
            LimitReached: the batch has a limit, and too many items are pending.
            IdempotencyKeyReused: the key was used with a different count.
        """
        if keys is not None:
            if count is not None or key is not None or isinstance(keys, str):
                raise InvalidRequest("give several keys, or a count and perhaps a key, and not both")
            named = [one if isinstance(one, ItemKey) else ItemKey(checked_key(one)) for one in keys]
            blocks = chunks(named, max_items=MAX_KEYS)
            return [one for some in blocks for one in self.ledger.add_keys(batch_id, some, item=item).items]
        if count is None:
            raise InvalidRequest("say how many items to add, or give their keys")
        if item is not None:
            return self.ledger.add(batch_id, count, item=item, key=item if key is None else key)
        if key is not None:
            return self.ledger.add(batch_id, count, key=key)
        try:
            return self.ledger.add(batch_id, count, key=uuid.uuid4().hex)
        except ServiceUnavailable as error:
            raise OutcomeUnknown(
                f"{error}; {count} items may have been added to batch {batch_id}, which cannot complete then"
                " because nobody knows them. Pass a key to add, so that a repeat returns the same items"
            ) from error

    def close(self, batch_id: int, *, when: CloseWhen | str = CloseWhen.NOW) -> Batch:
        """Accept no more items; a batch of which all items are done completes at once.

        Args:
            batch_id: the batch.
            when: ``drained`` lets the items of the batch add more, each while it is pending, until all are
                done; see ``ReceivedMessage.add_items``. Close it without that to stop it from growing.

        Raises:
            InvalidRequest: the batch cannot drain, since it is estimated, has a limit, or is of a pattern.
        """
        return self.ended.note(self.ledger.close(batch_id, when=member(CloseWhen, when)))

    def cancel(self, batch_id: int) -> Batch:
        """End a batch now as ``cancelled``; a batch that has ended stays as it is."""
        return self.ended.note(self.ledger.cancel(batch_id))

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
        """Have those targets of an ended batch told at once that were not told yet.

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
        of, since = member(State, state), milliseconds(idle_since, self.clock.now())
        pages = list(follow_cursor(lambda at: self.ledger.expire(of, idle_since=since, cursor=at)))
        return Expired(sum(page.batches for page in pages), sum(page.items for page in pages))

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
