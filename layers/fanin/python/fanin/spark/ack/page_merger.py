"""Merges what all tasks give: each item once; repeats become rejects. Then lifts whole words.

Instead of a word whose 64 bits are all set, one bit of the word above is written, as far as one bit of level
3 for a window, all of which is in one task. The last word of a level may have fewer than 64 children. It is
never whole, so it is written itself, and the ledger settles it as it settles any other word. Words of a batch
with totals are not lifted: its items bring something, which counts on level 0.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.domain import ids
from fanin.spark.ack.coalescer import PAGE_SCHEMA, REPEATED
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import IssuedItems
from fanin.spark.ack.page_builder import PAGE, PAGE_BITS, WORDS, Ints, Words, bitmaps, popcount
from fanin.spark.runtime.arrow import ArrowBatches, Task, changes, ddl, filled, page, slices
from fanin.spark.runtime.rejects import Reason
from fanin.spark.runtime.service import Service

MERGED_SCHEMA: Final = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("level", pa.int32()),
        ("number", pa.int64()),
        ("mask", pa.int64()),
        ("brought", pa.list_(pa.list_(pa.int64()))),
        ("why", pa.string()),
        *list(PAGE_SCHEMA)[6:],
    ]
)
MERGED: Final = ddl(MERGED_SCHEMA)
"""What the merge gives. A mark has a ``mask``; a mark of level 3 holds only the bits of whole words of level
2, and may have to be lifted further. A failure has a ``why``, the ordinal as its ``number``, and as ``value``
the id of its item, if that came with one. Rejects and numbers of rows are as in ``PAGES``."""

MARK_SCHEMA: Final = pa.schema(list(MERGED_SCHEMA)[:5])
"""Bits to clear; the mask is the word's 64 bits, as a signed number. ``brought`` has an array for each of
their items that brings something: its ordinal, and a value for each total, null for nothing."""

WINDOW_BITS: Final = 18
"""A window is what one word of level 2 covers: 262,144 items, 8 pages, 4,096 words of level 0."""
_LEVELS: Final = 3  # of a window; its bit is on the one above
_FULL: Final = np.uint64(2**64 - 1)
Brought = dict[tuple[int, int], list[list[int | None]]]
"""Batch and number of a word of level 0 → for each of its items that bring something, ordinal and values."""


def _marks(batch_ids: Ints, level: int, numbers: Ints, masks: Words, **also: Any) -> ArrowBatches:
    count = len(batch_ids)
    levels = np.full(count, level, np.int32)
    mask = masks.view(np.int64)
    return filled(MERGED_SCHEMA, count, batch_id=batch_ids, level=levels, number=numbers, mask=mask, **also)


_PAGES: Final = 1 << WINDOW_BITS - PAGE_BITS
_AT_ONCE: Final = 512


class _Merged(NamedTuple):
    """Pages, each once, in order."""

    batch_ids: Ints
    numbers: Ints
    items: Words  # a bit is 1 if its item is acknowledged or failed
    failed: Words

    def part(self, rows: slice | Ints) -> Self:
        return type(self)(self.batch_ids[rows], self.numbers[rows], self.items[rows], self.failed[rows])


_Row = dict[str, Any]
_item = itemgetter("batch_id", "ordinal")
_NO_PAGES: Final = _Merged(
    np.zeros(0, np.int64), np.zeros(0, np.int64), *[np.zeros((0, WORDS), np.uint64)] * 2
)


def _chosen(rows: Sequence[_Row]) -> tuple[_Row | None, Sequence[_Row], Reason, str]:
    """Of an item's rows the one that counts, if any; the others, and why they are left out.

    An item that is both acknowledged and failed has failed.
    """
    failed = rows[0]["why"] is not None  # failures come first
    counting = (row["values"] or () for row in rows if (row["why"] is not None) is failed)
    if len({tuple(value or 0 for value in values) for values in counting}) > 1:
        return None, rows, Reason.CONFLICTING, f"{REPEATED}, with different values"
    return rows[0], rows[1:], Reason.DUPLICATE, REPEATED


def _pages_of(items: Sequence[tuple[int, int, bool]]) -> _Merged:
    """The pages of single items, each given by batch, ordinal and whether it failed, in order."""
    if not items:
        return _NO_PAGES
    batch_ids, ordinals, failed = map(np.array, zip(*items, strict=True))
    new = changes(batch_ids, ordinals >> PAGE_BITS)
    starts, places = np.flatnonzero(new), np.cumsum(new) - 1
    flags = np.zeros((2, len(starts), PAGE), bool)
    flags[0, places, ordinals & PAGE - 1] = True
    flags[1, places[failed], ordinals[failed] & PAGE - 1] = True
    words = np.packbits(flags, axis=-1, bitorder="little").view(np.uint64)
    return _Merged(batch_ids[starts], ordinals[starts] >> PAGE_BITS, words[0], words[1])


def merge_task(service: Service, schema: InputSchema) -> Task:
    """Make the function of a task that merges ``PAGES`` to ``MERGED``.

    All rows of a window must be in one partition, in the order of ``in_order``.
    """

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        merger = _Merger(IssuedItems(service), schema)
        for some in slices(records, _AT_ONCE):
            yield from merger.add(some)
        yield from merger.finish()

    return run


class _Merger:
    def __init__(self, issued: IssuedItems, schema: InputSchema) -> None:
        self._tops_of, self._schema = issued.top_levels, schema
        self._rest = _NO_PAGES
        self._held: list[_Row] = []
        self._brought: Brought = {}

    def add(self, record: ArrowBatches) -> Iterator[ArrowBatches]:
        """Merge some rows; a window comes out when the next one begins."""
        paged, single = record.column("bits").is_valid(), record.column("ordinal").is_valid()
        if paged.true_count + single.true_count < record.num_rows:
            others = record.filter(pc.invert(pc.or_(paged, single)))
            columns = {name: others.column(name) for name in ("value", "reason", "detail", "rows")}
            yield filled(MERGED_SCHEMA, others.num_rows, **columns)
        rows = [*self._held, *(record.filter(single).to_pylist() if single.true_count else ())]
        # Others may follow of the same item.
        self._held = [row for row in rows if _item(row) == _item(rows[-1])] if single[-1].as_py() else []
        items = yield from self._once(rows[: len(rows) - len(self._held)])
        if items or paged.true_count:
            whole = paged.true_count == record.num_rows
            yield from self._merge(items, record if whole else record.filter(paged))

    def finish(self) -> Iterator[ArrowBatches]:
        """Give the last window."""
        items = yield from self._once(self._held)
        if items:
            yield from self._merge(items, page(PAGE_SCHEMA, []))
        yield from self._lift(self._rest)

    def _once(self, rows: Sequence[_Row]) -> Generator[ArrowBatches, None, list[tuple[int, int, bool]]]:
        """Choose the row of each item that counts; gives the failures, and the others as rejects.

        Returns:
            Batch, ordinal and whether it failed, of each item.
        """
        found, items = list[_Row](), list[tuple[int, int, bool]]()
        for (batch_id, ordinal), group in groupby(rows, _item):
            chosen, others, reason, detail = _chosen(list(group))
            found += [{"value": row["value"], "reason": reason, "detail": detail} for row in others]
            if chosen is None:
                continue
            values, failed = chosen["values"] or (), chosen["why"] is not None
            brought = [[ordinal, *values]] if any(value is not None for value in values) else []
            items.append((batch_id, ordinal, failed))
            if failed:
                failure = {"batch_id": batch_id, "number": ordinal, "brought": brought, "why": chosen["why"]}
                found.append({**failure, "value": chosen["value"] if self._schema.by_id else None})
            elif brought:
                self._brought.setdefault((batch_id, ordinal >> 6), []).extend(brought)
        if found:
            yield pa.RecordBatch.from_pylist(found, schema=MERGED_SCHEMA)
        return items

    def _merge(self, single: list[tuple[int, int, bool]], record: ArrowBatches) -> Iterator[ArrowBatches]:
        """Join single items and pages to those of the window that is not whole yet."""
        batch_ids, numbers = (record.column(name).to_numpy() for name in ("batch_id", "page"))
        new = bitmaps(record.column("bits").to_pylist())
        paged = _Merged(batch_ids, numbers, new, np.broadcast_to(np.uint64(0), new.shape))
        columns: Any = zip(self._rest, _pages_of(single), paged, strict=True)
        every = _Merged(*map(np.concatenate, columns))
        prefixes = [None] * (len(every.items) - len(new)) + record.column("value").to_pylist()
        if single:
            order = np.lexsort((every.numbers, every.batch_ids))  # keeps those of a page in their order
            every, prefixes = every.part(order), [prefixes[at] for at in order.tolist()]
        starts = np.flatnonzero(changes(every.batch_ids, every.numbers))
        pages = every
        if len(starts) < len(every.items):  # otherwise each page is there once, and there is nothing to join
            joined = (np.bitwise_or.reduceat(some, starts, axis=0) for some in (every.items, every.failed))
            pages = _Merged(every.batch_ids[starts], every.numbers[starts], *joined)
            seen = np.add.reduceat(_counts(every.items), starts)
            for at in np.flatnonzero(seen != _counts(pages.items)).tolist():
                stop = starts[at + 1] if at + 1 < len(starts) else len(every.items)
                group = slice(int(starts[at]), int(stop))
                page_of = int(pages.batch_ids[at]), int(pages.numbers[at])
                yield from self._repeats(*page_of, every.items[group], prefixes[group])
        last = np.flatnonzero(changes(pages.batch_ids, pages.numbers // _PAGES))[-1]
        self._rest = pages.part(slice(last, None))
        yield from self._lift(pages.part(slice(last)))

    def _repeats(
        self, batch_id: int, number: int, rows: Words, prefixes: list[str | None]
    ) -> Iterator[ArrowBatches]:
        """Give as rejects the items of one page that several of its rows have."""
        before = rows[0].copy()
        for row, prefix in zip(rows[1:], prefixes[1:], strict=True):
            again = before & row
            before |= row
            offsets = np.flatnonzero(np.unpackbits(again.view(np.uint8), bitorder="little"))
            if not len(offsets):
                continue
            ordinals = (offsets + number * PAGE).tolist()
            if prefix is None:
                values = [self._schema.row_json(batch_id, ordinal) for ordinal in ordinals]
            else:
                values = [f"{prefix}:{ordinal - _first(prefix)}" for ordinal in ordinals]
            why = {"reason": [Reason.DUPLICATE] * len(values), "detail": [REPEATED] * len(values)}
            yield filled(MERGED_SCHEMA, len(values), value=values, **why)

    def _lift(self, pages: _Merged) -> Iterator[ArrowBatches]:
        """Give the marks of whole windows; those of level 3 have a bit for each whose items are all done."""
        if not len(pages.numbers):
            return
        windows = pages.numbers // _PAGES
        new = changes(pages.batch_ids, windows)
        starts = np.flatnonzero(new)
        words: Words = np.zeros((len(starts), _PAGES, WORDS), np.uint64)
        words[np.cumsum(new) - 1, pages.numbers % _PAGES] = pages.items & ~pages.failed
        words = words.reshape(len(starts), -1)
        batch_ids, windows = pages.batch_ids[starts], windows[starts]
        levels = self._tops_of(np.unique(batch_ids).tolist())
        tops = np.array([levels[batch_id] for batch_id in batch_ids.tolist()])[:, None]
        for level in range(_LEVELS):
            whole = (words == _FULL) & (tops > level)
            at, column = np.nonzero((words != 0) & ~whole)
            if len(at):
                number, also = windows[at] * words.shape[1] + column, dict[str, Any]()
                if self._brought and not level:
                    named = zip(batch_ids[at].tolist(), number.tolist(), strict=True)
                    also["brought"] = [self._brought.pop(word, None) for word in named]
                yield _marks(batch_ids[at], level, number, words[at, column], **also)
            if level < _LEVELS - 1:
                words = np.packbits(whole, axis=1, bitorder="little").view(np.uint64)
        at = np.flatnonzero(whole)
        if len(at):
            bits = np.uint64(1) << (windows[at] & 63).astype(np.uint64)
            yield _marks(batch_ids[at], _LEVELS, windows[at] >> 6, bits)


@lru_cache(maxsize=1024)
def _first(prefix: str) -> int:
    return ids.parse_prefix(prefix).first


def _counts(words: Words) -> Any:
    return popcount(words).sum(axis=1, dtype=np.int64)


def merge(pages: DataFrame, schema: InputSchema, service: Service) -> DataFrame:
    """Merge ``PAGES`` to ``MERGED``: each word in one task."""
    window = F.shiftright("page", WINDOW_BITS - PAGE_BITS)
    each = [F.col(name).asc_nulls_last() for name in ("ordinal", "why", "value")]
    ordered = pages.repartition("batch_id", window).sortWithinPartitions("batch_id", "page", *each)
    return ordered.mapInArrow(merge_task(service, schema), MERGED)


def in_order(rows: Sequence[Any]) -> list[Any]:
    """Rows of ``PAGES`` in the order of ``merge``."""

    def key(row: Any) -> tuple[Any, ...]:
        each = ((row[name] is None, row[name] or "") for name in ("why", "value"))
        return (row["batch_id"] or 0, row["page"] or 0, row["ordinal"] is None, row["ordinal"] or 0, *each)

    return sorted(rows, key=key)
