"""The functions of the tasks that coalesce: rows in, pages and rejects out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

import pyarrow as pa

from fanin.spark.ack.coalescer import Coalescer
from fanin.spark.ack.input_schema import Form, Records
from fanin.spark.ack.issued import Batches

_CHUNK: Final = 1 << 20

Task: TypeAlias = Callable[[Iterable[Records]], Iterator[Records]]


def coalesce(batches: Batches, form: Form, *, failed: bool = False) -> Task:
    """The function of a task for ``mapInArrow``.

    Args:
        batches: where they are read.
        form: of the rows: they have its columns, with nulls anywhere, and perhaps ``raw``, which is how the
            row came if its numbers are none.
        failed: marks the pages as items that failed.

    Returns:
        Gives ``PAGES``.
    """

    def run(records: Iterable[Records]) -> Iterator[Records]:
        work = Coalescer(batches, form, failed=failed)
        for chunk in chunks(records):
            yield from work.add(chunk)
        yield from work.finish()

    return run


def chunks(records: Iterable[Records]) -> Iterator[Records]:
    """Join record batches to about a million rows each."""
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


def _joined(records: list[Records]) -> list[Records]:
    """Record batches as one; as several, if their text is longer than one can have."""
    joined: list[Records] = pa.Table.from_batches(records).combine_chunks().to_batches()
    return joined
