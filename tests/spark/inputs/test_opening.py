"""Formats that Spark reads: merged, or refused by the file; tables by their names."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.listing import find_files, load
from fanin.spark.inputs.opening import open_input
from fanin.spark.runtime.failures import refused_storage
from tests.spark.datasets import opened, parquet
from tests.spark.setting import setting


def test_schemas_of_all_files_are_merged(spark, tmp_path):
    parquet(tmp_path / "pq" / "1.parquet", item=["a"])
    parquet(tmp_path / "pq" / "2.parquet", Reason=["torn"], item=["b"])
    spark.createDataFrame([("a",)], "item string").write.orc(f"{tmp_path}/orc/one")
    spark.createDataFrame([("torn", "b")], "reason string, item string").write.orc(f"{tmp_path}/orc/two")

    assert opened(spark, tmp_path / "pq") == [("a", None), ("b", "torn")]
    assert opened(spark, tmp_path / "orc", "orc") == [("a", None), ("b", "torn")]


def test_files_of_the_same_schema_are_read_by_it(spark, tmp_path):
    for number in (1, 2):
        parquet(tmp_path / f"{number}.parquet", item=["a"] * number, reason=["torn"] * number)
    (tmp_path / ".hidden").write_text("not Parquet")
    (tmp_path / "0-empty.parquet").write_text("")
    found = open_input(spark, Dataset(tmp_path), fields=[])
    assert (found.promised, found.rows.count(), found.columns) == (3, 3, ["item", "reason"])

    # Given one more, with a column that only it has
    parquet(tmp_path / "4.parquet", item=["b"], note=["x"])
    found = open_input(spark, Dataset(tmp_path), fields=[])
    assert (found.promised, found.rows.count(), found.columns) == (4, 4, ["item", "reason", "note"])


def test_files_that_appear_while_a_folder_is_opened_are_not_read(spark, tmp_path):
    parquet(tmp_path / "1.parquet", item=["a"])
    paths = [file.path for file in find_files(spark, str(tmp_path))]
    parquet(tmp_path / "2.parquet", item=["b"])
    rows = load(spark.read.format("parquet"), str(tmp_path), paths)
    assert [row["item"] for row in rows.collect()] == ["a"]


def test_types_that_do_not_fit_together_are_refused(spark, tmp_path):
    parquet(tmp_path / "1.parquet", item=["a"])
    parquet(tmp_path / "2.parquet", item=[5])
    with pytest.raises(InvalidRequest, match=r"(?i)merg"):
        opened(spark, tmp_path)


def test_times_in_nanoseconds_are_refused_with_what_to_do(spark, tmp_path):
    # Given times as pandas writes them
    times = pa.array([1_790_000_000_123_456_789], pa.timestamp("ns"))
    pq.write_table(pa.table({"item": ["a"], "at": times}), tmp_path / "x.parquet")

    with pytest.raises(InvalidRequest, match=r'in pandas by to_parquet\(\.\.\., coerce_timestamps="us"\)'):
        opened(spark, tmp_path)


def test_names_of_columns_that_are_not_utf_8_are_refused(spark, tmp_path):
    # Given a file whose writer took the name of its column from Latin-1
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"Grö": ["a"]}), file, store_schema=False)
    file.write_bytes(file.read_bytes().replace("ö".encode(), b"\xf6\xdf"))
    with pytest.raises(
        InvalidRequest, match=r"rows\.parquet.* not UTF-8; the columns are Gr.+ Write the files"
    ):
        opened(spark, file)


def test_a_corrupt_file_is_named(spark, tmp_path):
    parquet(tmp_path / "pq" / "1.parquet", item=["a"])
    (tmp_path / "pq" / "2 bad.parquet").write_text("not Parquet at all")
    (tmp_path / "bad.csv.gz").write_bytes(gzip.compress(b"item\n" + b"a\n" * 9_000)[:-20])

    with pytest.raises(InvalidRequest, match=r"2(%20| )bad\.parquet"):
        opened(spark, tmp_path / "pq")
    with pytest.raises(InvalidRequest, match=r"bad\.csv\.gz"):
        opened(spark, tmp_path / "bad.csv.gz")


def test_a_file_that_turns_out_to_be_damaged_is_named_in_a_line(spark, tmp_path):
    # Given files that open well: compressed with what Spark does not have, encoded as it does not read, torn
    table = pa.table({"item": [f"row {n}" for n in range(2_000)], "x": [n / 3 for n in range(2_000)]})
    pq.write_table(table, tmp_path / "brotli.parquet", compression="brotli")
    pq.write_table(table, tmp_path / "split.parquet", use_dictionary=False, use_byte_stream_split=["x"])
    pq.write_table(table, tmp_path / "pages.parquet", use_dictionary=False)
    content = bytearray((tmp_path / "pages.parquet").read_bytes())
    content[2_000:9_000] = b"\xff" * 7_000
    (tmp_path / "pages.parquet").write_bytes(content)
    zeroed(table, tmp_path / "zeroed.parquet", write_page_checksum=True)
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(b'{"item": "a"}\n' * 9_000)[:-20])

    for file in sorted(tmp_path.iterdir()):
        rows = open_input(spark, Dataset(str(file)), fields=["item"]).rows
        with pytest.raises((PySparkException, Py4JJavaError)) as raised:
            rows.write.format("noop").mode("overwrite").save()
        told = refused_storage(raised.value)
        assert told is not None
        assert f"/{file.name} cannot be read: " in told
        assert "\n" not in told


def zeroed(table: pa.Table, path: Path, **options: bool) -> None:
    """Write a file whose first column has zeros in the middle of its page of gzip."""
    pq.write_table(table, path, compression="gzip", use_dictionary=False, **options)
    column = pq.read_metadata(path).row_group(0).column(0)
    middle, content = (
        column.data_page_offset + column.total_compressed_size // 2,
        bytearray(path.read_bytes()),
    )
    content[middle : middle + 200] = bytes(200)
    path.write_bytes(content)


def test_a_folder_of_other_files_is_not_taken_for_parquet(spark, tmp_path):
    # Given a folder whose own name says nothing, when nobody says the format, then it is Parquet
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv.gz").write_bytes(gzip.compress(b"item\na\n"))

    with pytest.raises(InvalidRequest, match=r"a\.csv\.gz"):
        opened(spark, tmp_path / "in")
    assert opened(spark, tmp_path / "in", "csv") == [("a", None)]


def test_a_table_of_the_catalog_is_read_by_its_name(spark):
    spark.createDataFrame([("a", "torn")], "item string, Reason string").createOrReplaceTempView("acks")

    assert opened(spark, "acks", "table") == [("a", "torn")]
    with pytest.raises(InvalidRequest, match="no_such cannot be read"):
        opened(spark, "no_such", "table")


@pytest.fixture(autouse=True)
def _no_catalog_left(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.dropTempView("acks")


def test_fields_are_named_without_regard_to_case_unless_the_session_does(spark, tmp_path):
    lines = ['{"item": "a", "Reason": "torn"}', '{"item": "b", "reason": null, "REASON": "x"}']
    (tmp_path / "a.json").write_text("\n".join(lines))

    assert opened(spark, tmp_path / "a.json") == [("a", "torn"), lines[1]]
    with setting(spark, "spark.sql.caseSensitive", "true"):
        assert opened(spark, tmp_path / "a.json") == [("a", None), ("b", None)]


def test_two_objects_on_a_line_are_not_one(spark, tmp_path):
    (tmp_path / "a.json").write_text('{"item": "a"}{"item": "b"}\n {"item": "c", "reason": 1.10} \n')
    assert opened(spark, tmp_path / "a.json") == [("c", "1.10"), '{"item": "a"}{"item": "b"}']


def test_a_field_that_is_there_twice_is_neither_of_both(spark, tmp_path):
    # Given two items in an object, a field twice that nobody asks for, and one below a field
    twice, other = '{"item": "a", "item": "b"}', '{"item": "c", "x": 1, "x": 2}'
    (tmp_path / "a.json").write_text(f'{twice}\n{other}\n{{"item": {{"x": 1, "x": 2}}}}')

    assert opened(spark, tmp_path / "a.json") == [("c", None), ('{"x": 1, "x": 2}', None), twice]
