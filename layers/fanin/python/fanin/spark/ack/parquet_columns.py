"""What tasks take of the columns of a Parquet file: text and whole numbers, however that file holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fanin.errors import InvalidRequest
from fanin.spark.ack.input_schema import LONGEST, InputSchema
from fanin.spark.runtime.arrow import ArrowBatches

_LARGEST: Final = pa.scalar((1 << 63) - 1, pa.uint64())
"""Of the numbers that fit into 64 bits with a sign."""
_TEXT: Final = (pa.string(), pa.large_string())
_ALSO_TEXT: Final = (pa.null(), pa.binary(), pa.large_binary(), pa.string_view())
"""Types of text that ``ItemIds`` does not take."""


def normalized(rows: ArrowBatches, schema: InputSchema, path: str) -> ArrowBatches:
    """Make the columns that a ``Coalescer`` takes; as in Spark, a value that is none does not end a file.

    Args:
        rows: of a file, with the columns that it has of those of the schema, and perhaps ``reason``: rows
            that have one are left out.
        schema: how the files name items.
        path: of the file.

    Raises:
        InvalidRequest: a column is not of text or of whole numbers, as it is in the first file.
    """
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    if "reason" in columns:
        keep = pc.is_null(columns["reason"])
        columns = {name: column.filter(keep) for name, column in columns.items()}
    count = len(next(iter(columns.values()))) if columns else rows.num_rows
    if schema.by_id:
        items = columns.get("item", pa.nulls(count, pa.string()))
        return pa.RecordBatch.from_arrays([_bounded(_texts(items, path))], ["item"])
    empty = pa.nulls(count, pa.int64())
    numbers = [_numbers(columns.get(name, empty), name, path) for name in schema.columns]
    try:
        whole = [column.cast(pa.int64()) for column in numbers]
    except pa.ArrowInvalid:
        return _without_large(numbers, schema)
    return pa.RecordBatch.from_arrays(whole, schema.columns)


def _texts(items: Any, path: str) -> Any:
    """Item ids as plain text. pandas writes categories, which come as dictionaries."""
    if items.type in _TEXT:
        return items
    if pa.types.is_dictionary(items.type):
        return _texts(items.dictionary_decode(), path)
    if items.type in _ALSO_TEXT:
        try:
            return items.cast(pa.string())
        except pa.ArrowInvalid:
            return decoded(items)
    raise _refused("item", items.type, path, "item ids are text")


def _numbers(numbers: Any, name: str, path: str) -> Any:
    """Whole numbers.

    Arrow would also make numbers of booleans, times, text, and floating-point numbers that were rounded.
    """
    if pa.types.is_dictionary(numbers.type):
        return _numbers(numbers.dictionary_decode(), name, path)
    if pa.types.is_integer(numbers.type) or pa.types.is_null(numbers.type):
        return numbers
    raise _refused(name, numbers.type, path, "integers are expected, as in the first file")


def _refused(name: str, kind: Any, path: str, expected: str) -> InvalidRequest:
    return InvalidRequest(
        f"the column {name} of {path} has the type {kind}, and {expected}; write all files with one type, or"
        " acknowledge those of each type in a run of its own"
    )


def _without_large(numbers: Sequence[Any], schema: InputSchema) -> ArrowBatches:
    """Numbers of which some have more than 63 bits: these become null, and their rows have ``raw``."""
    raw: list[str | None] = [None] * len(numbers[0])
    whole = []
    for column in numbers:
        fitting = column
        if column.type == pa.uint64():
            large = pc.fill_null(pc.greater(column, _LARGEST), False)
            for row in pc.indices_nonzero(large).to_pylist():
                raw[row] = schema.row_json(numbers[0][row].as_py(), numbers[-1][row].as_py())
            fitting = pc.if_else(large, None, column)
        whole.append(fitting.cast(pa.int64()))
    return pa.RecordBatch.from_arrays([*whole, pa.array(raw, pa.string())], [*schema.columns, "raw"])


def _bounded(items: Any) -> Any:
    """Item ids; what is longer than any is cut."""
    longest = pc.max(pc.binary_length(items)).as_py() or 0
    if longest <= LONGEST:
        return items
    try:
        return pc.utf8_slice_codeunits(items, 0, LONGEST)
    except pa.ArrowInvalid:
        return pc.utf8_slice_codeunits(decoded(items), 0, LONGEST)


def decoded(items: Any) -> Any:
    """Bytes as text, where some are not UTF-8: a character stands for these, which no id has."""
    texts = items.cast(pa.large_binary()).to_pylist()
    return pa.array(
        [None if text is None else text.decode(errors="replace") for text in texts], pa.large_string()
    )
