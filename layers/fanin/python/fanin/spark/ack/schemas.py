"""The rows that tasks pass to each other while acknowledgements are coalesced."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import pyarrow as pa

PAGES: Final = (
    "batch_id long, page long, bits binary, failed boolean, value string, reason string, detail string,"
    " rows long"
)
"""What tasks give to the merge: three kinds of rows.

A page has ``bits``, and the prefix of its item ids as ``value``. A reject has a ``reason``. One row of each
task has the number of ``rows`` that it read.
"""

PAGE_SCHEMA: Final = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("page", pa.int64()),
        ("bits", pa.binary()),
        ("failed", pa.bool_()),
        ("value", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("rows", pa.int64()),
    ]
)
"""``PAGES``, as Arrow has it."""
MERGED: Final = (
    "batch_id long, level int, number long, mask long, value string, reason string, detail string, rows long"
)
"""What the merge gives. A mark has a ``mask``; a mark of level 3 holds only the bits of whole words of level
2, and may have to be lifted further. Rejects and numbers of rows are as in ``PAGES``."""

_MERGED: Final = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("level", pa.int32()),
        ("number", pa.int64()),
        ("mask", pa.int64()),
        *list(PAGE_SCHEMA)[4:],
    ]
)
MARKS: Final = "batch_id long, level int, number long, mask long"
"""Bits to clear; the mask is the word's 64 bits, as a signed number."""

MARK_SCHEMA: Final = pa.schema(list(_MERGED)[:4])
"""``MARKS``, as Arrow has it."""

Records: TypeAlias = Any
"""A ``pyarrow.RecordBatch``; pyarrow has no type annotations."""


def page_records(count: int, **columns: Any) -> Records:
    """Make ``count`` rows of ``PAGES``; columns that are not given are null."""
    return _records(PAGE_SCHEMA, count, columns)


def merged_records(count: int, **columns: Any) -> Records:
    """Make ``count`` rows of ``MERGED``; columns that are not given are null."""
    return _records(_MERGED, count, columns)


def mark_records(count: int, **columns: Any) -> Records:
    """Make ``count`` rows of ``MARKS``."""
    return _records(MARK_SCHEMA, count, columns)


def _records(schema: Any, count: int, columns: dict[str, Any]) -> Records:
    arrays = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        values = columns.get(name)
        if values is None:
            arrays.append(pa.nulls(count, kind))
        else:
            arrays.append(values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
