"""The slots of a buffer, which are pending items of its batch: taking, reclaiming, and changing the batch.

A producer that dies between taking a slot and sending the message leaks the slot, and so does a message that
the queue drops after its retention. Such a slot looks like waiting work until the retention has passed since
it was taken; after that, no message for it can exist. The buffer's record therefore holds marks: how many
items the batch had at certain times. A put that finds the buffer full reclaims slots older than that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fanin.app.buffers.records import BufferRecords, Entry
from fanin.app.fresh import Fresh
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.domain import ids, limits
from fanin.domain.acks import Failure
from fanin.domain.batch import Batch, Kind, OpenBatch
from fanin.domain.buffer import Buffer
from fanin.errors import BatchClosed, BatchGone, BatchNotFound, LimitReached, Throttled

LIFETIME: Final = limits.MAX_LIFETIME
RENEWAL: Final = 30 * 86_400
"""How many seconds before the end of its batch's lifetime a buffer changes to a new batch."""
MARGIN_MS: Final = 900_000
"""Added to the queue's retention, for slow puts and differing clocks, before a slot counts as leaked."""
MARKS: Final = 12
TRIES: Final = 5


class Slots:
    """Takes and reclaims the slots of buffers.

    Args:
        ports: the queues and the clock.
        ledger: keeps the batches.
        records: the buffers' records.
    """

    def __init__(self, ports: Ports, ledger: LedgerService, records: BufferRecords) -> None:
        self._ports = ports
        self._ledger = ledger
        self._records = records
        self._just_reclaimed: Fresh[str, bool] = Fresh(ports.clock)

    def admit(self, entry: Entry, count: int, key: str | None) -> tuple[Entry, ids.Group]:
        """Take slots; change the batch, or reclaim leaked slots, where that helps.

        Raises:
            LimitReached: the buffer is full.
        """
        if self._ports.clock.now() >= entry.renew_at:
            self._close(entry.buffer.batch_id)
        for attempt in range(TRIES):
            try:
                return entry, self._ledger.add(entry.buffer.batch_id, count, key=key)
            except (BatchClosed, BatchNotFound, BatchGone):
                entry = self._renew(entry)
            except LimitReached:
                if attempt or not self._reclaim(entry):
                    raise
        raise contended(entry.buffer.name)

    def mark(self, entry: Entry, items: int) -> None:
        """Record how many items there are now, several times in each retention."""
        now = self._ports.clock.now()
        if entry.marks and now - entry.marks[-1][0] < max(60, entry.retention // (MARKS - 2)) * 1000:
            return
        marks = (*entry.marks, (now, max(items, *(mark[1] for mark in entry.marks), 0)))
        self._records.write(entry._replace(marks=marks[-MARKS:]))

    def pending(self, buffer: Buffer) -> tuple[Batch | None, int]:
        """A buffer's batch, None if it is gone, and how many of its items are pending."""
        try:
            progress = self._ledger.status(buffer.batch_id, exact=True)
        except (BatchNotFound, BatchGone):
            return None, 0
        ended = progress.batch.state.terminal
        return progress.batch, 0 if ended else progress.batch.items - progress.done_min

    def follow(self, entry: Entry) -> None:
        """Close the batch if its limit differs from the buffer's, so that a new one follows."""
        batch, _ = self.pending(entry.buffer)
        if batch is not None and batch.limit != entry.buffer.limit:
            self._close(batch.batch_id)

    def open(self, name: str, limit: int) -> Batch:
        """Open a batch for a buffer, with the longest lifetime and idle time there is."""
        request = OpenBatch(
            user_key=name, kind=Kind.BUFFER, limit=limit, lifetime=LIFETIME, idle_ttl=LIFETIME
        )
        return self._ledger.open(request)

    def cancel(self, batch_id: int) -> None:
        """End a batch, unless it has ended or is gone."""
        try:
            self._ledger.cancel(batch_id)
        except (BatchNotFound, BatchGone):
            return  # it is gone, so nothing is left to end

    def _renew(self, seen: Entry) -> Entry:
        """Change to a new batch, once the old one has no pending items.

        Raises:
            LimitReached: it has some.
        """
        name = seen.buffer.name
        entry = self._records.refresh(name)
        if entry.buffer.batch_id != seen.buffer.batch_id:
            return entry
        batch, pending = self.pending(entry.buffer)
        if batch is not None and not batch.state.terminal:
            raise LimitReached(
                f"buffer {name} takes no work until the {pending} items in it are done", retry_after=1
            )
        new = self.open(name, entry.buffer.limit)
        renewed = self._records.write(
            entry._replace(
                buffer=replace(entry.buffer, batch_id=new.batch_id), renew_at=renew_at(new), marks=()
            )
        )
        if renewed is None:  # another process was faster
            self.cancel(new.batch_id)
            return self._records.refresh(name)
        return renewed

    def _reclaim(self, entry: Entry) -> bool:
        """Free slots that were taken so long ago that no message for them can exist.

        Returns:
            Whether any slot was freed.
        """
        name, now = entry.buffer.name, self._ports.clock.now()
        if self._just_reclaimed.get(name):
            return False
        self._just_reclaimed.remember(name, value=True)
        horizon = now - MARGIN_MS - self._ports.queues.state(entry.buffer.queue).retention * 1000
        old = [items for at, items in self._records.refresh(name).marks if at <= horizon]
        if not old:
            return False
        page = self._ledger.missing(entry.buffer.batch_id, limit=1)
        if not page.ranges or page.ranges[0].start >= old[-1]:
            return False
        lost = sorted(self._ledger.pending(entry.buffer.batch_id, page.ranges[0].start, old[-1]))
        batch = self._ledger.status(entry.buffer.batch_id).batch
        blocks = (ids.issue(batch.batch_id, ordinal, 1, batch.salt) for ordinal in lost)
        failures = [Failure(f"{block.prefix}:0", "its message is lost or expired") for block in blocks]
        for first in range(0, len(failures), limits.MAX_FAILURES):
            self._ledger.fail(failures[first : first + limits.MAX_FAILURES])
        return bool(failures)

    def _close(self, batch_id: int) -> None:
        try:
            self._ledger.close(batch_id)
        except (BatchNotFound, BatchGone):
            return  # it is gone, so nothing is left to close


def renew_at(batch: Batch) -> int:
    """When the buffer of this batch changes to a new batch, ms."""
    return batch.created_at + (LIFETIME - RENEWAL) * 1000


def contended(name: str) -> Throttled:
    return Throttled(f"other calls are changing buffer {name}; try again", retry_after=1)
