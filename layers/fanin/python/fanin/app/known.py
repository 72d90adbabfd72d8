"""What this process has seen of batches, so that a warm acknowledgement reads nothing."""

from __future__ import annotations

from collections.abc import Collection

from fanin.app.ports import Activity, BatchStore, Clock
from fanin.domain.batch import Batch, touched
from fanin.errors import BatchGone, BatchNotFound


class KnownBatches:
    """A small cache of batch rows.

    Most of a row never changes (salt, mode, limits), ``items`` only grows, and a state only moves forward.
    So an old row is safe to work with as long as whoever depends on the batch *not* having closed takes a
    ``look`` first. Rows of live batches are read again after ``fresh_ms``, so that a process notices
    batches that ended by themselves.

    Args:
        batches: where rows are read.
        clock: tells the age of what was seen.
        fresh_ms: how long a live row is taken from the cache.
        capacity: rows kept; the oldest goes first.
    """

    def __init__(
        self, batches: BatchStore, clock: Clock, *, fresh_ms: int = 30_000, capacity: int = 10_000
    ) -> None:
        self._batches = batches
        self._clock = clock
        self._fresh_ms = fresh_ms
        self._capacity = capacity
        self._rows: dict[int, tuple[int, Batch]] = {}

    def saw(self, batch: Batch) -> Batch:
        """Remember a row that a store just gave."""
        self._rows.pop(batch.batch_id, None)
        while len(self._rows) >= self._capacity:
            self._rows.pop(next(iter(self._rows)), None)
        self._rows[batch.batch_id] = self._clock.now(), batch
        return batch

    def peek(self, batch_id: int) -> Batch | None:
        """The row as last seen, however long ago."""
        seen = self._rows.get(batch_id)
        return seen[1] if seen else None

    def get(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        """Rows from the cache where they are fresh, read otherwise.

        Raises:
            BatchNotFound: there is no such batch.
            BatchGone: it is past its lifetime.
        """
        now = self._clock.now()
        rows: dict[int, Batch] = {}
        for batch_id in batch_ids:
            seen = self._rows.get(batch_id)
            if seen and (seen[1].state.terminal or now - seen[0] < self._fresh_ms):
                rows[batch_id] = self._present(seen[1], now)
        if unknown := [batch_id for batch_id in batch_ids if batch_id not in rows]:
            rows |= self.look(unknown)
        return rows

    def look(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        """Rows as they are now, strongly consistent.

        Raises:
            BatchNotFound: there is no such batch.
            BatchGone: it is past its lifetime.
        """
        now = self._clock.now()
        rows = self._batches.read(batch_ids)
        for batch_id in batch_ids:
            if batch_id not in rows:
                raise BatchNotFound(f"there is no batch {batch_id}; open one first, or check the id")
            self._present(self.saw(rows[batch_id]), now)
        return rows

    def one(self, batch_id: int) -> Batch:
        """One row, as it is now; raises like ``look``."""
        return self.look([batch_id])[batch_id]

    def activity(self, batch: Batch) -> Activity:
        """What activity now makes of the row's index key."""
        at = max(batch.touched_at, touched(self._clock.now(), batch.idle_ttl))
        return Activity(at, batch.active(at).due_at)

    def touch(self, batch: Batch) -> None:
        """Record activity on a live batch, at most once in each tenth of its idle time."""
        at = touched(self._clock.now(), batch.idle_ttl)
        if at > batch.touched_at:
            self._batches.touch(batch.batch_id, self.activity(batch))
            self.saw(batch.active(at))

    @staticmethod
    def _present(batch: Batch, now: int) -> Batch:
        if batch.gone(now):
            raise BatchGone(f"batch {batch.batch_id} is past its lifetime and has been given up")
        return batch
