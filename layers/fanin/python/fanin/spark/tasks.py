"""The functions of the tasks that coalesce: rows in, pages and rejects out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

import pyarrow as pa

from fanin.errors import ServiceUnavailable
from fanin.spark.coalescer import Coalescer
from fanin.spark.forms import Form, Records
from fanin.spark.issued import Batches

_CHUNK: Final = 1 << 20

Task: TypeAlias = Callable[[Iterable[Records]], Iterator[Records]]


def coalesce(batches: Batches, form: Form, *, failed: bool = False) -> Task:
    """The function of a task for ``mapInArrow``.

    Args:
        batches: where they are read.
        form: of the rows: ``item``, or ``batch_id``, ``ordinal`` and ``raw``, which is how the row came if
            its numbers are none. Nulls may be anywhere.
        failed: marks the pages as items that failed.

    Returns:
        Gives ``PAGES``.
    """

    def run(records: Iterable[Records]) -> Iterator[Records]:
        work = Coalescer(batches, form, exact=True, failed=failed)
        for chunk in chunks(records):
            yield from work.add(chunk)
        yield from work.finish()

    return run


def coalesce_again(batches: Batches, form: Form, read: Callable[[], Iterable[Records]]) -> Iterator[Records]:
    """The same for input that can be read twice: the second time only if it has repeats.

    To know which they are costs as much as all the rest, and few inputs have any.
    """
    work = Coalescer(batches, form, exact=False)
    for chunk in chunks(read()):
        yield from work.add(chunk)
    yield from work.finish()
    if work.repeats:
        again = Coalescer(batches, form, exact=True, repeats_only=True)
        for chunk in chunks(read()):
            yield from again.add(chunk)
        yield from again.finish()
        if again.repeated != work.repeats:
            raise ServiceUnavailable("the input changed while it was read; start the job again")


def chunks(records: Iterable[Records]) -> Iterator[Records]:
    """Join record batches to about a million rows each."""
    waiting: list[Records] = []
    size = 0
    for record in records:
        waiting.append(record)
        size += record.num_rows
        if size >= _CHUNK:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, size = [], 0
    if size:
        yield pa.Table.from_batches(waiting).combine_chunks()
