"""The function of the tasks that coalesce: rows in, pages and rejects out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

import pyarrow as pa

from fanin.spark.ack.coalescer import Coalescer
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import BatchReader
from fanin.spark.runtime.arrow import Records

_CHUNK: Final = 1 << 20
_PIECE: Final = 1 << 15
"""Most ids that are split at once: few enough for the core's cache, enough to make numpy's calls cheap.

Files give fewer at a time (``parquet_files._IDS``), the ack job as many (``jobs.ack.SETTINGS``).
"""

Task: TypeAlias = Callable[[Iterable[Records]], Iterator[Records]]
"""What ``mapInArrow`` runs in each task."""


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

    def run(records: Iterable[Records]) -> Iterator[Records]:
        coalescer = Coalescer(batches, schema, failed=failed)
        for chunk in _pieces(records) if schema.by_id else chunks(records):
            yield from coalescer.add(chunk)
        yield from coalescer.finish()

    return run


def chunks(records: Iterable[Records]) -> Iterator[Records]:
    """Join record batches to about a million rows each.

    Those of files that have a row which names no item have the column ``raw`` besides; where others are
    joined with them, it is null.
    """
    waiting: list[Records] = []
    size = 0
    for record in records:
        waiting.append(record)
        size += record.num_rows
        if size >= _CHUNK:
            yield from _joined(waiting)
            waiting, size = [], 0
    if size:
        yield from _joined(waiting)


def _pieces(records: Iterable[Records]) -> Iterator[Records]:
    """Divide record batches, so that text is neither copied nor read from memory twice."""
    for record in records:
        for first in range(0, record.num_rows, _PIECE):
            yield record.slice(first, _PIECE)


def _joined(records: list[Records]) -> list[Records]:
    """Join record batches to one, or to several if one cannot hold all their text."""
    if all(record.schema == records[0].schema for record in records):
        table = pa.Table.from_batches(records)
    else:
        tables = [pa.Table.from_batches([record]) for record in records]
        table = pa.concat_tables(tables, promote_options="default")
    joined: list[Records] = table.combine_chunks().to_batches()
    return joined
