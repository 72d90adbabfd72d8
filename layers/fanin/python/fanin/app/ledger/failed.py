"""Which items of a batch have failed, and which of them are held.

How many have failed is known by the tallies that the tree carries up. Where these may miss some, the notes of
failures are counted. A tally is exact unless a range was marked high in the tree; and it reaches the words
that a reader visits only when the words below are finished.

Held items have failed, and stay pending, because their batch was opened with ``on_failure="hold"``. Nothing
is stored for them but the note of the failure. An item is held as long as its bit is pending and its latest
failure is not taken. So an acknowledgement needs no step of its own to end the hold.

Failures are taken by redrives, those of ended batches, too. The mark of a redrive names the item under which
the message is sent, and counts for as long as that item may still be done, or is done. A failure is free
again when the batch of that item has ended without it, or when the redrive died before it sent the message.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from fanin.app.ledger.known_batches import all_of
from fanin.app.ledger.walk import with_totals
from fanin.app.ports import Ports
from fanin.app.ports.parts import FailureRow, Redriven
from fanin.app.ports.words import Clear, Tallied, Tally, WordKey
from fanin.domain import ids
from fanin.domain.batch import Batch, Mode, State

READS: Final = 67
"""How many rows are read at most to count the held items of a batch, unless the caller says otherwise."""
_LISTED: Final = 10
"""How many batches of a page are looked at for held items, a few notes each."""
_LISTED_READS: Final = 20
READS_OF_LIST: Final = _LISTED * _LISTED_READS
"""How many rows are read at most to count the held items of the batches of a page."""
_PAGE: Final = 1_000
MOST_COUNTED: Final = 10_000
"""Notes of failures that are read at most when a batch completes."""


class Failed:
    """Counts failed items."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def counted(self, batch: Batch, tally: Tally, *, budget: int) -> Batch:
        """The row with the number of its failed items.

        Args:
            batch: the row.
            tally: of the words that were visited; whole if no failure can lie below any other word.
            budget: how many rows may be read, at least 1.

        Returns:
            The row; ``failed_more`` if some failures may not be counted.
        """
        if not batch.failed_more:
            return batch
        if tally.whole:
            return replace(batch, failed=tally.failed, failed_more=False)
        notes, cursor = self._ports.parts.failures(batch.batch_id, limit=max(1, min(budget // 2, 1_000)))
        affordable = 2 * len(notes) <= budget  # each note may take the read of a word
        found = len(self.confirmed(batch, notes)) if affordable else 0
        if cursor is None and affordable:
            return replace(batch, failed=found, failed_more=False)
        return replace(batch, failed=max(found, tally.failed, batch.failed))

    def at_the_end(self, batch: Batch, tally: Tally) -> tuple[int, bool]:
        """Count the failed items of a batch of which every item is marked, before it is written as complete.

        A range passes over what has failed below it. It may also pass a failure that is being written: its
        note is there, and nothing above its item was clear when it looked. So the bits of items with notes
        are cleared here: whichever mark was first at the item's own word decides, and none comes later.

        Args:
            batch: the row.
            tally: of the root.

        Returns:
            How many items failed, and whether there may be more: of many notes, so many are read.
        """
        failed, cursor, left = 0, None, MOST_COUNTED
        while left:
            notes, cursor = self._ports.parts.failures(batch.batch_id, cursor=cursor, limit=min(1_000, left))
            left -= len(notes)
            self._mark_done(batch, notes)
            failed += len(self.confirmed(batch, notes))
            if cursor is None:
                return failed, False
        return max(failed, tally.failed), True

    def _mark_done(self, batch: Batch, notes: Sequence[FailureRow]) -> None:
        """Clear those bits on level 0 that are pending because a range was marked above them."""
        leaves = self._ports.tree.masks(note.ordinal for note in notes)
        masks = {WordKey(batch.batch_id, 0, number): mask for number, mask in leaves.items()}
        words = self._ports.words.read(masks)
        pending = {key: mask & words.get(key, self._ports.tree.full) for key, mask in masks.items()}
        clears = [Clear(key, mask, batch.expires_at) for key, mask in pending.items() if mask]
        all_of(dict(enumerate(self._ports.words.clear(clears))))

    def confirmed(self, batch: Batch, notes: Sequence[FailureRow]) -> Sequence[FailureRow]:
        """Those notes whose item has failed: a note is written first, and then another mark may have won."""
        if batch.mode is Mode.ESTIMATED:
            return notes
        failed = self.among(batch.batch_id, [note.ordinal for note in notes])
        return [note for note in notes if note.ordinal in failed]

    def among(self, batch_id: int, ordinals: Iterable[int]) -> set[int]:
        """Those ordinals of an exact batch whose bit was cleared as failed; reads their words."""
        tree = self._ports.tree
        leaves = {n: WordKey(batch_id, 0, n // tree.width) for n in ordinals}
        masks = self._ports.words.read_failed(sorted(set(leaves.values())))
        return {n for n, key in leaves.items() if masks.get(key, 0) & tree.bits[n % tree.width]}

    def listed(self, batches: Sequence[Batch]) -> tuple[Batch, ...]:
        """Rows with what the roots of their trees know, which is one read for each live batch."""
        tree = self._ports.tree
        roots = {
            batch.batch_id: WordKey(batch.batch_id, tree.root_level(batch.items), 0)
            for batch in batches
            if batch.mode is Mode.EXACT and (batch.failed_more or (batch.totals and not batch.totals_exact))
        }
        words = self._ports.words.read_tallied(roots.values())

        def seen(batch: Batch) -> Batch:
            root = roots.get(batch.batch_id)
            if root is None:
                return batch
            tally = words.get(root, Tallied(tree.full, Tally())).tally.for_totals(len(batch.totals))
            whole = tally.whole and root.level == 0
            batch = with_totals(batch, tally, all_read=root.level == 0)
            return replace(batch, failed=tally.failed, failed_more=not whole) if batch.failed_more else batch

        return tuple(map(seen, batches))


def done_among(ports: Ports, batch_id: int, ordinals: Iterable[int]) -> set[int]:
    """Those items whose own bit is clear; reads their words."""
    tree = ports.tree
    leaves = {n: WordKey(batch_id, 0, n // tree.width) for n in ordinals}
    words = ports.words.read(set(leaves.values()))
    return {n for n, key in leaves.items() if not words.get(key, tree.full) & tree.bits[n % tree.width]}


class Takings(NamedTuple):
    """Which failures may be taken.

    Attributes:
        free: notes of those that no redrive has.
        marks: by ordinal, of those that one has, or had.
        reads: how many rows were read, if the batch is live.
    """

    free: list[FailureRow]
    marks: Mapping[int, Redriven]
    reads: int


class Held:
    """Finds held items. For a batch that holds none, it reads nothing."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    def counted(self, batch: Batch, *, budget: int = READS) -> Batch:
        """The row with the number of its held items; see ``count``."""
        return self.count(batch, budget=budget)[0]

    def count(self, batch: Batch, *, budget: int) -> tuple[Batch, int]:
        """Count the held items of a batch.

        Args:
            batch: the row, as it is now.
            budget: how many rows may be read.

        Returns:
            The row, with ``held_more`` if the budget ended the count; and how many rows were read.
        """
        if not batch.held_more:
            return batch, 0
        if batch.all_done or not batch.items:
            return replace(batch, held=0, held_more=False), 0
        each = self.most_reads(batch)
        held, reads, cursor = 0, 0, None
        while budget - reads >= each:
            limit = min(_PAGE, (budget - reads) // each)
            notes, cursor = self._ports.parts.failures(batch.batch_id, cursor=cursor, limit=limit)
            ordinals, takings = [note.ordinal for note in notes], self.among(batch, notes)
            held += len(takings.free)
            reads += max(1, len(notes)) + self.reads(batch, ordinals) - len(notes) + takings.reads
            if cursor is None:
                return replace(batch, held=held, held_more=False), reads
        return replace(batch, held=held), reads

    def most_reads(self, batch: Batch) -> int:
        """Rows that it takes at most to see whether an item is held.

        A note, the mark of a redrive and its record, and the words from the item up to the root.
        """
        return 4 + self._ports.tree.root_level(batch.items)

    def reads(self, batch: Batch, ordinals: Collection[int]) -> int:
        """The same of several items with notes that were read before; neighbours share words."""
        paths = self._paths(batch, ordinals).values()
        return len({key for path in paths for key, _ in path}) + len(ordinals)

    def listed(self, batches: Iterable[Batch]) -> tuple[Batch, ...]:
        """Rows with what a few reads show of the first of those that hold items; of the others, nothing."""
        rows = tuple(batches)
        first = islice((batch for batch in rows if batch.may_hold_more), _LISTED)
        counted = {batch.batch_id: self.counted(batch, budget=_LISTED_READS) for batch in first}
        return tuple(counted.get(batch.batch_id, batch) for batch in rows)

    def among(self, batch: Batch, notes: Sequence[FailureRow]) -> Takings:
        """Find out which items with notes are held now: they are pending, and no redrive has them."""
        pending = self.pending(batch, [note.ordinal for note in notes])
        return self.takings(batch, [note for note in notes if note.ordinal in pending])

    def takings(self, batch: Batch, notes: Sequence[FailureRow], *, elsewhere: bool = False) -> Takings:
        """Find out which failures no redrive has.

        Args:
            batch: the row.
            notes: of its items that have failed, or are held.
            elsewhere: whether to look also at what became of items in other batches. If not, failures with
                such items count as taken: at any rate they are not held any more.
        """
        marks = self._ports.parts.redriven(batch.batch_id, [note.ordinal for note in notes])
        taken = [(note, marks[note.ordinal]) for note in notes if note.ordinal in marks]
        later = {note.ordinal for note, mark in taken if batch.holds and mark.failed_at < note.failed_at}
        sent = {n: ids.parse_item(mark.item) for n, mark in marks.items() if mark.item and n not in later}
        unsent, records = self._unsent(batch.batch_id, {ordinal: marks[ordinal] for ordinal in sent})
        places: dict[int, dict[int, int]] = {}
        for ordinal, (block, place) in sent.items():
            if elsewhere or block.batch_id == batch.batch_id:
                places.setdefault(block.batch_id, {})[ordinal] = place
        free = later | self._left(batch, places, unsent)
        untaken = [note for note in notes if note.ordinal not in marks or note.ordinal in free]
        return Takings(untaken, marks, len(notes) + records)

    def _unsent(self, batch_id: int, marks: Mapping[int, Redriven]) -> tuple[set[int], int]:
        """Those failures that a redrive took and had not sent when it died; and how many rows were read."""
        names = {mark.redrive for mark in marks.values()}
        records = self._ports.records.read(str(batch_id), names) if names else {}
        now = self._ports.clock.now()
        planned = {
            name: {ordinal for ordinal, _ in record.value["page"]["plan"]}
            for name, record in records.items()
            if not record.value["done"] and record.value["until"] <= now
        }
        return {n for n, mark in marks.items() if n in planned.get(mark.redrive, ())}, len(names)

    def _left(self, batch: Batch, sent: Mapping[int, Mapping[int, int]], unsent: Collection[int]) -> set[int]:
        """Those failures whose item was not sent, or not done when its batch ended.

        Args:
            batch: the row.
            sent: batch → ordinal of the failure → ordinal of the item in that batch.
            unsent: failures that were not sent.
        """
        others = self._ports.batches.read([at for at in sent if at != batch.batch_id])
        free: set[int] = set()
        for at, items in sent.items():
            row = batch if at == batch.batch_id else others.get(at)
            ended = row is None or row.state.terminal or row.gone(self._ports.clock.now())
            looked = {failure: item for failure, item in items.items() if ended or failure in unsent}
            if looked and at != batch.batch_id:  # else it is pending, as it counts as failed
                pending = self._not_done(at, row, looked.values())
                looked = {failure: item for failure, item in looked.items() if item in pending}
            free |= looked.keys()
        return free

    def _not_done(self, batch_id: int, row: Batch | None, ordinals: Collection[int]) -> Collection[int]:
        """Those items of another batch, perhaps a removed one, that are not done and have not failed."""
        if row is not None and row.state is State.COMPLETE:
            return ()
        if row is not None and row.mode is Mode.ESTIMATED:  # it knows only of failures
            return set(ordinals) - set(self._ports.parts.notes(batch_id, ordinals))
        if row is not None:
            return self.pending(row, ordinals)
        return set(ordinals) - done_among(self._ports, batch_id, ordinals)

    def pending(self, batch: Batch, ordinals: Collection[int]) -> set[int]:
        """Those ordinals of which no bit is clear, neither their own nor one above it."""
        return self._pending(self._paths(batch, ordinals))

    def below_pending(self, batch: Batch, ordinals: Collection[int]) -> set[int]:
        """Those ordinals of which no bit above their own is clear: no range has marked them from above."""
        return self._pending({n: path[1:] for n, path in self._paths(batch, ordinals).items()})

    def _pending(self, paths: Mapping[int, Sequence[tuple[WordKey, int]]]) -> set[int]:
        words = self._ports.words.read({key for path in paths.values() for key, _ in path})
        full = self._ports.tree.full
        return {n for n, path in paths.items() if all(words.get(key, full) & mask for key, mask in path)}

    def _paths(self, batch: Batch, ordinals: Iterable[int]) -> dict[int, list[tuple[WordKey, int]]]:
        """Ordinal → its own bit and those above it, up to the root, each with its word."""

        def path(ordinal: int) -> list[tuple[WordKey, int]]:
            bits = self._ports.tree.ancestors(ordinal, batch.items, level=-1)
            return [(WordKey(batch.batch_id, level, number), mask) for level, number, mask in bits]

        return {ordinal: path(ordinal) for ordinal in ordinals}
