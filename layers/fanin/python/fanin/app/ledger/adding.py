"""Adding items: one conditional write for any number of items."""

from collections.abc import Sequence
from dataclasses import replace

from fanin import errors
from fanin.app.ledger.failed import done_among
from fanin.app.ledger.known_batches import check_issued
from fanin.app.ledger.reading import Reading
from fanin.app.ledger.walk import Walk
from fanin.app.ports.parts import KeyRow
from fanin.domain import ids, limits
from fanin.domain.access import IdempotencyKey, Principal
from fanin.domain.batch import Batch, Kind, Mode, State
from fanin.domain.ids import MAX_DIGEST, MAX_KEYS, Group, ItemKey, KeyedItem, KeyedItems, checked_key
from fanin.domain.tree import runs

TRIES = 20
"""Attempts against other producers of the same batch, before the caller is asked to try again."""
_NOTES = 8
"""Notes of what was sent that a repeated addition reads: the one that has its items is among the last."""


class Adding(Reading):
    """The producing side of the ledger."""

    def add(
        self,
        batch_id: int,
        count: int,
        *,
        item: str | None = None,
        key: str | None = None,
        caller: Principal | None = None,
    ) -> Group:
        limits.whole("batch_id", batch_id, 0, ids.MAX_BATCH_ID)
        limits.whole("count", count, 1, ids.MAX_COUNT)
        if item is not None:
            return self._add_by_item(batch_id, count, item, key)
        if key is None:
            return self._add(batch_id, count)
        named = IdempotencyKey.of(key, caller)
        return self._add_once(self._known.current(batch_id), count, named)

    def _add_by_item(self, batch_id: int, count: int, item: str, key: str | None) -> Group:
        """Add what an item of the batch brings.

        Of a repeat, the answer says whether a note tells that the messages were sent. Else each delivery of
        the item would send them once more, and so would each of theirs, and so on.
        """
        batch, ordinal = self._adder(batch_id, item)
        named = IdempotencyKey.of_item(ordinal, item if key is None else key)
        group = self._add_once(batch, count, named, by_item=True)
        if not group.again:
            return group
        _check_lives(batch)
        block = ids.parse_prefix(group.prefix)
        return replace(group, sent=self._sent(batch_id, block.first, block.stop))

    def _adder(self, batch_id: int, item: str) -> tuple[Batch, int]:
        """The batch of an item that adds to it, as it is now, and the ordinal of the item.

        Raises:
            InvalidItemId: it is not an item of the batch.
            ItemDone: it is done. A range that was marked as a whole may hide that.
        """
        block, ordinal = ids.parse_item(item)
        if block.batch_id != batch_id:
            raise errors.InvalidItemId(
                f"item {item} is not of batch {batch_id}: an item adds to its own batch only"
            )
        batch = self._known.current(batch_id)
        check_issued(block, batch)
        if done_among(self.ports, batch_id, [ordinal]):
            raise errors.ItemDone(f"item {item} is done, so it adds nothing more; drop this message")
        return batch, ordinal

    def _sent(self, batch_id: int, start: int, stop: int) -> bool:
        """Whether a note says that the messages of a range of items were sent."""
        rows, _ = self.ports.parts.sent(batch_id, upto=start, limit=_NOTES)
        return any(start >= row.start and stop <= row.stop for row in rows)

    def add_keys(self, batch_id: int, keys: Sequence[ItemKey], *, item: str | None = None) -> KeyedItems:
        """Add an item for each key that has none, by one transaction; repeats find what is there."""
        limits.whole("batch_id", batch_id, 0, ids.MAX_BATCH_ID)
        limits.whole("the number of keys", len(keys), 1, MAX_KEYS)
        first: dict[str, ItemKey] = {}
        for one in keys:
            limits.text("the payload's digest", one.payload, MAX_DIGEST)
            first.setdefault(checked_key(one.key), one)
        if item is None:
            batch, by = self._known.current(batch_id), None
        else:
            batch, by = self._adder(batch_id, item)
        if batch.mode is Mode.ESTIMATED:
            raise errors.InvalidRequest(
                f"batch {batch_id} is estimated and knows no items: add a number, or open an exact batch"
            )
        rows = self.ports.parts.keys(batch_id, list(first))
        added: set[str] = set()
        for _ in range(TRIES):
            left = [one for one in first.values() if one.key not in rows]
            if not left:
                _check_lives(batch)
                return KeyedItems(self._keyed(batch, keys, rows, added, by))
            new = [KeyRow(one.key, batch.items + n, by, one.payload) for n, one in enumerate(left)]
            by_item, activity = by is not None, self._known.activity(batch)
            if self.ports.batches.allocate_keys(batch, new, activity=activity, by_item=by_item):
                added = {row.key for row in new}
                rows |= {row.key: row for row in new}
                continue
            batch = self._known.current(batch_id)
            rows |= self.ports.parts.keys(batch_id, [one.key for one in left])
            count = sum(one.key not in rows for one in left)
            if count and (pending := self._admit(batch, count, by_item=by_item)) is not None:
                self.ports.batches.rebound(batch_id, items=batch.items, pending=pending)
        raise _contended(batch_id)

    def _keyed(
        self, batch: Batch, keys: Sequence[ItemKey], rows: dict[str, KeyRow], added: set[str], by: int | None
    ) -> tuple[KeyedItem, ...]:
        """What the caller is told of each key; of several equal ones, the first is the one that was added."""
        there = [row for row in rows.values() if row.key not in added]
        done = done_among(self.ports, batch.batch_id, [row.ordinal for row in there])
        mine = [row.ordinal for row in there if by is not None and row.by == by and row.ordinal not in done]
        sent = {
            ordinal
            for start, stop in runs(sorted(mine))
            if self._sent(batch.batch_id, start, stop)
            for ordinal in range(start, stop)
        }
        answers: list[KeyedItem] = []
        told: set[str] = set()
        for one in keys:
            row, first = rows[one.key], one.key not in told
            new = first and one.key in added
            differs = bool(one.payload and row.payload and one.payload != row.payload)
            wanted = not differs if by is None else row.ordinal in mine and row.ordinal not in sent
            send = first and (new or (wanted and row.ordinal not in done))
            item, is_done = _item_of(batch, row.ordinal), row.ordinal in done or batch.all_done
            answers.append(KeyedItem(one.key, item, added=new, done=is_done, differs=differs, send=send))
            told.add(one.key)
        return tuple(answers)

    def find_key(self, batch_id: int, *, key_of_item: str) -> KeyedItem:
        """The item of a key."""
        batch, key = self._known.current(batch_id), checked_key(key_of_item)
        row = self.ports.parts.keys(batch_id, [key]).get(key)
        if row is None:
            raise errors.KeyNotFound(f"batch {batch_id} has no item with the key {limits.shown(key)}")
        done = batch.all_done or bool(done_among(self.ports, batch_id, [row.ordinal]))
        return KeyedItem(key, _item_of(batch, row.ordinal), done=done)

    def _add(self, batch_id: int, count: int) -> Group:
        batch = self._known.cached(batch_id)
        for _ in range(TRIES):
            row = self._allocate(batch_id, batch, count)
            if row is None:
                batch = self._known.current(batch_id)
                if (pending := self._admit(batch, count)) is not None:
                    items, activity = batch.items, self._known.activity(batch)
                    row = self.ports.batches.allocate_counted(
                        batch_id, count, items=items, pending=pending, activity=activity
                    )
            if row is not None:
                # A process that did not know the batch could not record the addition as activity.
                self._known.touch(self._known.unexpired(self._known.remember(row)))
                return _group(row, row.items - count, count)
        raise _contended(batch_id)

    def _allocate(self, batch_id: int, batch: Batch | None, count: int) -> Batch | None:
        """Add, unless the row is known to be full: that write would only fail."""
        allocate = self.ports.batches.allocate
        if batch is None:
            return allocate(batch_id, count, activity=None, room=None)
        if not _fits(batch, count):
            return None
        activity, room = self._known.activity(batch), None if batch.limit is None else batch.limit - count
        return allocate(batch_id, count, activity=activity, room=room, most=batch.max_items)

    def _add_once(self, batch: Batch, count: int, key: IdempotencyKey, *, by_item: bool = False) -> Group:
        for _ in range(TRIES):
            activity = self._known.activity(batch)
            first = self.ports.batches.allocate_once(batch, count, key, activity=activity, by_item=by_item)
            if first is not None:
                return replace(_group(batch, first, count), again=first < batch.items)
            batch = self._known.current(batch.batch_id)
            if (pending := self._admit(batch, count, by_item=by_item)) is not None:
                self.ports.batches.rebound(batch.batch_id, items=batch.items, pending=pending)
        raise _contended(batch.batch_id)

    def _admit(self, batch: Batch, count: int, *, by_item: bool = False) -> int | None:
        """Find out why an addition failed; in a batch that seems full, count the pending items.

        Returns:
            The count, if it leaves room; None if the row has room by now, and the addition can be retried.

        Raises:
            BatchClosed: the batch takes no more items.
            MaxItemsReached: they would be more than its ``max_items``.
            LimitReached: the batch is full, with its pending items counted at this moment.
            InvalidRequest: the batch can never take so many items.
        """
        if batch.state is not State.OPEN:
            raise errors.BatchClosed(
                f"batch {batch.batch_id} is {batch.state}: it takes no more items; open another"
            )
        if batch.draining and not by_item:
            raise errors.BatchClosed(
                f"batch {batch.batch_id} drains: it takes only items that its own pending items add, each by"
                " its item id (`message.add_items` in a handler); open another"
            )
        if batch.max_items is not None and batch.items > batch.max_items - count:
            raise errors.MaxItemsReached(
                f"batch {batch.batch_id} has {batch.items} items and takes {batch.max_items} in all, so"
                f" {count} more do not fit; nothing was added"
            )
        if batch.items > ids.MAX_ITEMS - count:
            raise errors.InvalidRequest(
                f"batch {batch.batch_id} has {batch.items} items, and can hold 2^40 in all; open another"
            )
        if batch.limit is None:
            return None
        if count > batch.limit:
            raise errors.InvalidRequest(
                f"{count} items never fit into {_name_of(batch)}, whose limit is {batch.limit};"
                " add fewer at a time"
            )
        if _fits(batch, count):
            return None
        # At most ``limit`` items are pending, so the walk reads at most that many words on each level.
        pending = Walk(self.ports, batch, budget=limits.MAX_LIMIT * 8).finish().pending
        if pending + count > batch.limit:
            raise errors.LimitReached(
                f"{_name_of(batch)} has {pending} items pending of at most {batch.limit};"
                " try again when some are done",
                retry_after=1,
            )
        return pending


