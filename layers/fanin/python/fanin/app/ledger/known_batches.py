"""Batch rows that this process remembers, so that a warm acknowledgement reads nothing.

Ids are compared with these rows: one that this service did not issue is refused before anything is written.
"""

from collections.abc import Collection, Mapping
from threading import Lock
from typing import TypeVar

from fanin.app.fresh import FRESH_MS
from fanin.app.ports.batches import Activity, BatchStore
from fanin.app.ports.system import Clock
from fanin.domain.batch import LIVE, Batch
from fanin.domain.ids import Block
from fanin.domain.latest import Latest
from fanin.errors import BatchGone, BatchNotFound, FaninError, InvalidItemId, ServiceUnavailable, Throttled

K = TypeVar("K")
V = TypeVar("V")


class KnownBatches:
    """A small cache of batch rows.

    Most of a row never changes (salt, mode, limits), ``items`` only grows, and a state only moves forward.
    So an old row is safe to work with, as long as code that depends on the batch *not* having closed calls
    ``refresh`` first. Rows of live batches are read again after ``FRESH_MS``, so that a process notices
    batches that ended by themselves.

    Args:
        batches: where rows are read.
        clock: tells the age of a remembered row.
        capacity: rows kept; the oldest is dropped first.
    """

    def __init__(self, batches: BatchStore, clock: Clock, *, capacity: int = 10_000) -> None:
        self._batches = batches
        self._clock = clock
        self._rows = Latest[int, tuple[int, Batch]](capacity)
        self._lock = Lock()

    def remember(self, batch: Batch) -> Batch:
        """Remember a row that a store just returned.

        Returns:
            The row, or a later one if this process knows it: answers to threads may overtake each other.
        """
        with self._lock:
            known = self._rows.get(batch.batch_id)
            if known and _progress(known[1]) > _progress(batch):
                batch = known[1]
            self._rows[batch.batch_id] = self._clock.now(), batch
        return batch

    def cached(self, batch_id: int) -> Batch | None:
        """The row as last remembered, however long ago; None if this process does not know it."""
        known = self._rows.get(batch_id)
        return known[1] if known else None

    def row(self, batch_id: int) -> Batch:
        """The row as last remembered, however long ago; read again if it gave way to those of other batches.

        Raises:
            BatchNotFound, BatchGone: as ``current`` does.
        """
        known = self._rows.get(batch_id)
        return known[1] if known else self.current(batch_id)

    def fresh(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        """Rows from the cache where they are fresh enough, read from the store otherwise.

        Raises:
            BatchNotFound: there is no such batch.
            BatchGone: it is past its lifetime.
        """
        return all_of(self._fresh(batch_ids))

    def reaching(self, stops: Mapping[int, int]) -> dict[int, Batch]:
        """Like ``fresh``, but re-reads batches that have fewer items than the request names.

        A row that was remembered before items were added does not count them yet.

        Args:
            stops: batch id → one past the highest ordinal that the request names.
        """
        return all_of(self.try_reaching(stops))

    def try_reaching(
        self, stops: Mapping[int, int], *, anew: Collection[int] = ()
    ) -> dict[int, Batch | FaninError]:
        """Like ``reaching``, but a batch that cannot be read has an error in its place.

        Args:
            stops: as in ``reaching``.
            anew: batches that are read again, however fresh their rows are.
        """
        rows = self._fresh([batch_id for batch_id in stops if batch_id not in anew])
        short = [n for n, row in rows.items() if isinstance(row, Batch) and stops[n] > row.items]
        return rows | self._look_up([*anew, *short]) if anew or short else rows

    def refresh(self, batch_ids: Collection[int]) -> dict[int, Batch]:
        """Rows as they are now, read strongly consistent and remembered.

        Raises:
            BatchNotFound: there is no such batch.
            BatchGone: it is past its lifetime.
        """
        return all_of(self._look_up(batch_ids))

    def _fresh(self, batch_ids: Collection[int]) -> dict[int, Batch | FaninError]:
        now = self._clock.now()
        rows: dict[int, Batch | FaninError] = {}
        for batch_id in batch_ids:
            known = self._rows.get(batch_id)
            if known and (known[1].state.terminal or now - known[0] < FRESH_MS):
                rows[batch_id] = _unexpired(known[1], now)
        if unknown := [batch_id for batch_id in batch_ids if batch_id not in rows]:
            rows |= self._look_up(unknown)
        return rows

    def _look_up(self, batch_ids: Collection[int]) -> dict[int, Batch | FaninError]:
        try:
            found = self._batches.read(batch_ids)
        except (Throttled, ServiceUnavailable) as error:
            return dict.fromkeys(batch_ids, error)
        rows: dict[int, Batch | FaninError] = {}
        now = self._clock.now()
        for batch_id in batch_ids:
            row = found.get(batch_id)
            rows[batch_id] = not_found(batch_id) if row is None else _unexpired(self.remember(row), now)
        return rows

    def current(self, batch_id: int) -> Batch:
        """One row, as it is now; raises like ``refresh``."""
        return self.refresh([batch_id])[batch_id]

    def unexpired(self, batch: Batch) -> Batch:
        """Return the row, unless it is past its lifetime.

        Raises:
            BatchGone: it is past its lifetime.
        """
        return all_of({batch.batch_id: _unexpired(batch, self._clock.now())})[batch.batch_id]

    def activity(self, batch: Batch) -> Activity:
        """The index key of the row after activity now."""
        return Activity.of(batch, self._clock.now())

    def touch(self, batch: Batch) -> None:
        """Record activity, if the batch is live, at most once in each of its steps."""
        at = batch.rounded(self._clock.now())
        if at > batch.touched_at and not batch.state.terminal:
            self._batches.touch(batch.batch_id, self.activity(batch))
            self.remember(batch.active(at))


class PinnedBatch(KnownBatches):
    """One batch as its row was, to tell of that: it can be read even if it was removed since."""

    def __init__(self, batches: BatchStore, clock: Clock, batch: Batch) -> None:
        super().__init__(batches, clock)
        self._batch = batch

    def _look_up(self, batch_ids: Collection[int]) -> dict[int, Batch | FaninError]:
        pinned = {self._batch.batch_id: self._batch}
        return pinned | super()._look_up([batch_id for batch_id in batch_ids if batch_id not in pinned])


def all_of(outcomes: Mapping[K, V | FaninError]) -> dict[K, V]:
    """The outcomes, if none is an error; raises the first error."""
    found: dict[K, V] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, FaninError):
            raise outcome
        found[key] = outcome
    return found


def _unexpired(batch: Batch, now: int) -> Batch | BatchGone:
    """The row, unless it is past its lifetime."""
    if batch.gone(now):
        return BatchGone(f"batch {batch.batch_id} was removed or is past its lifetime")
    return batch


def _progress(batch: Batch) -> tuple[int, bool, int, int]:
    """Grows with every write that matters to settling: the greater of two is the later row."""
    phase = 2 if batch.state.terminal else LIVE.index(batch.state)
    return phase, batch.draining, batch.items, batch.acked


def not_found(batch_id: object) -> BatchNotFound:
    """The error of a batch that is not there."""
    return BatchNotFound(f"there is no batch {batch_id!r}; open one first, or check the id, a whole number")


def check_issued(block: Block, batch: Batch) -> None:
    """Compare a block with its batch.

    Args:
        block: as parsed from an id.
        batch: its batch; the row must be recent enough to count the items of the block.

    Raises:
        InvalidItemId: the check does not match the batch's salt, or the block ends past the batch's last
            item, where no bit may be written.
    """
    if not block.genuine(batch.salt) or block.stop > batch.items:
        raise InvalidItemId(
            f"group {block.prefix} was not issued by this service; send item ids exactly as you got them"
        )
