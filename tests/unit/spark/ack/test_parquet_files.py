"""Parquet files divided among tasks, and read by them."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fanin.errors import InvalidRequest
from fanin.spark.ack.coalescer import coalesce_task
from fanin.spark.ack.input_schema import LONGEST, InputSchema
from fanin.spark.ack.parquet_files import ParquetFiles, _middle, normalized
from fanin.spark.inputs.listing import FoundFile
from tests.spark import given
from tests.spark.given import parquet_files

BY_ID, ORDINALS = InputSchema(by_id=True), InputSchema(by_id=False, batch_id=7)


def written(folder: Path, name: str, columns: dict[str, Any], rows: int = 1_500) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / name, row_group_size=rows)


def rows_of(files: ParquetFiles, schema: InputSchema, *, reasons: bool = False) -> list[dict[str, Any]]:
    """All rows, as a single task reads them."""
    return [
        row
        for splits in files.splits(1)
        for records in files.read(splits, schema, reasons=reasons)
        for row in records.to_pylist()
    ]


def test_splits_have_every_row_group_once(tmp_path, monkeypatch):
    # Given files of several row groups, and tasks for less than a file
    monkeypatch.setattr("fanin.spark.ack.parquet_files._LEAST", 1_000)
    for number in range(3):
        ordinals = range(number * 10_000, (number + 1) * 10_000)
        written(tmp_path / "files", f"{number}.parquet", {"ordinal": pa.array(ordinals)})
    files = parquet_files(tmp_path / "files")

    splits = files.splits(7)
    read = [
        row["ordinal"]
        for split in splits
        for records in files.read(split, ORDINALS, reasons=False)
        for row in records.to_pylist()
    ]

    assert len(splits) == 7
    assert sorted(read) == list(range(30_000))


def test_tasks_have_as_many_rows_where_a_split_ends_behind_the_start_of_a_file(tmp_path, monkeypatch):
    # Given four files of almost one size; half of all bytes end just behind the start of the third
    monkeypatch.setattr("fanin.spark.ack.parquet_files._LEAST", 1_000)
    for number, spare in enumerate((0, 0, 10, 0)):
        texts = [f"{n:05}" for n in range(3_000)]
        texts[-1] += "x" * spare
        written(tmp_path / "files", f"{number}.parquet", {"item": texts})
    files = parquet_files(tmp_path / "files")

    splits = files.splits(2)
    assert [(Path(split.path).name, split.start > 0) for split in splits[0]][-1] == ("2.parquet", False)
    # Then both tasks have as many row groups
    read = [
        sum(rows.num_rows for rows in files.read(split, InputSchema(by_id=True), reasons=False))
        for split in splits
    ]
    assert read == [6_000, 6_000]


def test_a_row_group_is_read_whatever_size_its_metadata_has():
    # Given a file whose metadata says that its only row group is longer than all of it
    class Group:
        num_columns = 1

        def column(self, _place: int) -> Any:
            return self

        dictionary_page_offset = None
        data_page_offset = 4
        total_compressed_size = 1 << 30

    # Then it has its middle in the file all the same
    assert _middle(Group(), 100) == 99


def test_small_files_are_one_task(tmp_path):
    for number in range(3):
        written(tmp_path, f"{number}.parquet", {"ordinal": [number]})
    (splits,) = parquet_files(tmp_path).splits(8)
    assert [Path(split.path).name for split in splits] == ["0.parquet", "1.parquet", "2.parquet"]


def test_huge_files_are_more_tasks_than_run_at_once(tmp_path, monkeypatch):
    written(tmp_path, "a.parquet", {"ordinal": pa.array(range(10_000))})
    files = parquet_files(tmp_path)
    (size,) = files.sizes.values()
    monkeypatch.setattr("fanin.spark.ack.parquet_files._MOST", size // 5)

    assert len(files.splits(2)) >= 5


@pytest.mark.parametrize(
    ("schema", "kind", "fits"),
    [
        (ORDINALS, pa.int8(), True),
        (ORDINALS, pa.int64(), True),
        (ORDINALS, pa.uint32(), True),
        (ORDINALS, pa.uint64(), False),
        (ORDINALS, pa.float64(), False),
        (ORDINALS, pa.string(), False),
        (InputSchema(by_id=False), pa.int64(), False),  # the batches are missing
        (BY_ID, pa.string(), True),
        (BY_ID, pa.large_string(), True),
        (BY_ID, pa.binary(), False),
        (BY_ID, pa.dictionary(pa.int32(), pa.string()), False),
    ],
)
def test_tasks_read_whole_numbers_of_64_bits_and_text(tmp_path, schema, kind, *, fits):
    written(tmp_path / "files", "a.parquet", {schema.columns[-1]: pa.array([], kind)})
    assert parquet_files(tmp_path / "files").readable(schema) is fits


def test_only_the_columns_that_name_items_are_read(tmp_path):
    written(tmp_path, "a.parquet", {"item": ["7:g:1", None], "payload": ["x", "y"]})
    assert rows_of(parquet_files(tmp_path), InputSchema(by_id=True)) == [{"item": "7:g:1"}, {"item": None}]


def test_reasons_are_read_where_some_rows_have_them(tmp_path):
    written(tmp_path, "a.parquet", {"ordinal": [1, 2], "reason": [None, "torn"]})
    assert rows_of(parquet_files(tmp_path), ORDINALS, reasons=True) == [
        {"ordinal": 1, "reason": None},
        {"ordinal": 2, "reason": "torn"},
    ]


def test_a_file_that_lacks_a_column_has_nulls_there(tmp_path):
    written(tmp_path, "a.parquet", {"batch_id": [7]})
    written(tmp_path, "b.parquet", {"batch_id": [7], "ordinal": pa.array([3], pa.int32())})
    assert rows_of(parquet_files(tmp_path), InputSchema(by_id=False)) == [
        {"batch_id": 7, "ordinal": None},
        {"batch_id": 7, "ordinal": 3},
    ]


def test_names_are_found_in_each_file_without_regard_to_case(tmp_path):
    # Given files that name their columns in other cases and orders
    written(tmp_path, "a.parquet", {"ordinal": [1, 2], "reason": [None, "torn"]})
    written(tmp_path, "b.parquet", {"Reason": ["late", None], "ORDINAL": [3, 4]})

    found = [tuple(row.values()) for row in rows_of(parquet_files(tmp_path), ORDINALS, reasons=True)]
    assert found == [(1, None), (2, "torn"), (3, "late"), (4, None)]
    exact = rows_of(parquet_files(tmp_path, exact=True), ORDINALS, reasons=True)
    assert [row["ordinal"] for row in exact] == [1, 2, None, None]


@pytest.mark.parametrize("damage", ["header", "page"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, damage):
    written(tmp_path, "a.parquet", {"item": [f"7:g:{n}" for n in range(1_000)]})
    file = tmp_path / "a.parquet"
    content = file.read_bytes()
    file.write_bytes(b"junk" * 9 if damage == "header" else b"PAR1" + b"\xff" * 300 + content[304:])

    with pytest.raises(InvalidRequest, match=r"a\.parquet cannot be read as Parquet: "):
        rows_of(parquet_files(tmp_path), InputSchema(by_id=True))


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_files_that_were_found_may_have_any_names(tmp_path, prefix):
    # Given files with spaces, umlauts and percent signs in their paths, of which two were found
    folder = tmp_path / "a b%20ü"
    for name in ("x [1].parquet", "y#?.parquet", "z.parquet"):
        written(folder, name, {"ordinal": [len(name)]})
    found = [
        FoundFile(f"{prefix}{folder}/{name}", (folder / name).stat().st_size, 0)
        for name in ("x [1].parquet", "y#?.parquet")
    ]

    files = ParquetFiles(found, Mock())

    assert rows_of(files, ORDINALS) == [{"ordinal": 13}, {"ordinal": 11}]


def test_long_texts_are_read_in_small_pages_and_cut(tmp_path, monkeypatch):
    # Given ids among texts that are each a tenth of what is read at once
    monkeypatch.setattr("fanin.spark.ack.parquet_files._PAGE", 1 << 20)
    junk = ["x" * 100_000 + str(n) for n in range(60)]
    written(tmp_path, "a.parquet", {"item": ["7:g:1", *junk]})

    (splits,) = parquet_files(tmp_path).splits(1)
    pages = list(parquet_files(tmp_path).read(splits, InputSchema(by_id=True), reasons=False))

    assert len(pages) > 2
    items = [item for page in pages for item in page.column(0).to_pylist()]
    assert items == ["7:g:1", *["x" * LONGEST] * 60]


TEXTS, NUMBERS = pa.array(["7:g:1", None, "7:g:2", "7:g:1"]), pa.array([1, None, 2, 1])


def taken(name: str, column: Any) -> Any:
    rows = pa.RecordBatch.from_arrays([column], [name])
    return normalized(rows, BY_ID if name == "item" else ORDINALS).column(0)


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view()], ids=str
)
def test_ids_may_be_any_text(kind):
    found = taken("item", TEXTS.cast(kind))
    assert (found.to_pylist(), found.type in (pa.string(), pa.large_string())) == (TEXTS.to_pylist(), True)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.uint32(), pa.uint64()], ids=str)
def test_numbers_may_have_any_width(kind):
    assert taken("ordinal", NUMBERS.cast(kind)).equals(NUMBERS)


@pytest.mark.parametrize(("name", "values"), [("item", TEXTS), ("ordinal", NUMBERS)])
def test_columns_may_be_dictionaries_or_without_a_type(name, values):
    assert taken(name, values.dictionary_encode()).equals(values)
    assert taken(name, pa.nulls(2)).equals(pa.nulls(2, values.type))


def rejects(schema: InputSchema, *columns: Any) -> list[tuple[str, str]]:
    """Values and reasons of the rows that a task leaves out; item 1 is in a record before them."""
    row = given.batch(7, 9)
    good = [f"{given.block(row, 0, 9).prefix}:1"] if schema.by_id else [7, 1][-len(columns) :]
    records = [
        normalized(pa.RecordBatch.from_arrays(list(arrays), schema.columns), schema)
        for arrays in ([pa.array([one]) for one in good], columns)
    ]
    made = given.rows_of(coalesce_task(given.Given((row,)), schema)(iter(records)))
    assert sum(row["rows"] or 0 for row in made) == 1 + len(columns[0])
    return [(row["value"], row["reason"]) for row in made if row["reason"]]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("dictionary", [False, True])
def test_an_id_that_is_not_utf8_is_a_reject_and_not_the_end_of_its_file(kind, dictionary):
    large = kind in (pa.large_binary(), pa.large_string())
    values = pa.array([b"7:g:\xff", b"\xe97:g:2", None], pa.large_binary() if large else pa.binary())
    values = values.view(kind)  # which a file may call text
    found = rejects(BY_ID, values.dictionary_encode() if dictionary else values)
    malformed = [("7:g:\ufffd", "malformed"), ("\ufffd7:g:2", "malformed")]
    assert [one for one in found if one[0] in dict(malformed)] == malformed
    assert (None, "null") in found


def test_a_text_that_is_too_long_and_not_utf8_is_cut_like_any_other():
    # Given a column that says that it is UTF-8
    values = pa.array([b"\xff" * 300, b"7:g:2"]).view(pa.string())
    assert taken("item", values).to_pylist() == ["\ufffd" * LONGEST, "7:g:2"]


def test_a_number_of_more_than_63_bits_is_refused_with_its_file(tmp_path):
    # Given a file whose numbers fit, and another whose do not
    written(tmp_path, "a.parquet", {"ordinal": [1]})
    written(tmp_path, "b.parquet", {"ordinal": pa.array([1 << 63], pa.uint64())})
    with pytest.raises(InvalidRequest, match=r"b\.parquet cannot be .*: Integer value 92233720368547758"):
        rows_of(parquet_files(tmp_path), ORDINALS)
