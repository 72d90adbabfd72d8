"""What a task does with its rows: checks what they name, and gives pages of items, and rejects."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import NullType

from fanin.domain.ids import Block
from fanin.domain.limits import MAX_REASON
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import Found, IssuedItems, Item, Refused, find_items, refused
from fanin.spark.ack.numpy_items import IdColumns, decoded
from fanin.spark.ack.page_builder import PAGE_BITS, Ints, PageBuilder, Rows
from fanin.spark.runtime.arrow import ArrowBatches, Task, ddl, filled, slices
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.service import Service

PAGE_SCHEMA: Final = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("page", pa.int64()),
        ("bits", pa.binary()),
        ("ordinal", pa.int64()),
        ("why", pa.string()),
        ("values", pa.list_(pa.int64())),
        ("value", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("rows", pa.int64()),
    ]
)
"""What tasks give to the merge: four kinds of rows.

A page has ``bits``, and the prefix of its item ids as ``value``. A single item has an ``ordinal``, and as
``value`` its row as it came; it has failed if there is a ``why``, and brings ``values``. A reject has a
``reason``. One row of each task has the number of ``rows`` that it read.
"""
PAGES: Final = ddl(PAGE_SCHEMA)

REPEATED: Final = "the input names it more than once"
_KEYS: Final = 100_000  # names whose pages are built at once
_WAITING: Final = 1 << 20  # ids that wait, split, until their items are added to the pages together
_NONE: Final = Block(0, 0, 0, 0)


class Coalescer:
    """Coalesces one task's share, within bounded memory."""

    def __init__(self, service: Service, schema: InputSchema, totals: Sequence[str] = ()) -> None:
        self._issued, self._schema, self._totals = IssuedItems(service), schema, totals
        self._rows = self._rejected = 0
        self._builder = PageBuilder()
        self._keys: dict[str | int, int] = {}
        # Of each key its name, if that is a text, and its items.
        self._known: list[tuple[str | None, Block]] = []
        self._ids = IdColumns()
        self._split: list[tuple[Ints | int, Ints]] = []
        self._waiting = 0

    def add(self, chunk: ArrowBatches) -> Iterator[ArrowBatches]:
        """Take some rows, and give the pages, single items and rejects that have come out."""
        self._rows += chunk.num_rows
        if "values" in chunk.schema.names:
            yield from self._singles(chunk)
            return
        if "reason" in chunk.schema.names:
            fails = chunk.column("reason").is_valid()
            yield from self._singles(chunk.filter(fails))
            chunk = chunk.filter(pc.invert(fails))
        yield from self._by_id(chunk.column("item")) if self._schema.by_id else self._ordinals(chunk)
        if len(self._keys) > _KEYS:
            yield from self._flush()
            self._keys, self._known = {}, []
        else:
            yield from self._pages()

    def finish(self) -> Iterator[ArrowBatches]:
        """Give the remaining pages and rejects, and the number of rows."""
        yield from self._settle()
        yield from self._flush()
        yield filled(PAGE_SCHEMA, 1, rows=[self._rows])

    def _flush(self) -> Iterator[ArrowBatches]:
        yield from self._repeated(self._builder.flush())
        yield from self._pages()

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

    def _ordinals(self, rows: ArrowBatches) -> Iterator[ArrowBatches]:
        numbers = [rows.column(name) for name in self._schema.columns]
        if any(column.null_count for column in numbers):
            named = reduce(pc.and_, [column.is_valid() for column in numbers])
            yield from self._singles(rows.filter(pc.invert(named)))
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
        whole = self._issued.whole(needed)

        def show(rows: Ints) -> list[str]:
            pairs = zip(keys[rows].tolist(), indices[rows].tolist(), strict=True)
            return [self._schema.row_json(batch_id, ordinal) for batch_id, ordinal in pairs]

        yield from self._take(names, [whole[one] for one in names], codes, indices, show)

    def _take(
        self,
        names: Sequence[str | int],
        found: Sequence[Found],
        codes: Ints,
        indices: Ints,
        show: Callable[[Ints], Any],
    ) -> Iterator[ArrowBatches]:
        """Add the items that were issued to the pages; give the others as rejects, as ``show`` has them.

        Names come once, each with what was found for it. Rows have the position of their name, ignored if
        there is only one, in ``codes``, and the number of their item below that name in ``indices``.
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
            told = [refused(block) for block in found]
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
        key = self._keys.setdefault(name, len(self._known))
        if key == len(self._known):
            self._known.append((name if isinstance(name, str) else None, block))
        return key

    def _repeated(self, repeats: Iterator[Rows]) -> Iterator[ArrowBatches]:
        by_number = self._schema.row_json
        for keys, ordinals in repeats:
            shown = []
            for key, ordinal in zip(keys.tolist(), ordinals.tolist(), strict=True):
                name, block = self._known[key]
                number = ordinal - block.first
                shown.append(f"{name}:{number}" if name else by_number(block.batch_id, ordinal))
            yield self._rejects(shown, Reason.DUPLICATE, REPEATED)

    def _singles(self, rows: ArrowBatches) -> Iterator[ArrowBatches]:
        """Give the items that have failed, or bring something, one by one."""
        for some in slices([rows], _PIECE):
            columns = {name: some.column(name) for name in some.schema.names}
            given, rejects = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
            for shown, item, why, values, odd in self._looked_at(columns, some.num_rows):
                wrong = item if isinstance(item, Refused) else self._judge(item, why, values, odd)
                if wrong:
                    rejects.append((shown, *wrong))
                elif isinstance(item, Item):
                    reason = None if why is None else why.decode()[:MAX_REASON]
                    given.append((*item, reason, values, shown))
            if rejects:
                yield self._rejects(*zip(*rejects, strict=True))
            if given:
                names = ("batch_id", "ordinal", "why", "values", "value")
                named = dict(zip(names, zip(*given, strict=True), strict=True))
                pages = [ordinal >> PAGE_BITS for ordinal in named["ordinal"]]
                yield filled(PAGE_SCHEMA, len(given), page=pages, **named)

    def _looked_at(self, columns: Mapping[str, Any], count: int) -> Iterator[tuple[Any, ...]]:
        """Each row as it came, its item, the bytes of its reason, its values, and what is odd about them."""
        nothing = [None] * count
        if self._schema.by_id:
            shown = names = decoded(columns["item"])
        else:
            raw = columns["raw"].to_pylist() if "raw" in columns else nothing
            ordinals, given = columns["ordinal"].to_pylist(), self._schema.batch_id
            batches = columns["batch_id"].to_pylist() if given is None else [given] * count
            rows = list(zip(raw, batches, ordinals, strict=True))
            names = [text or (None if None in (b, o) else f"{b}:{o}") for text, b, o in rows]
            shown = [text or self._schema.row_json(b, o) for text, b, o in rows]
        items = find_items(names, self._issued, by_id=self._schema.by_id)
        whys = columns["reason"].cast(pa.large_binary()).to_pylist() if "reason" in columns else nothing
        values, odd = (
            columns[name].to_pylist() if name in columns else nothing for name in ("values", "odd")
        )
        return zip(shown, items, whys, values, odd, strict=True)

    def _judge(self, item: Item, why: bytes | None, values: Any, odd: str | None) -> Refused | None:
        """Why a row is left out for its reason, or for what its item brings."""
        try:
            (why or b"").decode()
        except UnicodeDecodeError:
            return Refused(Reason.MALFORMED, "the reason has bytes that are not UTF-8")
        if odd is not None:
            return Refused(Reason.MALFORMED, odd)
        known = self._issued.totals(item.batch_id)
        for name, value in zip(self._totals, values or (), strict=False):
            if value is not None and name not in known:
                return Refused(Reason.FOREIGN, f"batch {item.batch_id} has no total {name}")
        return None

    def _rejects(
        self, values: Any, reason: Reason | Sequence[Reason], detail: str | Sequence[str]
    ) -> ArrowBatches:
        count = len(values)
        self._rejected += 1
        return filled(
            PAGE_SCHEMA,
            count,
            page=[self._rejected * 8] * count,  # spreads them over the tasks that merge
            value=values,
            reason=[reason] * count if isinstance(reason, Reason) else reason,
            detail=[detail] * count if isinstance(detail, str) else detail,
        )

    def _pages(self) -> Iterator[ArrowBatches]:
        pages = self._builder.take()
        for at in range(0, len(pages), 1 << 10):
            some = pages[at : at + (1 << 10)]
            names, blocks = zip(*(self._known[page.key] for page in some), strict=True)
            yield filled(
                PAGE_SCHEMA,
                len(some),
                batch_id=[block.batch_id for block in blocks],
                page=[page.number for page in some],
                bits=[page.bits for page in some],
                value=names,
            )


_CHUNK: Final = 1 << 20
_BYTES: Final = 64 << 20
_PIECE: Final = 1 << 15
"""Most ids that are split at once: few enough for the core's cache, enough to make numpy's calls cheap.
Files give fewer at a time (``parquet_files._IDS``), the ack job as many (``jobs.ack.SETTINGS``)."""


def coalesce_task(
    service: Service, schema: InputSchema, totals: Sequence[str] = (), *, most: int | None = None
) -> Task:
    """Make the function of a task that coalesces.

    Rows have the columns of the schema, with nulls anywhere, and perhaps ``raw``: the row as it came, where
    its columns are not whole numbers; ``reason``, where its item has failed; and ``values`` and ``odd`` of
    ``input_schema.with_values``. After ``most`` rows the task gives up, and only says that there are more.
    """

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        coalescer, count = Coalescer(service, schema, totals), 0
        # Pieces are neither copied nor read from memory twice.
        for chunk in slices(records, _PIECE) if schema.by_id else chunks(records):
            count += chunk.num_rows
            if most is not None and count > most:
                yield filled(PAGE_SCHEMA, 1, rows=[count])
                return
            yield from coalescer.add(chunk)
        yield from coalescer.finish()

    return run


def chunks(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
    """Join record batches to about a million rows each, unless they are large."""
    waiting, rows, size = list[ArrowBatches](), 0, 0
    for record in records:
        waiting.append(record)
        rows, size = rows + record.num_rows, size + record.nbytes
        if rows >= _CHUNK or size >= _BYTES:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting, rows, size = [], 0, 0
    if rows:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def pages_from_rows(
    rows: DataFrame,
    schema: InputSchema,
    service: Service,
    totals: Sequence[str] = (),
    *,
    most: int | None = None,
) -> DataFrame:
    """Make ``PAGES`` of a DataFrame that ``input_schema.normalize`` gave; as ``coalesce_task``."""
    # Handing a row to Python costs more than everything that is done with it: hand over what differs.
    also = [name for name in ("raw", "reason", "values", "odd") if name in rows.columns]
    given = [name for name in also if not isinstance(rows.schema[name].dataType, NullType)]
    task = coalesce_task(service, schema, totals, most=most)
    return rows.select(*schema.columns, *given).mapInArrow(task, PAGES)
