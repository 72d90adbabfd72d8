"""The bit picture: reading one node of the summary tree with the parts below it.

Rows are read from the top down: the batch, then the node with the words above it, then the parts. A bit is
only ever cleared. So what a clear bit shows as done is done for good. A part that is shown as pending has no
clear bit above it in any word that was read, and each was read after the batch's row. Since no bit is cleared
above the root, it was pending when that row was read. Bounds are true likewise: ``done_max`` at the beginning
of the call, ``done_min`` at its end.

A range that is acknowledged high in the tree passes over the words below. So the words above the node are
read, too: where they have a clear bit, everything below it is done, whatever its own word says.
"""

from collections.abc import Collection
from dataclasses import replace

from fanin.app.ledger.failed import Held
from fanin.app.ledger.reading import only_exact
from fanin.app.ports import Ports
from fanin.app.ports.words import Tallied, Tally, WordKey, WordRow
from fanin.domain import ids, limits
from fanin.domain.batch import Batch
from fanin.domain.picture import Cell, ItemState, Picture, PictureItem
from fanin.domain.tree import positions

MOST_ROWS = 66
"""How many rows a picture reads at most: at the root the batch, the root, and 64 words below it.

Below the root, the words above take their share. Then the last parts are not read, those that are done first.
A picture of single items that have keys reads up to 64 more: one for each addition that has made some.
"""


def picture(ports: Ports, batch: Batch, *, level: int | None, number: int) -> Picture:
    """Read one node of a batch, and the parts below it.

    Args:
        ports: the stores.
        batch: the row, as it is now.
        level: of the node; None for the root.
        number: of the node on its level.

    Raises:
        InvalidRequest: the batch is estimated, or has no such node.
    """
    tree, n = ports.tree, only_exact(batch).items
    root = tree.root_level(n)
    level = root if level is None else limits.whole("level", level, 0, root)
    limits.whole(f"number of a word of level {level}", number, 0, tree.last(level, n) if n else 0)
    start = number * tree.span(level)
    node = Picture(batch, level, number, root, n, start, start + tree.size(level, number, n))
    return _Reader(ports, batch, node).parts() if n else node


class _Reader:
    """Reads the parts of one node of a batch with items; ``node`` is what is known without reading it."""

    def __init__(self, ports: Ports, batch: Batch, node: Picture) -> None:
        self._ports = ports
        self._tree = ports.tree
        self._batch = batch
        self._node = node
        self._left = MOST_ROWS - 1
        # Where every item is done and none failed, the row says it all.
        self._all_well = batch.all_done and not batch.failed and not batch.failed_more

    def parts(self) -> Picture:
        """The node with its parts."""
        tree, node = self._tree, self._node
        key = self._key(node.level, node.number)
        bits = tree.ancestors(node.number, node.size, level=node.level)
        above = {self._key(level, number): mask for level, number, mask in bits}
        rows = {} if self._all_well else self._ports.words.read_rows([*above, key])
        self._left -= len(above) + 1
        untouched = WordRow(tree.full)
        row = rows.get(key, untouched)
        done = self._batch.all_done or any(
            not rows.get(one, untouched).word & mask for one, mask in above.items()
        )
        pending = 0 if done else row.word & self._existing(node.level, node.number)
        return self._with_cells(pending) if node.level else self._with_items(row, pending)

    def _with_cells(self, pending: int) -> Picture:
        node, tree = self._node, self._tree
        level, first = node.level - 1, node.number * tree.width
        existing = self._existing(node.level, node.number).bit_count()
        done = [not pending & bit for bit in tree.bits]
        ranked = sorted(range(existing), key=done.__getitem__)
        wanted = [] if self._all_well else ranked[: self._left]
        keys = {at: self._key(level, first + at) for at in wanted}
        words = self._ports.words.read_tallied(keys.values()) if keys else {}
        untouched = Tallied(tree.full, Tally())
        read = {at: words.get(key, untouched) for at, key in keys.items()}
        cells = [self._cell(level, first + at, read.get(at), done=done[at]) for at in range(existing)]
        return replace(node, cells=tuple(cells))

    def _cell(self, level: int, number: int, found: Tallied | None, *, done: bool) -> Cell:
        """A word below the node, as it was read, if it was.

        A bit of a word above level 0 that is pending does not say that an item is: the last word of an open
        batch may be done before its bit in the word above is cleared. So only words of level 0 say how many
        items are done at most.
        """
        tree, n = self._tree, self._node.size
        existing, size = self._existing(level, number), tree.size(level, number, n)
        own = existing if found is None else found.word & existing
        word = 0 if done else own
        least = size - tree.pending(level, number, word, n)
        exact = not word or (level == 0 and found is not None)
        tally = Tally() if found is None else found.tally
        counted = found is not None and (level == 0 or (not own and tally.whole))
        start = number * tree.span(level)
        place, most = (number, start, start + size, existing.bit_count()), least if exact else size
        more, shown = not counted and not self._all_well, None if found is None else word
        return Cell(*place, least, most, failed=tally.failed, failed_more=more, word=shown)

    def _with_items(self, row: WordRow, pending: int) -> Picture:
        node, batch = self._node, self._batch
        prefix = ids.issue(batch.batch_id, node.start, node.stop - node.start, batch.salt).prefix
        now = self._ports.clock.now()
        leases = {at: until * 1000 for at, until in row.leases.items() if until * 1000 > now}
        held, more = self._held(pending)
        ordinals = range(node.start, node.stop)
        keys = self._ports.parts.keys_of(batch.batch_id, ordinals) if batch.keyed else {}

        def item(at: int) -> PictureItem:
            ordinal, bit = node.start + at, self._tree.bits[at]
            if not pending & bit:
                state = ItemState.FAILED if row.failed & bit else ItemState.DONE
            elif ordinal in held:
                state = ItemState.HELD
            else:
                state = ItemState.LEASED if at in leases else ItemState.PENDING
            lease = None if state.done else leases.get(at)
            return PictureItem(ordinal, f"{prefix}:{at}", state, lease, keys.get(ordinal, ""))

        return replace(node, items=tuple(map(item, range(node.stop - node.start))), held_more=more)

    def _held(self, pending: int) -> tuple[Collection[int], bool]:
        """Which pending items are held, and whether there may be others that were not looked at."""
        node, parts, batch_id = self._node, self._ports.parts, self._batch.batch_id
        if not pending or not self._batch.may_hold_more:
            return (), False
        ordinals = {node.start + at for at in positions(pending)}
        limit = self._left // 3  # each note may take the reads of a redrive's mark and record
        notes = parts.notes_between(batch_id, min(ordinals), max(ordinals) + 1, limit=limit)
        pending_notes = [note for note in notes if note.ordinal in ordinals]
        held = Held(self._ports).takings(self._batch, pending_notes).free
        more = len(notes) == limit and max(ordinals) > notes[-1].ordinal
        return {note.ordinal for note in held}, more

    def _existing(self, level: int, number: int) -> int:
        """The bits of a word that stand for children that exist."""
        return self._tree.full & ~self._tree.residue(level, number, self._node.size)

    def _key(self, level: int, number: int) -> WordKey:
        return WordKey(self._batch.batch_id, level, number)
