"""What this process has seen of batches, so that a warm acknowledgement reads nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import Lock

from fanin.app.ports.batches import Activity, BatchStore
from fanin.app.ports.system import Clock
from fanin.domain.batch import LIVE, Batch, touched
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
        self._lock = Lock()

    def saw(self, batch: Batch) -> Batch:
        """Remember a row that a store just gave.

        Returns:
            The row, or a later one if that is known: answers to threads may overtake each other.
        """
        with self._lock:
            seen = self._rows.pop(batch.batch_id, None)
            if seen and _progress(seen[1]) > _progress(batch):
                batch = seen[1]
            while len(self._rows) >= self._capacity:
                del self._rows[next(iter(self._rows))]
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
                rows[batch_id] = self.present(seen[1])
        if unknown := [batch_id for batch_id in batch_ids if batch_id not in rows]:
            rows |= self.look(unknown)
        return rows

    def reaching(self, stops: Mapping[int, int]) -> dict[int, Batch]:
        """Rows as ``get`` gives them, but those as they are now that do not reach so far yet.

        Args:
            stops: batch id → one past the highest ordinal that is named; a row that was seen before its items
                were added has fewer.
        """
        rows = self.get(stops)
        if short := [batch_id for batch_id, stop in stops.items() if stop > rows[batch_id].items]:
            rows |= self.look(short)
        return rows

    def look(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        """Rows as they are now, strongly consistent.

        Raises:
            BatchNotFound: there is no such batch.
            BatchGone: it is past its lifetime.
        """
        rows = self._batches.read(batch_ids)
        for batch_id in batch_ids:
            if batch_id not in rows:
                raise BatchNotFound(f"there is no batch {batch_id}; open one first, or check the id")
            rows[batch_id] = self.present(self.saw(rows[batch_id]))
        return rows

    def one(self, batch_id: int) -> Batch:
        """One row, as it is now; raises like ``look``."""
        return self.look([batch_id])[batch_id]

    def present(self, batch: Batch) -> Batch:
        """The row itself, if it is not past its lifetime.

        Raises:
            BatchGone: it is.
        """
        if batch.gone(self._clock.now()):
            raise BatchGone(f"batch {batch.batch_id} is past its lifetime and has been given up")
        return batch

    def activity(self, batch: Batch) -> Activity:
        """What activity now makes of the row's index key."""
        now = self._clock.now()
        at = max(batch.touched_at, touched(now, batch.idle_ttl))
        return Activity(at, batch.active(at).look_at(now))

    def touch(self, batch: Batch) -> None:
        """Record activity, if the batch is live, at most once in each tenth of its idle time."""
        at = touched(self._clock.now(), batch.idle_ttl)
        if at > batch.touched_at and not batch.state.terminal:
            self._batches.touch(batch.batch_id, self.activity(batch))
            self.saw(batch.active(at))


def _progress(batch: Batch) -> tuple[int, int, int]:
    """Grows with every write that matters to settling, so of two rows it tells the later."""
    phase = 2 if batch.state.terminal else LIVE.index(batch.state)
    return phase, batch.items, batch.acked
