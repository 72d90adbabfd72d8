"""The bit picture: one node of a batch's summary tree, and the parts below it.

A node is a word of the tree. Below a word of level 0 are items, below any other are words. So a billion items
can be looked at from their root, 64 parts at a time, down to single items.
"""

from dataclasses import dataclass
from enum import StrEnum

from fanin.domain.batch import Batch


class ItemState(StrEnum):
    """What became of an item.

    Attributes:
        DONE: it was acknowledged.
        FAILED: it was marked as failed, which is done, too.
        HELD: it failed and is pending, because its batch holds failed items.
        LEASED: it is pending, and a receiver has a lease on it.
        PENDING: none of these.
    """

    DONE = "done"
    FAILED = "failed"
    HELD = "held"
    LEASED = "leased"
    PENDING = "pending"

    @property
    def done(self) -> bool:
        return self in {ItemState.DONE, ItemState.FAILED}


@dataclass(frozen=True, slots=True)
class Cell:
    """A word below the node of a picture: how many of its items are done.

    Attributes:
        number: of the word on its level, which is one below that of the node.
        start: ordinal of its first item.
        stop: one past its last item.
        parts: how many children it has, words or items; each has a bit in ``word``, from bit 0 on.
        done_min: at least this many of its items are done.
        done_max: at most this many are; equal to ``done_min`` when the count is exact, as it is of a word of
            level 0 that was read.
        failed: at least this many of them failed.
        failed_more: whether more may have failed than ``failed`` says.
        word: which of its parts are pending, a bit that is 1 for each; None if the word was not read.
    """

    number: int
    start: int
    stop: int
    parts: int
    done_min: int
    done_max: int
    failed: int = 0
    failed_more: bool = True
    word: int | None = None

    @property
    def size(self) -> int:
        """How many items it has."""
        return self.stop - self.start

    @property
    def unread(self) -> bool:
        """Whether nothing is known of its parts."""
        return self.word is None and self.done_min < self.size


@dataclass(frozen=True, slots=True)
class PictureItem:
    """An item below a node of level 0.

    Attributes:
        ordinal: of the item in the batch.
        item: an id of the item, under which it can be acknowledged.
        state: what became of it.
        leased_until: when the lease on it ends, ms since the epoch; None if no lease holds.
        key: of the item; empty if it has none.
    """

    ordinal: int
    item: str
    state: ItemState
    leased_until: int | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """One node of the summary tree, and the parts below it: items below level 0, cells below any other.

    Attributes:
        batch: its row.
        level: of the node.
        number: of the node on its level.
        root_level: of the root, whose number is 0; in an open batch it may grow.
        size: how many items the batch has.
        start: ordinal of the first item below the node.
        stop: one past its last item.
        cells: the words below, ascending; empty on level 0.
        items: the items below, ascending; only on level 0.
        held_more: whether items that are shown as pending or leased may be held.
    """

    batch: Batch
    level: int
    number: int
    root_level: int
    size: int
    start: int
    stop: int
    cells: tuple[Cell, ...] = ()
    items: tuple[PictureItem, ...] = ()
    held_more: bool = False

    @property
    def done_min(self) -> int:
        """At least this many items below the node are done."""
        return sum(cell.done_min for cell in self.cells) + self._done_items

    @property
    def done_max(self) -> int:
        """At most this many items below the node are done."""
        return sum(cell.done_max for cell in self.cells) + self._done_items

    @property
    def _done_items(self) -> int:
        return sum(item.state.done for item in self.items)
