"""The rows that go from task to task while acknowledgements are coalesced, and how the input names items."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa

PAGES: Final = (
    "batch_id long, page long, bits binary, failed boolean, value string, reason string, detail string,"
    " rows long"
)
"""What tasks give to the merge. A page has ``bits``, and the prefix of its ids as its value; a reject has a
``reason``; and one row has the number of ``rows`` that were read."""

_PAGES: Final = pa.schema(
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
MERGED: Final = (
    "batch_id long, level int, number long, mask long, value string, reason string, detail string, rows long"
)
"""What the merge gives. A mark has a ``mask``; on level 3 it has only the bits of whole words of level 2, and
is to be lifted further. Rejects and numbers of rows are as in ``PAGES``."""

_MERGED: Final = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("level", pa.int32()),
        ("number", pa.int64()),
        ("mask", pa.int64()),
        *list(_PAGES)[4:],
    ]
)
MARKS: Final = "batch_id long, level int, number long, mask long"
"""Bits to clear; the mask is the word's 64 bits, as a signed number."""

_MARKS: Final = pa.schema(list(_MERGED)[:4])

Records: TypeAlias = Any
"""A ``pyarrow.RecordBatch``: pyarrow has no types."""


@dataclass(frozen=True)
class Form:
    """How the input names items.

    Attributes:
        ids: by their ids, in a column ``item``; else by ``batch_id`` and ``ordinal``.
        batch_id: of all rows, where only the ordinals are given.
    """

    ids: bool
    batch_id: int | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that name an item, as the input has them."""
        if self.ids:
            return ["item"]
        return ["ordinal"] if self.batch_id is not None else ["batch_id", "ordinal"]

    def value(self, batch_id: int | None, ordinal: int | None) -> str:
        """A row without an id as it came, as JSON."""
        row = {} if self.batch_id is not None else {"batch_id": batch_id}
        return json.dumps({**row, "ordinal": ordinal})

    def shown(self, name: str | int, index: int) -> str:
        """An item as it came: of a prefix of ids, or of a batch."""
        return f"{name}:{index}" if isinstance(name, str) else self.value(name, index)


def pages_of(many: int, **columns: Any) -> Records:
    """``many`` rows of ``PAGES``; columns that are not given are null."""
    return _records(_PAGES, many, columns)


def merged_of(many: int, **columns: Any) -> Records:
    """``many`` rows of ``MERGED``; columns that are not given are null."""
    return _records(_MERGED, many, columns)


def marks_of(many: int, **columns: Any) -> Records:
    """``many`` rows of ``MARKS``."""
    return _records(_MARKS, many, columns)


def _records(schema: Any, many: int, columns: dict[str, Any]) -> Records:
    arrays = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        values = columns.get(name)
        if values is None:
            arrays.append(pa.nulls(many, kind))
        else:
            arrays.append(values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, kind))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
