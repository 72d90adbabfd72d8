"""The slots of a buffer, which are pending items of its batch: taking, reclaiming, and changing the batch.

And what became of work that was put in: finished work is told from work that nobody will ever do.

A producer that dies between taking a slot and sending the message leaks the slot, and so does a message that
the queue drops after its retention. Such a slot looks like waiting work until the retention has passed since
it was taken; after that, no message for it can exist. The buffer's record therefore holds marks: how many
items the batch had at certain times. A put that finds the buffer full, or draining, reclaims slots older than
that. So a message must follow its slot soon: for a slot that is too old, ``late``, none may be sent any more.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum, auto
from itertools import groupby

from fanin.app.buffers.records import BufferRecords, WorkEntry
from fanin.app.fresh import Fresh
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.domain import ids, limits
from fanin.domain.access import Principal
from fanin.domain.batch import Batch, Kind, OpenBatch
from fanin.domain.buffer import Buffer
from fanin.domain.marks import WEIGHT, GivenUp
from fanin.domain.reports import Missing
from fanin.errors import GONE, BatchClosed, LimitReached, Throttled

LIFETIME = limits.MAX_LIFETIME
RENEWAL = 30 * 86_400
"""How many seconds before the end of its batch's lifetime a buffer changes to a new batch."""
SEND_MS = 300_000
"""Milliseconds that a put may take from its slots to its messages; a slower one is not accepted."""
MARGIN_MS = 900_000
"""Added to the queue's retention before a slot counts as leaked: twice ``SEND_MS``, for a put that repeats
another with the same slots, and the rest for differing clocks."""
MARKS = 12
TRIES = 5


LOST = "its message is lost or expired"
"""Reason of items whose slots were reclaimed."""
REPLACED = "its work was put in again under its key"
"""Reason of items that a repeat of their put replaced by others."""


