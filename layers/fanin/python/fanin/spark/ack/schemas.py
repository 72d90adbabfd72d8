"""The rows that tasks pass to each other while acknowledgements are coalesced."""

from typing import Final

import pyarrow as pa

from fanin.spark.runtime.arrow import ddl

_VALUES: Final = pa.list_(pa.int64())

PAGE_SCHEMA: Final = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("page", pa.int64()),
        ("bits", pa.binary()),
        ("ordinal", pa.int64()),
        ("why", pa.string()),
        ("values", _VALUES),
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

MERGED_SCHEMA: Final = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("level", pa.int32()),
        ("number", pa.int64()),
        ("mask", pa.int64()),
        ("brought", pa.list_(_VALUES)),
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
