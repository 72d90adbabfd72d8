"""Whether the service issued what the input names: the ledger's ``check_issued``, for many items at once."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from fanin.app.ledger.known_batches import check_issued
from fanin.domain import ids
from fanin.domain.batch import Batch, Mode
from fanin.domain.ids import Block
from fanin.domain.tree import Tree
from fanin.errors import FaninError
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.service import Service

_MOST: Final = 100_000  # prefixes and batches that are remembered; when there are more, all are forgotten
_TREE: Final = Tree()


class Refused(NamedTuple):
    """Why items are left out."""

    reason: Reason
    detail: str


Found: TypeAlias = Block | Refused


class IssuedItems:
    """Checks prefixes of item ids, each once, and remembers the batches that it has read."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._rows: dict[int, Batch | None] = {}
        self._found: dict[str, Found] = {}

    def blocks(self, prefixes: Collection[str]) -> list[Found]:
        """The block of items that each prefix stands for, or why it is refused."""
        unknown = [prefix for prefix in dict.fromkeys(prefixes) if prefix not in self._found]
        if len(unknown) + len(self._found) > _MOST:
            self._found.clear()
            unknown = list(dict.fromkeys(prefixes))
        parsed: dict[str, Block] = {}
        for prefix in unknown:
            try:
                parsed[prefix] = ids.parse_prefix(prefix)
            except FaninError as error:
                self._found[prefix] = Refused(Reason.MALFORMED, str(error))
        needed: dict[int, int] = {}
        for block in parsed.values():
            needed[block.batch_id] = max(block.stop, needed.get(block.batch_id, 0))
        rows = self._rows_with(needed)
        for prefix, block in parsed.items():
            self._found[prefix] = self._check(block, rows[block.batch_id])
        return [self._found[prefix] for prefix in prefixes]

    def whole(self, needed: Mapping[int, int]) -> dict[int, Found]:
        """All items of each batch, or why it is refused; ``needed`` as for ``_rows_with``."""
        rows = self._rows_with(needed).items()
        return {
            one: self._refused(one, row) or Block(one, 0, row.items if row else 0, 0) for one, row in rows
        }

    def top_levels(self, batch_ids: Collection[int]) -> dict[int, int]:
        """The highest level on which items of each batch may be marked: of its root when it was last read.

        It is 0 for a batch with totals, whose items are marked on level 0 only, and for one that is gone.
        """
        rows = self._rows_with(dict.fromkeys(batch_ids, 0)).items()
        return {one: _TREE.root_level(row.items) if row and not row.totals else 0 for one, row in rows}

    def totals(self, batch_id: int) -> tuple[str, ...]:
        """The names of the totals of a batch; none if the batch is gone."""
        row = self._rows_with({batch_id: 0})[batch_id]
        return tuple(row.totals) if row else ()

    def _rows_with(self, needed: Mapping[int, int]) -> dict[int, Batch | None]:
        """Batches; one with fewer items than the input needs, to one past the highest, may have grown."""
        rows = {batch_id: self._rows.get(batch_id) for batch_id in needed if batch_id in self._rows}
        stale = [
            one for one, stop in needed.items() if one not in rows or ((r := rows[one]) and r.items < stop)
        ]
        if stale:
            known = [one for one in stale if 0 <= one <= ids.MAX_BATCH_ID]
            read = self._service.ledger().ports.batches.read(known)
            rows |= {one: read.get(one) for one in stale}
            if len(self._rows) > _MOST:
                self._rows.clear()
            self._rows |= rows
        return rows

    def _check(self, block: Block, row: Batch | None) -> Found:
        if refused := self._refused(block.batch_id, row):
            return refused
        try:
            check_issued(block, row)  # type: ignore[arg-type]  # None is refused above
        except FaninError as error:
            return Refused(Reason.FOREIGN, str(error))
        return block

    def _refused(self, batch_id: int, row: Batch | None) -> Refused | None:
        if row is None:
            return Refused(Reason.FOREIGN, f"there is no batch {batch_id}")
        if row.gone(self._service.ledger().ports.clock.now()):
            return Refused(Reason.GONE, f"batch {batch_id} is past its lifetime")
        if row.mode is Mode.ESTIMATED:
            return Refused(Reason.FOREIGN, f"batch {batch_id} is estimated: its items have no bits")
        return None


_ID: Final = re.compile(r"(.*):(0|[1-9][0-9]{0,9})", re.DOTALL)
_PAIR: Final = re.compile(r"(-?[0-9]+):(-?[0-9]+)")
_NULL: Final = Refused(Reason.NULL, "it is null")
_NO_ITEM: Final = Refused(Reason.MALFORMED, "it names no item")


class Item(NamedTuple):
    """An item that the service issued."""

    batch_id: int
    ordinal: int


def find_items(names: Sequence[str | None], issued: IssuedItems, *, by_id: bool) -> list[Item | Refused]:
    """Find the items that texts name: ids, or numbers of batches and of items, divided by a colon."""
    split = [name and (_ID if by_id else _PAIR).fullmatch(name) for name in names]
    if by_id:
        prefixes = list({found[1] for found in split if found})
        blocks = dict(zip(prefixes, issued.blocks(prefixes), strict=True))
    else:
        needed: dict[int, int] = {}
        for batch_id, ordinal in ((int(found[1]), int(found[2])) for found in split if found):
            needed[batch_id] = max(ordinal + 1, needed.get(batch_id, 0))
        blocks = {str(batch_id): block for batch_id, block in issued.whole(needed).items()}
    return [
        _NULL if name is None else _item(found, blocks[found[1]]) if found else _NO_ITEM
        for name, found in zip(names, split, strict=True)
    ]


def _item(found: re.Match[str], block: Found) -> Item | Refused:
    index = int(found[2])
    if isinstance(block, Refused) or not 0 <= index < block.size:
        return refused(block)
    return Item(block.batch_id, block.first + index)


def refused(block: Found) -> Refused:
    """Why an item that is not in a block is left out."""
    return block if isinstance(block, Refused) else Refused(Reason.FOREIGN, f"there are {block.size} items")