def _check_lives(batch: Batch) -> None:
    """Check that items that were added before may still be sent.

    Raises:
        BatchClosed: their batch has ended without them.
    """
    if batch.state.terminal and not batch.all_done:
        raise errors.BatchClosed(
            f"batch {batch.batch_id} is {batch.state}: what was added to it before is dropped by consumers;"
            " open another"
        )


def _name_of(batch: Batch) -> str:
    """A batch as its producer knows it: of a buffer, that is the name, not the batch behind it."""
    if batch.kind is Kind.BUFFER:
        return f"buffer {batch.user_key}"
    return f"batch {batch.batch_id}"


def _fits(batch: Batch, count: int) -> bool:
    return batch.limit is None or batch.pending_bound <= batch.limit - count


def _group(batch: Batch, first: int, count: int) -> Group:
    return Group(batch.batch_id, ids.issue(batch.batch_id, first, count, batch.salt).group_id, count)


def _contended(batch_id: int) -> errors.Throttled:
    return errors.Throttled(
        f"too many producers add to batch {batch_id} at the same time; try again", retry_after=1
    )


def _item_of(batch: Batch, ordinal: int) -> str:
    """The id of an item in a group of its own, which is the same for whoever asks."""
    return f"{ids.issue(batch.batch_id, ordinal, 1, batch.salt).prefix}:0"
