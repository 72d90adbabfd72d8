"""The calls on batches, for people: they take timedeltas, and read all pages of an answer."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Unpack, overload

from fanin import errors
from fanin.client import conversions
from fanin.client.conversions import BatchOptions, Duration, Moment
from fanin.client.items_in_hand import IN_HAND
from fanin.client.marking import MarkingCalls
from fanin.domain.batch import Batch, ChangeLimits, CloseWhen, OpenBatch, State
from fanin.domain.failures import Tolerance
from fanin.domain.ids import MAX_KEYS, Group, ItemKey, KeyedItem, checked_key
from fanin.domain.limits import chunks
from fanin.domain.marks import batch_of
from fanin.domain.paging import pages
from fanin.domain.redrives import OrdinalRange
from fanin.domain.reports import Expired, ReleasedItems, Verdict, merge_expired, merge_verdicts
from fanin.domain.targets import TargetReport


class LedgerCalls(MarkingCalls):
    """The calls on batches that every ``Tracker`` has, wherever its ledger is.

    Calls are safe to repeat, except ``open`` and ``add`` without a key, and what estimated batches count. If
    no answer comes to an addition without a key or to a count, they raise ``OutcomeUnknown``. They raise the
    errors that ``fanin.app.api.Ledger`` names.

    Args:
        ledger: the service that keeps the batches.
        clock: tells the time from which a timedelta counts, and waits; the machine's by default.
    """

    def open(self, *, key: str | None = None, **options: Unpack[BatchOptions]) -> Batch:
        """Open a batch; the service's settings supply what you leave out.

        Args:
            key: idempotency key: repeating the same request with the same key returns the same batch, in its
                present state. With a key, give the deadline as a point in time: a timedelta would make the
                repeat a different request.
            options: those of ``BatchOptions``.

        Raises:
            InvalidItemId: ``parent_item`` was not issued by this service.
            ItemHasChild: ``parent_item`` has another child batch, which lives or is complete.
            BatchNotFound, BatchGone: the batch of ``parent_item`` or ``retry_of`` does not exist or is gone.
            ChannelRefused: a queue of ``on_end`` does not exist, or lacks the tag ``fanin:channel``.
            IdempotencyKeyReused: the key was used for a different request.
        """
        request = conversions.batch_request(self.clock.now(), **options)
        parent_item = request.parent_item
        if parent_item is None or not IN_HAND.expects_child(parent_item):
            return self.ledger.open(request, key=key)
        batch = self._open_or_resume(request, key)
        if batch.state.terminal and not batch.used:
            raise errors.BatchClosed(
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
        at = None if deadline is None else conversions.milliseconds(deadline, self.clock.now())
        percents = None if milestones is None else conversions.whole_numbers("milestones", milestones)
        change = ChangeLimits(
            at, conversions.tolerance(tolerated_failures), conversions.seconds(stall_after), percents
        )
        return self.ledger.change(batch_id, change)

    def _open_or_resume(self, request: OpenBatch, key: str | None) -> Batch:
        """Open the child of an item whose message is handled, or return that of an earlier delivery."""
        try:
            return self.ledger.open(request, key=key)
        except errors.ItemHasChild as refused:
            return self.ledger.status(refused.child).batch
        except (errors.InvalidRequest, errors.BatchGone):
            # If the batch of the item has ended, its other messages are dropped
            if (batch_id := batch_of(request.parent_item or "")) is not None:
                self.ended.look(self._row, batch_id)
            raise

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
                raise errors.InvalidRequest("give several keys, or a count and perhaps a key, and not both")
            named = [one if isinstance(one, ItemKey) else ItemKey(checked_key(one)) for one in keys]
            blocks = chunks(named, max_items=MAX_KEYS)
            return [one for some in blocks for one in self.ledger.add_keys(batch_id, some, item=item).items]
        if count is None:
            raise errors.InvalidRequest("say how many items to add, or give their keys")
        if item is not None:
            return self.ledger.add(batch_id, count, item=item, key=item if key is None else key)
        if key is not None:
            return self.ledger.add(batch_id, count, key=key)
        try:
            return self.ledger.add(batch_id, count, key=uuid.uuid4().hex)
        except errors.ServiceUnavailable as error:
            raise errors.OutcomeUnknown(
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
        return self.ended.note(self.ledger.close(batch_id, when=conversions.member(CloseWhen, when)))

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
        chosen = conversions.selection(errors, ranges)
        first, *others = pages(self.ledger.release, batch_id, chosen)
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
        return merge_verdicts(pages(self.ledger.verify, batch_id, repair=repair))

    def expire(self, state: State | str, *, idle_since: Moment) -> Expired:
        """Clean up batches without activity: orphan those that are alive, remove those that have ended.

        Args:
            state: which batches.
            idle_since: those without activity since then; a timedelta counts from now, so it is negative.
        """
        of, since = conversions.member(State, state), conversions.milliseconds(idle_since, self.clock.now())
        return merge_expired(pages(self.ledger.expire, of, idle_since=since))

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
