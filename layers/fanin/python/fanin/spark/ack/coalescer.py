"""What a task does with its rows: checks what they name, and gives pages of items, and rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import NullType

from fanin.domain.ids import Block
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import BatchReader, Found, IssuedItems, Refused
from fanin.spark.ack.numpy_items import IdColumns, decoded
from fanin.spark.ack.page_builder import Ints, PageBuilder, Rows
from fanin.spark.ack.schemas import PAGES, page_records
from fanin.spark.runtime.arrow import ArrowBatches, Task
from fanin.spark.runtime.rejects import Reason

_AT_ONCE: Final = 1 << 10
REPEATED: Final = "the input names it more than once"
_KEYS: Final = 100_000
"""Names whose pages are built at once."""
_WAITING: Final = 1 << 20
"""Ids that wait, split, until their items are added to the pages together."""
_NONE: Final = Block(0, 0, 0, 0)


class Coalescer:
    """Coalesces one task's share, within bounded memory.

    Args:
        batches: where batches are read.
        schema: of the rows.
        failed: the rows name items that failed.
    """

    def __init__(self, batches: BatchReader, schema: InputSchema, *, failed: bool = False) -> None:
        self._issued, self._schema, self._failed = IssuedItems(batches), schema, failed
        self._rows = self._rejected = 0
        self._builder = PageBuilder()
        self._names: list[str | None] = []
        self._blocks: list[Block] = []
        self._keys: dict[str | int, int] = {}
        self._ids = IdColumns()
        self._split: list[tuple[Ints | int, Ints]] = []
        self._waiting = 0

    def add(self, chunk: ArrowBatches) -> Iterator[ArrowBatches]:
        """Take some rows, and give the pages and rejects that have come out."""
        columns = dict(zip(chunk.schema.names, chunk.columns, strict=True))
        rows = self._by_id(columns["item"]) if self._schema.by_id else self._ordinals(columns)
        self._rows += chunk.num_rows
        yield from rows
        if len(self._keys) > _KEYS:
            yield from self._repeated(self._builder.flush())
        yield from self._pages()
        if len(self._keys) > _KEYS:
            self._keys, self._names, self._blocks = {}, [], []

    def finish(self) -> Iterator[ArrowBatches]:
        """Give the remaining pages and rejects, and the number of rows."""
        yield from self._settle()
        yield from self._repeated(self._builder.flush())
        yield from self._pages()
        yield page_records(1, rows=[self._rows])

    def _by_id(self, items: Any) -> Iterator[ArrowBatches]:
        if items.null_count:
            yield self._rejects([None] * items.null_count, Reason.NULL, "the item id is null")
            items = items.drop_null()
        codes, indices = self._ids.split(items)
        if not isinstance(codes, int) and codes.min(initial=0) < 0:
            indexed = codes >= 0
            detail = "it does not end in a colon and a whole number"
            # A file may say of bytes that they are UTF-8; nothing has looked at them until now.
            yield self._rejects(decoded(items.filter(pa.array(~indexed))), Reason.MALFORMED, detail)
            codes, indices = codes[indexed], indices[indexed]
        self._split.append((codes, indices))
        self._waiting += len(indices)
        if self._waiting >= _WAITING:
            yield from self._settle()

    def _settle(self) -> Iterator[ArrowBatches]:
        """Take the ids that wait."""
        if not self._split:
            return
        prefixes = self._ids.prefixes
        indices = np.concatenate([numbers for _, numbers in self._split])
        codes = np.broadcast_to(np.int64(0), len(indices))
        if len(prefixes) > 1:
            codes = np.concatenate([np.broadcast_to(some, len(numbers)) for some, numbers in self._split])
        self._ids, self._split, self._waiting = IdColumns(), [], 0

        def show(rows: Ints) -> list[str]:
            return [f"{prefixes[codes[row]]}:{indices[row]}" for row in rows.tolist()]

        yield from self._take(prefixes, self._issued.blocks(prefixes), codes, indices, show)

    def _ordinals(self, rows: Mapping[str, Any]) -> Iterator[ArrowBatches]:
        numbers = [rows[name] for name in self._schema.columns]
        if any(column.null_count for column in numbers):
            named = reduce(pc.and_, [column.is_valid() for column in numbers])
            others = pa.table(dict(rows)).filter(pc.invert(named)).to_pylist()
            ragged = [row["raw"] for row in others if row.get("raw") is not None]
            yield self._rejects(ragged, Reason.MALFORMED, "it is not a whole number")
            empty = [row for row in others if row.get("raw") is None]
            values = [self._schema.row_json(row.get("batch_id"), row["ordinal"]) for row in empty]
            yield self._rejects(values, Reason.NULL, "the ordinal or the batch id is null")
            numbers = [column.filter(named) for column in numbers]
        indices = numbers[-1].to_numpy()
        if not len(indices):
            return
        given = self._schema.batch_id
        keys = numbers[0].to_numpy() if given is None else np.broadcast_to(np.int64(given), len(indices))
        if given is not None or keys.min() == keys.max():
            known, codes = keys[:1], np.zeros(0, np.int64)
            needed = {int(keys[0]): int(indices.max()) + 1}
        else:
            known, codes = np.unique(keys, return_inverse=True)
            highest = np.zeros(len(known), np.int64)
            np.maximum.at(highest, codes, indices)
            pairs = zip(known.tolist(), highest.tolist(), strict=True)
            needed = {batch_id: ordinal + 1 for batch_id, ordinal in pairs}  # which may not fit into 64 bits
        names = known.tolist()
        sizes = self._issued.sizes(needed)
        found = [n if isinstance(n := sizes[b], Refused) else Block(b, 0, n, 0) for b in names]

        def show(rows: Ints) -> list[str]:
            pairs = zip(keys[rows].tolist(), indices[rows].tolist(), strict=True)
            return [self._schema.row_json(batch_id, ordinal) for batch_id, ordinal in pairs]

        yield from self._take(names, found, codes, indices, show)

    def _take(
        self,
        names: Sequence[str | int],
        found: Sequence[Found],
        codes: Ints,
        indices: Ints,
        show: Callable[[Ints], Any],
    ) -> Iterator[ArrowBatches]:
        """Add the items that were issued to the pages; give the others as rejects.

        Args:
            names: each once.
            found: for each name the block that it stands for, or why it is refused.
            codes: for each row the position of its name in ``names``; ignored if there is only one name.
            indices: for each row the number of its item below that name.
            show: takes positions of rows, and gives those rows as they came.
        """
        if not len(indices):
            return
        blocks = [block if isinstance(block, Block) else _NONE for block in found]
        if single := len(found) == 1:
            codes = np.broadcast_to(np.int64(0), len(indices))
        sizes = np.array([block.size for block in blocks], np.uint64)
        unsigned = indices.view(np.uint64)  # negative ones are very large
        if (
            int(unsigned.max()) >= int(sizes.min())
            and not (good := unsigned < (sizes if single else sizes[codes])).all()
        ):
            rows = np.flatnonzero(~good)
            told = [
                block
                if isinstance(block, Refused)
                else Refused(Reason.FOREIGN, f"there are {block.size} items")
                for block in found
            ]
            why = [told[code] for code in codes[rows].tolist()]
            yield self._rejects(show(rows), [r.reason for r in why], [r.detail for r in why])
            codes, indices = codes[good], indices[good]
        if single:
            keys: Ints | int = self._key(names[0], blocks[0])
            ordinals = indices + blocks[0].first if blocks[0].first else indices
        else:
            used = np.unique(codes)
            table = np.zeros(len(found), np.int64)
            table[used] = [self._key(names[code], blocks[code]) for code in used.tolist()]
            keys = table[codes]
            ordinals = np.array([block.first for block in blocks])[codes] + indices
        yield from self._repeated(self._builder.add(keys, ordinals))

    def _key(self, name: str | int, block: Block) -> int:
        key = self._keys.setdefault(name, len(self._blocks))
        if key == len(self._blocks):
            self._names.append(name if isinstance(name, str) else None)
            self._blocks.append(block)
        return key

    def _repeated(self, repeats: Iterator[Rows]) -> Iterator[ArrowBatches]:
        for keys, ordinals in repeats:
            shown = []
            for key, ordinal in zip(keys.tolist(), ordinals.tolist(), strict=True):
                name, block = self._names[key], self._blocks[key]
                shown.append(
                    self._schema.row_json(block.batch_id, ordinal)
                    if name is None
                    else f"{name}:{ordinal - block.first}"
                )
            yield self._rejects(shown, Reason.DUPLICATE, REPEATED)

    def _rejects(
        self, values: Any, reason: Reason | Sequence[Reason], detail: str | Sequence[str]
    ) -> ArrowBatches:
        """Make rejects.

        Args:
            values: the rows as they came.
            reason: one for all of them, or one each.
            detail: likewise.
        """
        count = len(values)
        self._rejected += 1
        return page_records(
            count,
            page=[self._rejected * 8] * count,  # spreads them over the tasks that merge
            value=values,
            reason=[reason] * count if isinstance(reason, Reason) else reason,
            detail=[detail] * count if isinstance(detail, str) else detail,
        )

    def _pages(self) -> Iterator[ArrowBatches]:
        pages = self._builder.take()
        for at in range(0, len(pages), _AT_ONCE):
            some = pages[at : at + _AT_ONCE]
            yield page_records(
                len(some),
                batch_id=[self._blocks[page.key].batch_id for page in some],
                page=[page.number for page in some],
                bits=[page.bits for page in some],
                failed=[self._failed] * len(some),
                value=[self._names[page.key] for page in some],
            )


_CHUNK: Final = 1 << 20
_PIECE: Final = 1 << 15
"""Most ids that are split at once: few enough for the core's cache, enough to make numpy's calls cheap.

