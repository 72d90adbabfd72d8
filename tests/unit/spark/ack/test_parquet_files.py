"""Parquet files divided among tasks, and read by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fanin.errors import InvalidRequest
from fanin.spark.ack.input_schema import LONGEST, InputSchema
from fanin.spark.ack.parquet_files import ParquetFiles, _middle
from fanin.spark.inputs.listing import FoundFile

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


def test_splits_have_every_row_group_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given files of several row groups, and tasks for less than a file
    monkeypatch.setattr("fanin.spark.ack.parquet_files._LEAST", 1_000)
    for number in range(3):
        ordinals = range(number * 10_000, (number + 1) * 10_000)
        written(tmp_path / "files", f"{number}.parquet", {"ordinal": pa.array(ordinals)})
    files = ParquetFiles(str(tmp_path / "files"))

    splits = files.splits(7)
    read = [
        row["ordinal"]
        for split in splits
        for records in files.read(split, ORDINALS, reasons=False)
        for row in records.to_pylist()
    ]

    assert len(splits) == 7
    assert sorted(read) == list(range(30_000))


def test_tasks_have_as_many_rows_where_a_split_ends_behind_the_start_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given four files of almost one size; half of all bytes end just behind the start of the third
    monkeypatch.setattr("fanin.spark.ack.parquet_files._LEAST", 1_000)
    for number, spare in enumerate((0, 0, 10, 0)):
        texts = [f"{n:05}" for n in range(3_000)]
        texts[-1] += "x" * spare
        written(tmp_path / "files", f"{number}.parquet", {"item": texts})
    files = ParquetFiles(str(tmp_path / "files"))

    splits = files.splits(2)
    assert [(Path(split.path).name, split.start > 0) for split in splits[0]][-1] == ("2.parquet", False)

    # Then both tasks have as many row groups
    read = [
        sum(rows.num_rows for rows in files.read(split, InputSchema(by_id=True), reasons=False))
        for split in splits
    ]
    assert read == [6_000, 6_000]


def test_a_row_group_is_read_whatever_size_its_metadata_has() -> None:
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


def test_small_files_are_one_task(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path, f"{number}.parquet", {"ordinal": [number]})
    (splits,) = ParquetFiles(str(tmp_path)).splits(8)
    assert [Path(split.path).name for split in splits] == ["0.parquet", "1.parquet", "2.parquet"]


def test_huge_files_are_more_tasks_than_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "a.parquet", {"ordinal": pa.array(range(10_000))})
    files = ParquetFiles(str(tmp_path))
    (size,) = files.sizes.values()
    monkeypatch.setattr("fanin.spark.ack.parquet_files._MOST", size // 5)

    assert len(files.splits(2)) >= 5


def test_hidden_files_are_skipped_as_spark_does(tmp_path: Path) -> None:
    for name in ("a.parquet", "_b.parquet", ".c.parquet"):
        written(tmp_path, name, {"ordinal": [1]})
    written(tmp_path / "_temporary", "d.parquet", {"ordinal": [1]})
    written(tmp_path / "day=1", "e.parquet", {"ordinal": [1]})

    assert [Path(path).name for path in ParquetFiles(str(tmp_path)).sizes] == ["a.parquet", "e.parquet"]


def test_a_folder_without_files_has_no_schema_and_no_splits(tmp_path: Path) -> None:
    files = ParquetFiles(str(tmp_path))
    assert (files.schema, files.splits(4)) == (None, [])


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
def test_tasks_read_whole_numbers_of_64_bits_and_text(
    tmp_path: Path, schema: InputSchema, kind: pa.DataType, *, fits: bool
) -> None:
    written(tmp_path / "files", "a.parquet", {schema.columns[-1]: pa.array([], kind)})
    assert ParquetFiles(str(tmp_path / "files")).readable(schema) is fits


def test_only_the_columns_that_name_items_are_read(tmp_path: Path) -> None:
    written(tmp_path, "a.parquet", {"item": ["7:g:1", None], "payload": ["x", "y"]})
    assert rows_of(ParquetFiles(str(tmp_path)), InputSchema(by_id=True)) == [
        {"item": "7:g:1"},
        {"item": None},
    ]


def test_rows_with_a_reason_are_skipped_where_they_are_failures(tmp_path: Path) -> None:
    written(tmp_path, "a.parquet", {"ordinal": [1, 2], "reason": [None, "torn"]})
    files = ParquetFiles(str(tmp_path))
    assert rows_of(files, ORDINALS, reasons=True) == [{"ordinal": 1}]
    # And are refused where nobody expects failures
    with pytest.raises(InvalidRequest, match=r"a\.parquet has reasons of failures"):
        rows_of(files, ORDINALS)


def test_reasons_that_are_all_null_are_no_failures(tmp_path: Path) -> None:
    written(tmp_path, "a.parquet", {"ordinal": [1, 2], "Reason": pa.nulls(2, pa.string())})
    assert rows_of(ParquetFiles(str(tmp_path)), ORDINALS) == [{"ordinal": 1}, {"ordinal": 2}]


def test_a_file_that_lacks_a_column_has_nulls_there(tmp_path: Path) -> None:
    written(tmp_path, "a.parquet", {"batch_id": [7]})
    written(tmp_path, "b.parquet", {"batch_id": [7], "ordinal": pa.array([3], pa.int32())})
    assert rows_of(ParquetFiles(str(tmp_path)), InputSchema(by_id=False)) == [
        {"batch_id": 7, "ordinal": None},
        {"batch_id": 7, "ordinal": 3},
    ]


def test_names_are_found_in_each_file_without_regard_to_case(tmp_path: Path) -> None:
    # Given files that name their columns in other cases and orders
    written(tmp_path, "a.parquet", {"ordinal": [1, 2], "reason": [None, "torn"]})
    written(tmp_path, "b.parquet", {"Reason": ["late", None], "ORDINAL": [3, 4]})

    assert rows_of(ParquetFiles(str(tmp_path)), ORDINALS, reasons=True) == [{"ordinal": 1}, {"ordinal": 4}]
    exact = rows_of(ParquetFiles(str(tmp_path), exact=True), ORDINALS, reasons=True)
    assert exact == [{"ordinal": 1}, {"ordinal": None}, {"ordinal": None}]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    written(tmp_path, "a.parquet", {"ordinal": [1], "Ordinal": [2]})
    with pytest.raises(InvalidRequest, match=r"a\.parquet has a column twice, in ordinal, Ordinal"):
        rows_of(ParquetFiles(str(tmp_path)), ORDINALS)


@pytest.mark.parametrize("damage", ["header", "page"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, damage: str) -> None:
    written(tmp_path, "a.parquet", {"item": [f"7:g:{n}" for n in range(1_000)]})
    file = tmp_path / "a.parquet"
    content = file.read_bytes()
    file.write_bytes(b"junk" * 9 if damage == "header" else b"PAR1" + b"\xff" * 300 + content[304:])

    with pytest.raises(InvalidRequest, match=r"a\.parquet cannot be read as Parquet: "):
        rows_of(ParquetFiles(str(tmp_path)), InputSchema(by_id=True))


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_files_that_were_found_may_have_any_names(tmp_path: Path, prefix: str) -> None:
    # Given files with spaces, umlauts and percent signs in their paths, of which two were found
    folder = tmp_path / "a b%20ü"
    for name in ("x [1].parquet", "y#?.parquet", "z.parquet"):
        written(folder, name, {"ordinal": [len(name)]})
    found = [
        FoundFile(f"{prefix}{folder}/{name}", (folder / name).stat().st_size, 0)
        for name in ("x [1].parquet", "y#?.parquet")
    ]

    files = ParquetFiles(f"{prefix}{folder}", found)

    assert rows_of(files, ORDINALS) == [{"ordinal": 13}, {"ordinal": 11}]
    assert rows_of(ParquetFiles(f"{prefix}{folder}/z.parquet"), ORDINALS) == [{"ordinal": 9}]


def test_long_texts_are_read_in_small_pages_and_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given ids among texts that are each a tenth of what is read at once
    monkeypatch.setattr("fanin.spark.ack.parquet_files._PAGE", 1 << 20)
    junk = ["x" * 100_000 + str(n) for n in range(60)]
    written(tmp_path, "a.parquet", {"item": ["7:g:1", *junk]})

    (splits,) = ParquetFiles(str(tmp_path)).splits(1)
    pages = list(ParquetFiles(str(tmp_path)).read(splits, InputSchema(by_id=True), reasons=False))

    assert len(pages) > 2
    items = [item for page in pages for item in page.column(0).to_pylist()]
    assert items == ["7:g:1", *["x" * LONGEST] * 60]