class WorkState(Enum):
    """What became of an item's work.

    Attributes:
        FINISHED: done, or given up by its consumer: it failed there, or its message died as a dead letter.
        PENDING: neither; there may be a message for it.
        DROPPED: given up by the service, or its batch ended without it. No message for it counts any more.
        UNKNOWN: its batch is gone.
    """

    FINISHED = auto()
    PENDING = auto()
    DROPPED = auto()
    UNKNOWN = auto()


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

    def states(self, items: Sequence[str]) -> dict[str, WorkState]:
        """The states of items, which may be of several batches."""
        states: dict[str, WorkState] = {}
        for prefix, group in groupby(items, key=lambda item: item.rpartition(":")[0]):
            states |= self._of_block(ids.parse_prefix(prefix), list(group))
        return states

    def _of_block(self, block: ids.Block, items: Sequence[str]) -> dict[str, WorkState]:
        try:
            batch = self._ledger.refresh([block.batch_id])[block.batch_id]
            pending = self._ledger.pending(block.batch_id, block.first, block.stop)
        except GONE:
            return dict.fromkeys(items, WorkState.UNKNOWN)
        ordinals = {item: ids.parse_item(item)[1] for item in items}
        # What the service gave up has a note that says so: it is written before the bit.
        failed = self._ledger.failed_among(block.batch_id, set(ordinals.values()) - pending)
        notes = self._ports.parts.notes(block.batch_id, failed) if failed else {}
        of_ordinal = dict.fromkeys(pending, WorkState.DROPPED if batch.state.terminal else WorkState.PENDING)
        of_ordinal |= {ordinal: WorkState.DROPPED for ordinal, note in notes.items() if note.given_up}
        return {item: of_ordinal.get(ordinal, WorkState.FINISHED) for item, ordinal in ordinals.items()}

    def admit(self, entry: WorkEntry, count: int) -> tuple[WorkEntry, ids.Group]:
        """Take slots; change the batch, or reclaim leaked slots, where that helps.

        Raises:
            LimitReached: the buffer is full.
        """
        for _ in range(TRIES):
            try:
                return entry, self.take(entry, entry.buffer.batch_id, count)
            except (BatchClosed, *GONE):
                entry = self.renew(entry)
        raise contended(entry.buffer.name)

    def take(
        self,
        entry: WorkEntry,
        batch_id: int,
        count: int,
        key: str | None = None,
        caller: Principal | None = None,
    ) -> ids.Group:
        """Take slots in one batch, or find those that the key has taken there; reclaim leaked ones.

        Args:
            entry: of the buffer.
            batch_id: the present batch of the buffer, or an earlier one, which gives out no more slots.
            count: how many.
            key: idempotency key of the slots, if they have one.
            caller: whose key it is; nobody else gets its slots, whatever their key is.

        Raises:
            LimitReached: the buffer is full.
            BatchClosed, BatchNotFound, BatchGone: the key has taken no slots there, and cannot any more.
        """
        if batch_id == entry.buffer.batch_id and self._ports.clock.now() >= entry.renew_at:
            self._close(batch_id)  # its lifetime is almost over, or its limit has changed: a new one follows
        try:
            return self._ledger.add(batch_id, count, key=key, caller=caller)
        except LimitReached:
            if not self._reclaim(entry):
                raise
        return self._ledger.add(batch_id, count, key=key, caller=caller)

    def late(self, entry: WorkEntry, group: ids.Group, batch: Batch | None = None) -> bool:
        """Whether slots are too old to send messages for: they would be reclaimed before their time.

        Args:
            entry: of the buffer.
            group: the slots.
            batch: their batch; None if it was open a moment ago.
        """
        until, first = self._ports.clock.now() - SEND_MS, ids.parse_prefix(group.prefix).first
        return any(at < until and first < items for at, items in _marks(entry, batch))

    def give_up(self, items: Sequence[str], reason: str) -> None:
        """Free slots that will never have a message; may be repeated."""
        with suppress(*GONE):  # it is gone, and its slots with it
            for some in limits.chunks(items, max_items=limits.MAX_MARKS // WEIGHT):
                self._ledger.mark([GivenUp(item, reason) for item in some]).whole()

    def mark(self, entry: WorkEntry, items: int) -> None:
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
        except GONE:
            return None, 0
        ended = progress.batch.state.terminal
        return progress.batch, 0 if ended else progress.batch.items - progress.done_min

    def follow(self, entry: WorkEntry) -> None:
        """Close the batch if its limit differs from the buffer's, so that a new one follows."""
        batch, _ = self.pending(entry.buffer)
        if batch is not None and batch.limit != entry.buffer.limit:
            self._close(batch.batch_id)

    def open(self, name: str, limit: int) -> Batch:
        """Open a batch for a buffer, with the longest lifetime and idle time there is."""
        asked = OpenBatch(user_key=name, kind=Kind.BUFFER, limit=limit, lifetime=LIFETIME, idle_ttl=LIFETIME)
        return self._ledger.open(asked)

    def install(self, entry: WorkEntry) -> WorkEntry | None:
        """Write a record that names a batch just opened; if another process was faster, end the batch.

        A record that names the batch, or was born with it, was written here, even if the write seems to have
        failed: others may have changed it since. If it names another, this one may go: it was never stored,
        or others have replaced it since, which happens only to a batch that has ended.

        Returns:
            The record as it is now; None if another process was faster.
        """
        now, _ = self._records.write(entry)
        if now is not None and entry.buffer.batch_id in {now.buffer.batch_id, now.born}:
            return now
        self.cancel(entry.buffer.batch_id)
        return None

    def cancel(self, batch_id: int) -> None:
        """End a batch, unless it has ended or is gone."""
        with suppress(*GONE):
            self._ledger.cancel(batch_id)

    def renew(self, seen: WorkEntry) -> WorkEntry:
        """Change to a new batch, once the old one has no pending items.

        Raises:
            LimitReached: it has some.
        """
        name = seen.buffer.name
        entry = self._records.refresh(name)
        if entry.buffer.batch_id != seen.buffer.batch_id:
            return entry
        batch, pending = self.pending(entry.buffer)
        if batch is not None and not batch.state.terminal and not pending:
            batch = self._ledger.verify(batch.batch_id).batch  # whoever did the last work died before the end
        if batch is not None and not batch.state.terminal:
            if self._reclaim(entry):
                return entry
            raise LimitReached(
                f"buffer {name} takes no work until the {pending} items in it are done", retry_after=1
            )
        new = self.open(name, entry.buffer.limit)
        buffer = replace(entry.buffer, batch_id=new.batch_id)
        renewed = self.install(entry._replace(buffer=buffer, renew_at=renew_at(new), marks=()))
        return self._records.refresh(name) if renewed is None or renewed.going else renewed

    def _reclaim(self, entry: WorkEntry) -> bool:
        """Free slots that were taken so long ago that no message for them can exist.

        A buffer that takes no work gets no mark from a put, so it is marked here.

        Returns:
            Whether any slot was freed.
        """
        name = entry.buffer.name
        if self._just_reclaimed.get(name):
            return False
        self._just_reclaimed.remember(name, value=True)
        retention = self._ports.queues.state(entry.buffer.queue).retention
        horizon = self._ports.clock.now() - MARGIN_MS - retention * 1000
        entry = self._records.refresh(name)
        batch = self._ledger.refresh([entry.buffer.batch_id])[entry.buffer.batch_id]
        old = max((items for at, items in _marks(entry, batch) if at <= horizon), default=0)
        page = self._ledger.missing(batch.batch_id, limit=1) if old else Missing(())
        if page.ranges and page.ranges[0].start < old:
            lost = sorted(self._ledger.pending(batch.batch_id, page.ranges[0].start, old))
            blocks = (ids.issue(batch.batch_id, ordinal, 1, batch.salt) for ordinal in lost)
            self.give_up([f"{block.prefix}:0" for block in blocks], LOST)
            return bool(lost)
        self.mark(entry, batch.items)
        return False

    def _close(self, batch_id: int) -> None:
        with suppress(*GONE):
            self._ledger.close(batch_id)


def renew_at(batch: Batch) -> int:
    """When the buffer of this batch changes to a new batch, ms."""
    return batch.created_at + (LIFETIME - RENEWAL) * 1000


def _marks(entry: WorkEntry, batch: Batch | None) -> tuple[tuple[int, int], ...]:
    """The marks of a buffer; the close of its batch is one, since no item was added after it."""
    if batch is None or batch.closed_at is None:
        return entry.marks
    return (*entry.marks, (batch.closed_at, batch.items))


def contended(name: str) -> Throttled:
    return Throttled(f"other calls are changing buffer {name}; try again", retry_after=1)
