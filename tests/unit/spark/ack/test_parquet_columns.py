"""Columns of files, of which some hold them otherwise than the first one."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fanin.errors import InvalidRequest
from fanin.spark.ack.coalescer import coalesce_task
from fanin.spark.ack.input_schema import LONGEST, InputSchema
from fanin.spark.ack.parquet_files import ParquetFiles, normalized
from tests.spark.given import Given, batch, block, rows_of

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


def rejects(schema: InputSchema, *columns: Any) -> list[tuple[str, str]]:
    """Values and reasons of the rows that a task leaves out; item 1 is in a record before them."""
    row = batch(7, 9)
    good = [f"{block(row, 0, 9).prefix}:1"] if schema.by_id else [7, 1][-len(columns) :]
    records = [
        normalized(pa.RecordBatch.from_arrays(list(arrays), schema.columns), schema, "b.parquet")
        for arrays in ([pa.array([one]) for one in good], columns)
    ]
    made = rows_of(coalesce_task(Given((row,)), schema)(iter(records)))
    assert sum(row["rows"] or 0 for row in made) == 1 + len(columns[0])
    return [(row["value"], row["reason"]) for row in made if row["reason"]]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("dictionary", [False, True])
def test_an_id_that_is_not_utf8_is_a_reject_and_not_the_end_of_its_file(
    kind: pa.DataType, dictionary: bool
) -> None:
    large = kind in (pa.large_binary(), pa.large_string())
    values = pa.array([b"7:g:\xff", b"\xe97:g:2", None], pa.large_binary() if large else pa.binary())
    values = values.view(kind)  # which a file may call text
    found = rejects(BY_ID, values.dictionary_encode() if dictionary else values)
    malformed = [("7:g:\ufffd", "malformed"), ("\ufffd7:g:2", "malformed")]
    assert [one for one in found if one[0] in dict(malformed)] == malformed
    assert (None, "null") in found


def test_a_text_that_is_too_long_and_not_utf8_is_cut_like_any_other() -> None:
    # Given a column that says that it is UTF-8
    values = pa.array([b"\xff" * 300, b"7:g:2"]).view(pa.string())
    assert taken("item", values).to_pylist() == ["\ufffd" * LONGEST, "7:g:2"]


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_number_of_more_than_63_bits_is_a_reject_and_not_the_end_of_its_file(dictionary: bool) -> None:
    numbers = pa.array([2, 1 << 63, None, (1 << 64) - 1, 3], pa.uint64())
    numbers = numbers.dictionary_encode() if dictionary else numbers
    assert rejects(ORDINALS, numbers) == [
        ('{"ordinal": 9223372036854775808}', "malformed"),
        ('{"ordinal": 18446744073709551615}', "malformed"),
        ('{"ordinal": null}', "null"),
    ]
    assert taken("ordinal", numbers).to_pylist() == [2, None, None, None, 3]


def test_a_batch_of_more_than_63_bits_is_a_reject_beside_its_ordinal() -> None:
    both = InputSchema(by_id=False)
    found = rejects(both, pa.array([1 << 63, 7, None], pa.uint64()), pa.array([4, 5, 6], pa.int32()))
    assert found == [
        ('{"batch_id": 9223372036854775808, "ordinal": 4}', "malformed"),
        ('{"batch_id": null, "ordinal": 6}', "null"),
    ]


def test_a_file_of_categories_is_read_beside_one_of_plain_text(tmp_path: Any) -> None:
    for name, column in (("a", TEXTS), ("b", TEXTS.dictionary_encode())):
        pq.write_table(pa.table({"item": column}), tmp_path / f"{name}.parquet")
    files = ParquetFiles(str(tmp_path))

    (splits,) = files.splits(1)
    rows = [row["item"] for some in files.read(splits, BY_ID, reasons=False) for row in some.to_pylist()]

    assert rows == TEXTS.to_pylist() * 2
