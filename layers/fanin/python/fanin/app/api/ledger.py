"""The calls of the ledger: batches and acknowledgements, why a batch is not finished, and redrives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from fanin.domain.batch import CloseWhen

if TYPE_CHECKING:
    from fanin.domain import reports
    from fanin.domain.access import Principal
    from fanin.domain.batch import Batch, ChangeLimits, OpenBatch, State
    from fanin.domain.diagnosis import Diagnosis, Retry, SentItems
    from fanin.domain.ids import Group, ItemKey, KeyedItem, KeyedItems
    from fanin.domain.marks import Mark, Marked
    from fanin.domain.picture import Picture
    from fanin.domain.redrives import Redrive, Redriving, Redrivings, Selection
    from fanin.domain.targets import TargetReports


class Ledger(Protocol):
    """Batches and acknowledgements, over HTTPS or straight on the tables.

    Calls are safe to repeat, except ``open`` and ``add`` without a key, whose lost answers are raised as
    ``OutcomeUnknown``, and the marks that ``mark`` says are unknown. Any call may raise ``InvalidRequest``,
    ``Throttled``, ``ServiceUnavailable`` and ``AccessDenied``. Calls that name a batch may also raise
    ``BatchNotFound`` and ``BatchGone``.
    """

    def open(self, request: OpenBatch, *, key: str | None = None, caller: Principal | None = None) -> Batch:
        """Open a batch; with an idempotency key, at most one batch for each key.

        The key is kept for the lifetime of the batch. A repeat returns the same batch, in its
        present state. A key belongs to its caller: another caller's key of the same text is another key.

        Args:
            request: what to open.
            key: idempotency key.
            caller: who asks, where the service is called for others; the API knows its callers by itself.

        Raises:
            InvalidItemId: ``parent_item`` was not issued by this service.
            ItemHasChild: ``parent_item`` has another child batch, which lives or is complete.
            BatchNotFound: the batch of ``parent_item`` or ``retry_of`` does not exist.
            BatchGone: that batch, or the batch of the key, was removed or is past its lifetime.
            IdempotencyKeyReused: the key was used with another request.
        """

    def add(
        self,
        batch_id: int,
        count: int,
        *,
        item: str | None = None,
        key: str | None = None,
        caller: Principal | None = None,
    ) -> Group:
        """Add ``count`` items (1 to 2^32 - 1) to an open batch; with a key, at most once for each key.

        Args:
            batch_id: the batch.
            count: how many.
            item: the pending item of the batch that adds them, which it may also while the batch drains. Its
                keys are its own, whoever handles its message; without a key its id is the key.
            key: idempotency key.
            caller: who calls.

        Raises:
            BatchClosed: the batch takes no more items.
            ItemDone: the item is done.
            MaxItemsReached: the batch would have more than its ``max_items``.
            LimitReached: the batch is bounded, and full.
            IdempotencyKeyReused: the key was used with another count.
        """

    def add_keys(self, batch_id: int, keys: Sequence[ItemKey], *, item: str | None = None) -> KeyedItems:
        """Add an item for each of up to 98 keys that has none yet, all or none; safe to repeat.

        One key is one item of the batch, by whoever, however often, also in one call.

        Args:
            batch_id: the batch.
            keys: each with a digest of its payload, if another payload is to be noticed.
            item: the pending item of the batch that adds them, as in ``add``.

        Returns:
            The items of all keys, in their order.

        Raises:
            InvalidRequest: a key is not text of 1 to 512 bytes in UTF-8, or the batch is estimated.
            BatchClosed, ItemDone, MaxItemsReached, LimitReached: as ``add``, if a key is no item yet.
        """

    def find_key(self, batch_id: int, *, key_of_item: str) -> KeyedItem:
        """The item of a key.

        Raises:
            KeyNotFound: the batch has none.
        """

    def mark(self, marks: Sequence[Mark]) -> Marked:
        """Mark items done or failed, in any number of batches, each mark for itself.

        The first mark of an item decides, with the totals that it brings, also within one request. The
        messages of failures are kept with the batch, before their items are marked, unless the batch keeps
        reasons alone or has ended. In a batch that was opened with ``on_failure="hold"`` items that fail
        stay pending: they are held.

        Args:
            marks: in the order in which they happened, up to a weight of 10,000: an item id is 1; a failure,
                a range or a count is 10.

        Returns:
            A receipt for each batch; and the marks that are not settled, by their places: refused, left or
            unknown. Only what is left is to be repeated.

        Raises:
            RequestTooLarge: the marks weigh too much; nothing was marked.
        """

    def close(self, batch_id: int, *, when: CloseWhen = CloseWhen.NOW) -> Batch:
        """Take no more items; completes the batch at once if all are done.

        Args:
            batch_id: the batch.
            when: ``drained`` lets its own pending items add more until all that it has are done.

        Raises:
            InvalidRequest: the batch cannot drain, since it is estimated, bounded, or of a pattern.
        """

    def cancel(self, batch_id: int) -> Batch:
        """End a batch that is no longer wanted; a batch that has ended stays as it is."""

    def change(self, batch_id: int, change: ChangeLimits) -> Batch:
        """Change the deadline, the tolerance or ``stall_after`` of a live batch; safe to repeat.

        A tolerance counts at once: a batch that exceeds it is cancelled. Other processes may work with the
        old ``stall_after`` for half a minute.

        Raises:
            InvalidRequest: nothing changes, a value is out of range, or the batch has ended, is estimated and
                gets a tolerance, or carries a pattern, which has limits of its own.
        """

    def release(
        self, batch_id: int, selection: Selection | None = None, *, cursor: str | None = None
    ) -> reports.ReleasedItems:
        """Give up held items: mark them as failed, so that the batch can complete.

        Args:
            batch_id: a batch that was opened with ``on_failure="hold"``; of one that has ended, nothing is
                released.
            selection: which items; by default all that are held.
            cursor: of the page before. A page looks at up to 1,000 failures. Only a None cursor marks the
                end.

        Raises:
            InvalidRequest: the batch holds no items, or the cursor is not from this listing.
            RequestTooLarge: the selection has more than 100 errors or ranges, or errors of over 32 KiB.
        """

    def status(self, batch_id: int, *, exact: bool = False, brief: bool = False) -> reports.Progress:
        """Read the batch with bounds of its done items (at most 67 reads), or with their exact count.

        Of a batch that holds failed items, up to 67 more rows are read to count those that are held.

        Args:
            batch_id: the batch.
            exact: count the items that are done.
            brief: read the row only; then the bounds say nothing.
        """

    def missing(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> reports.Missing:
        """List the ranges of pending items, up to 1,000 a page. Only a None cursor marks the end.

        Raises:
            InvalidRequest: the batch is estimated, the cursor is not from this listing, or the limit is not
                from 1 to 1,000.
        """

    def picture(self, batch_id: int, *, level: int | None = None, number: int = 0) -> Picture:
        """Read one node of the batch's summary tree, and the up to 64 parts below it; at most 66 rows.

        To show single items with their keys takes up to 64 rows more.

        What is shown as done is done for good. An item that is shown as pending was pending at a moment of
        this call; so none is that an answer before this call has shown as done. The bounds of cells are true
        likewise, but where a later answer has read fewer rows they may be wider.

        Args:
            batch_id: the batch.
            level: of the node: 0 shows items. By default the root, as it is now.
            number: of the node on its level. A node stays where it is, however the batch grows.

        Raises:
            InvalidRequest: the batch is estimated, or has no such node.
        """

    def results(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> reports.Results:
        """List the results of items that are done, by ordinal, also while others are pending.

        Args:
            batch_id: the batch, which keeps results.
            cursor: of the page before, or the ordinal of the item to begin with. A page looks at up to
                ``limit`` items, so it may have fewer results, or none. Only a None cursor marks the end.
            limit: most results of a page, 1 to 1,000.

        Raises:
            InvalidRequest: the batch was not opened to keep results.
        """

    def failures(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> reports.Failures:
        """List failed items by ordinal, up to 1,000 a page. Only a None cursor marks the end.

        Raises:
            InvalidRequest: the cursor is not from this listing, or the limit is not from 1 to 1,000.
        """

    def failure(self, batch_id: int, ordinal: int) -> reports.FailedMessage:
        """Read one failed item with its message.

        Raises:
            FailureNotFound: the item has not failed.
        """

    def errors(self, batch_id: int, *, cursor: str | None = None) -> reports.Errors:
        """Group the failed items of one part of a batch by error; only a None cursor marks the last part.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """

    def verify(self, batch_id: int, *, cursor: str | None = None, repair: bool = True) -> reports.Verdict:
        """Recompute the state of one part from the items up, and report what disagrees.

        Args:
            batch_id: the batch.
            cursor: of the part before; only a None cursor in the answer marks the last part.
            repair: fix what disagrees.
        """

    def list(
        self,
        state: State | None = None,
        *,
        user_key: str | None = None,
        parent: int | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> reports.Batches:
        """List batches by state, by user key or by parent, up to 1,000 a page.

        A page may be short or empty; only a None cursor marks the end. With a user key the newest batch is
        first.

        Args:
            state: only batches in this state.
            user_key: only batches that were opened with this user key.
            parent: only batches that are nested in this one: the last of each of its items.
            cursor: of the page before.
            limit: most batches of a page.

        Raises:
            InvalidRequest: no state, user key or parent is given, or the last two are; the cursor is not from
                this listing; or the limit is not from 1 to 1,000.
            BatchNotFound, BatchGone: there is no such parent.
        """

    def counts(self) -> reports.BatchCounts:
        """Count the batches in each state, whatever their number; reads the index and no batch.

        Up to 100,000 or so batches in a state are counted, of more at least so many. One that was removed
        may be counted until its rows are deleted.
        """

    def expire(self, state: State, *, idle_since: int, cursor: str | None = None) -> reports.Expired:
        """Orphan one page of live batches, or remove one of ended ones, that are idle.

        Args:
            state: which batches to look at.
            idle_since: those without activity since then, ms since the epoch.
            cursor: of the page before; only a None cursor in the answer marks the end.

        Raises:
            InvalidRequest: the cursor is not from this expiry.
        """

    def remove(self, batch_id: int) -> reports.Expired:
        """Remove one ended batch: it reads as gone from now on. Its end is announced all the same.

        Returns:
            The batch and its items; zeros if it was removed before.

        Raises:
            InvalidRequest: the batch is live; cancel it first.
            BatchNotFound: the batch does not exist, or was removed long ago.
        """

    def targets(self, batch_id: int) -> TargetReports:
        """Read who is told of the end of a batch, and how far each is; tokens and URLs are masked."""

    def redeliver(self, batch_id: int) -> TargetReports:
        """Tell those targets of an ended batch at once that were not told yet.

        Returns:
            All targets, as they are before they are told again.

        Raises:
            InvalidRequest: the batch has not ended.
        """


class Diagnostics(Protocol):
    """Says why a batch is not finished, and takes the notes that help to say it.

    All calls are safe to repeat. Any call may raise ``InvalidRequest``, ``Throttled``, ``ServiceUnavailable``
    and ``AccessDenied``, and those that name a batch ``BatchNotFound`` and ``BatchGone``.
    """

    def why(self, batch_id: int) -> Diagnosis:
        """Say why a batch is not finished, from at most 100 reads of rows and queues.

        It writes nothing. What it may not look at is a finding, not an error.
        """

    def attention(self, *, cursor: str | None = None, limit: int = 100) -> reports.Attention:
        """List the batches that a person should look at: live ones first, the most urgent before others.

        It reads what is wrong, however many batches there are. A failure that was redriven is not wrong any
        more. Only a None cursor marks the end.

        Raises:
            InvalidRequest: the cursor is not from this listing, or the limit is not from 1 to 1,000.
        """

    def note_sent(self, batch_id: int, sent: SentItems) -> None:
        """Note that a queue has accepted the messages of some items; costs one write.

        Repeating it, also with a longer range that begins at the same item, is exact: nothing is counted.

        Raises:
            InvalidRequest: the range is empty, or ends past the batch's last item.
        """

    def note_retries(self, retries: Sequence[Retry]) -> None:
        """Note failed attempts whose messages come again, at most 1,000; of an item the last note stays.

        Items of batches that have ended are ignored.

        Raises:
            InvalidItemId: an id is malformed or was not issued by this service; nothing was written.
            RequestTooLarge: there are too many.
        """


class Redrives(Protocol):
    """Sends the messages of failed items again. All calls are safe to repeat."""

    def redrive(self, batch_id: int, request: Redrive | None = None) -> Redriving:
        """Send the kept messages of failed items again, each failure once.

        Those of a batch that has ended get items of a new batch, whose ``retry_of`` names this one. Items
        that a live batch holds are sent under their own ids. A small redrive is finished when the call
        returns; a worker goes on with a larger one, and ``redrives`` shows how far it is. If a redrive of the
        same selection is running, the call returns that one, and goes on with it if its worker has died.

        Raises:
            InvalidRequest: the batch is live and does not hold its failed items, or the selection is invalid.
            ChannelRefused: fanin may not send to the queue that the request names.
            BatchNotFound, BatchGone: the batch does not exist or is gone.
            Throttled: the tables are overloaded; call again.
        """

    def redrives(self, batch_id: int, *, cursor: str | None = None, limit: int = 100) -> Redrivings:
        """List the redrives of a batch's failures, up to 1,000 a page. Only a None cursor marks the end.

        Raises:
            InvalidRequest: the cursor is not from this listing, or the limit is not from 1 to 1,000.
            BatchNotFound, BatchGone: the batch does not exist or is gone.
        """