Files give fewer at a time (``parquet_files._IDS``), the ack job as many (``jobs.ack.SETTINGS``).
"""


def coalesce_task(batches: BatchReader, schema: InputSchema, *, failed: bool = False) -> Task:
    """Make the function of a task that coalesces.

    Args:
        batches: where tasks read batches.
        schema: of the rows. They have its columns, with nulls anywhere, and perhaps ``raw``: the row as it
            came, where its columns are not whole numbers.
        failed: the rows name items that failed.

    Returns:
        A function that gives rows of ``PAGES``.
    """

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        coalescer = Coalescer(batches, schema, failed=failed)
        for chunk in _pieces(records) if schema.by_id else chunks(records):
            yield from coalescer.add(chunk)
        yield from coalescer.finish()

    return run


def chunks(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
    """Join record batches to about a million rows each."""
    waiting: list[ArrowBatches] = []
    size = 0
    for record in records:
        waiting.append(record)
        size += record.num_rows
        if size >= _CHUNK:
            yield from _joined(waiting)
            waiting, size = [], 0
    if size:
        yield from _joined(waiting)


def _pieces(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
    """Divide record batches, so that text is neither copied nor read from memory twice."""
    for record in records:
        for first in range(0, record.num_rows, _PIECE):
            yield record.slice(first, _PIECE)


def _joined(records: list[ArrowBatches]) -> list[ArrowBatches]:
    """Join record batches to one, or to several if one cannot hold all their text."""
    joined: list[ArrowBatches] = pa.Table.from_batches(records).combine_chunks().to_batches()
    return joined


def pages_from_rows(
    rows: DataFrame, schema: InputSchema, batches: BatchReader, *, failed: bool = False
) -> DataFrame:
    """Make ``PAGES`` of a DataFrame that ``sql_items.normalize`` gave.

    Args:
        rows: the DataFrame.
        schema: how it names items.
        batches: where tasks read batches.
        failed: the rows name items that failed.
    """
    # Handing a row to Python costs more than everything that is done with it: hand over what differs.
    ragged = not schema.by_id and not isinstance(rows.schema["raw"].dataType, NullType)
    columns = [*schema.columns, *(["raw"] if ragged else [])]
    return rows.select(*columns).mapInArrow(coalesce_task(batches, schema, failed=failed), PAGES)
