"""Adding items: one conditional write for any number of items."""

from __future__ import annotations

from fanin.app.ledger.known_batches import KnownBatches
from fanin.app.ledger.reading import Reading
from fanin.app.ports import Ports
from fanin.domain import ids, limits
from fanin.domain.access import IdempotencyKey, Principal
from fanin.domain.batch import Batch, Kind, State
from fanin.domain.ids import Group
from fanin.errors import BatchClosed, InvalidRequest, LimitReached, Throttled

TRIES = 20
"""Attempts against other producers of the same batch, before the caller is asked to try again."""


class Adding:
    """The producing side of the ledger.

    Args:
        ports: the stores.
        known: batch rows that this process remembers.
        reading: counts the pending items of a bounded batch.
    """

    def __init__(self, ports: Ports, known: KnownBatches, reading: Reading) -> None:
        self._ports = ports
        self._known = known
        self._reading = reading

    def add(self, batch_id: int, count: int, *, key: str | None, caller: Principal | None = None) -> Group:
        limits.whole("batch_id", batch_id, 0, ids.MAX_BATCH_ID)
        limits.whole("count", count, 1, ids.MAX_COUNT)
        if key is None:
            return self._add(batch_id, count)
        return self._add_once(batch_id, count, IdempotencyKey.of(key, caller))

    def _add(self, batch_id: int, count: int) -> Group:
        batch = self._known.cached(batch_id)
        for _ in range(TRIES):
            row = self._allocate(batch_id, batch, count)
            if row is None:
                batch = self._known.current(batch_id)
                row = self._allocate_counted(batch, count)
            if row is not None:
                # A process that did not know the batch could not record the addition as activity.
                self._known.touch(self._known.unexpired(self._known.remember(row)))
                return _group(row, row.items - count, count)
        raise _contended(batch_id)

    def _allocate(self, batch_id: int, batch: Batch | None, count: int) -> Batch | None:
        """Add, unless the row is known to be full: that write would only fail."""
        if batch and not _fits(batch, count):
            return None
        activity = self._known.activity(batch) if batch else None
        return self._ports.batches.allocate(batch_id, count, activity=activity, room=_room(batch, count))

    def _allocate_counted(self, batch: Batch, count: int) -> Batch | None:
        """Add where counting the pending items shows that there is room after all; see ``_admit``."""
        pending = self._admit(batch, count)
        if pending is None:
            return None
        return self._ports.batches.allocate_counted(
            batch.batch_id, count, items=batch.items, pending=pending, activity=self._known.activity(batch)
        )

    def _add_once(self, batch_id: int, count: int, key: IdempotencyKey) -> Group:
        for _ in range(TRIES):
            batch = self._known.current(batch_id)
            first = self._ports.batches.allocate_once(batch, count, key, activity=self._known.activity(batch))
            if first is not None:
                return _group(batch, first, count)
            batch = self._known.current(batch_id)
            pending = self._admit(batch, count)
            if pending is not None:
                self._ports.batches.rebound(batch_id, items=batch.items, pending=pending)
        raise _contended(batch_id)

    def _admit(self, batch: Batch, count: int) -> int | None:
        """Find out why an addition failed; in a batch that seems full, count the pending items.

        Returns:
            The count, if it leaves room; None if the row has room by now, and the addition can be retried.

        Raises:
            BatchClosed: the batch takes no more items.
            LimitReached: the batch is full, with its pending items counted at this moment.
            InvalidRequest: the batch can never take so many items.
        """
        if batch.state is not State.OPEN:
            raise BatchClosed(
                f"batch {batch.batch_id} is {batch.state}: it takes no more items; open another"
            )
        if batch.items > ids.MAX_ITEMS - count:
            raise InvalidRequest(
                f"batch {batch.batch_id} has {batch.items} items, and can hold 2^40 in all; open another"
            )
        if batch.limit is None:
            return None
        if count > batch.limit:
            raise InvalidRequest(
                f"{count} items never fit into {_name_of(batch)}, whose limit is {batch.limit};"
                " add fewer at a time"
            )
        if _fits(batch, count):
            return None
        # At most ``limit`` items are pending, so the walk reads at most that many words on each level.
        pending = self._reading.pending(batch, budget=limits.MAX_LIMIT * 8) or 0
        if pending + count > batch.limit:
            raise LimitReached(
                f"{_name_of(batch)} has {pending} items pending of at most {batch.limit};"
                " try again when some are done",
                retry_after=1,
            )
        return pending


def _name_of(batch: Batch) -> str:
    """A batch as its producer knows it: of a buffer, that is the name, not the batch behind it."""
    if batch.kind is Kind.BUFFER:
        return f"buffer {batch.user_key}"
    return f"batch {batch.batch_id}"


def _fits(batch: Batch, count: int) -> bool:
    return batch.limit is None or batch.pending_bound <= batch.limit - count


def _room(batch: Batch | None, count: int) -> int | None:
    return None if batch is None or batch.limit is None else batch.limit - count


def _group(batch: Batch, first: int, count: int) -> Group:
    return Group(batch.batch_id, ids.issue(batch.batch_id, first, count, batch.salt).group_id, count)


def _contended(batch_id: int) -> Throttled:
    return Throttled(f"too many producers add to batch {batch_id} at the same time; try again", retry_after=1)
