"""Columns of files, of which some hold them otherwise than the first one."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fanin.errors import InvalidRequest
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.parquet_columns import normalized
from fanin.spark.ack.parquet_files import ParquetFiles

BY_ID, ORDINALS = InputSchema(by_id=True), InputSchema(by_id=False, batch_id=7)
TEXTS, NUMBERS = pa.array(["7:g:1", None, "7:g:2", "7:g:1"]), pa.array([1, None, 2, 1])


def taken(name: str, column: Any) -> Any:
    rows = pa.RecordBatch.from_arrays([column], [name])
    return normalized(rows, BY_ID if name == "item" else ORDINALS, "day=2/b.parquet").column(0)


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view()], ids=str
)
def test_ids_may_be_any_text(kind: pa.DataType) -> None:
    found = taken("item", TEXTS.cast(kind))
    assert (found.to_pylist(), found.type in (pa.string(), pa.large_string())) == (TEXTS.to_pylist(), True)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.uint32(), pa.uint64()], ids=str)
def test_numbers_may_have_any_width(kind: pa.DataType) -> None:
    assert taken("ordinal", NUMBERS.cast(kind)).equals(NUMBERS)


@pytest.mark.parametrize(("name", "values"), [("item", TEXTS), ("ordinal", NUMBERS)])
def test_columns_may_be_dictionaries_or_without_a_type(name: str, values: Any) -> None:
    assert taken(name, values.dictionary_encode()).equals(values)
    assert taken(name, pa.nulls(2)).equals(pa.nulls(2, values.type))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("item", NUMBERS),
        ("ordinal", pa.array([float(1 << 24)], pa.float32())),
        ("ordinal", pa.array([" 7 "])),
        ("ordinal", pa.array([True])),
        ("ordinal", pa.array([1], pa.timestamp("us"))),
        ("ordinal", pa.array([1]).cast(pa.decimal128(20, 0))),
    ],
    ids=lambda one: one if isinstance(one, str) else str(one.type),
)
def test_columns_of_other_types_are_refused_with_their_file(name: str, values: Any) -> None:
    # Given values of which Arrow would make text or whole numbers, and perhaps others than were meant
    told = f"the column {name} of day=2/b.parquet has the type {values.type}, "
    with pytest.raises(InvalidRequest, match=re.escape(told)):
        taken(name, values)


def test_a_file_of_categories_is_read_beside_one_of_plain_text(tmp_path: Any) -> None:
    for name, column in (("a", TEXTS), ("b", TEXTS.dictionary_encode())):
        pq.write_table(pa.table({"item": column}), tmp_path / f"{name}.parquet")
    files = ParquetFiles(str(tmp_path))

    (splits,) = files.splits(1)
    rows = [row["item"] for some in files.read(splits, BY_ID, reasons=False) for row in some.to_pylist()]

    assert rows == TEXTS.to_pylist() * 2
