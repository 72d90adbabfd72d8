"""Datasets as people leave them: every file counts, by the names of its columns, or an error says why."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fanin.errors import InvalidRequest
from fanin.spark.inputs.dialect import Dialect
from fanin.spark.inputs.formats import DatasetFormat
from fanin.spark.inputs.opening import Input, fingerprint_of, open_input
from fanin.spark.runtime.unreadable import LINE, PROBLEM
from tests.spark.setting import setting

FIELDS = ["item", "reason"]


def opened(spark: SparkSession, path: object, format_: str | None = None, **dialect: Any) -> list[Any]:
    """Item and reason of all rows that can be read, and the text of the others; sorted."""
    given = Input(str(path), DatasetFormat(format_) if format_ else None, Dialect(**dialect))
    rows = open_input(spark, given, fields=FIELDS).rows
    names = {name.lower(): name for name in rows.columns}
    picked = [F.col(names[name]) if name in names else F.lit(None) for name in FIELDS]
    found = rows.select(*picked, LINE, PROBLEM).collect()
    assert all((row[2] is None) == (row[3] is None) for row in found)
    return sorted((tuple(row[:2]) if row[2] is None else row[2] for row in found), key=str)


def parquet(file: Path, **columns: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file)


class TestCsv:
    def test_columns_are_taken_by_the_name_that_each_file_gives_them(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        # Given files of one folder with other columns, in another order, and of another case
        (tmp_path / "a.csv").write_text("item,note\na,x\n")
        (tmp_path / "b.csv").write_text("note,item\nx,b\n")
        (tmp_path / "c.csv").write_text("item,note,reason\nc,x,torn\n")
        (tmp_path / "d.csv").write_text("Reason,ITEM\nlate,d\n")
        (tmp_path / "e.csv").write_text("\n\n")
        (tmp_path / "f.csv").write_text("")
        (tmp_path / "g.csv.gz").write_bytes(gzip.compress(b"\n\xef\xbb\xbfx,item\n,g\n"))

        assert opened(spark, tmp_path, "csv") == [
            ("a", None),
            ("b", None),
            ("c", "torn"),
            ("d", "late"),
            ("g", None),
        ]

    def test_quotes_are_those_of_rfc_4180(self, spark: SparkSession, tmp_path: Path) -> None:
        # Given reasons with commas, quotes and line breaks within quotes, the last without the option
        (tmp_path / "a.csv").write_text(
            'reason,item\n"late, and ""torn"", too",a\n"two\n\nlines, ""here""",b\n,c\n5" pipe,d\n6" pipe,e\n'
        )

        assert opened(spark, tmp_path / "a.csv") == [
            ("a", 'late, and "torn", too'),
            ("b", 'two\n\nlines, "here"'),
            ("c", None),
            ("d", '5" pipe'),
            ("e", '6" pipe'),
        ]

    def test_a_mark_of_the_byte_order_is_not_part_of_a_name(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        (tmp_path / "a.csv").write_text("\ufeffitem\na\n")
        (tmp_path / "b.csv").write_text('\ufeffitem,reason\nb,"two\nlines"\n')
        (tmp_path / "c.json").write_text('\ufeff{"item": "c"}\n')

        assert opened(spark, tmp_path / "*.csv", "csv") == [("a", None), ("b", "two\nlines")]
        assert opened(spark, tmp_path / "c.json") == [("c", None)]

    def test_other_dialects(self, spark: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("item§reason\na§'it^'s; \"so\"'\n")
        (tmp_path / "b.csv").write_text('item\treason\nb\t5" pipe\n')

        assert opened(spark, tmp_path / "a.csv", delimiter="§", quote="'", escape="^") == [
            ("a", 'it\'s; "so"')
        ]
        assert opened(spark, tmp_path / "b.csv", delimiter="\t", quote="") == [("b", '5" pipe')]

    def test_lines_with_too_few_or_too_many_columns_cannot_be_read(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        (tmp_path / "a.csv").write_text("item,reason\na\nb,torn, badly\nc,\n")
        assert opened(spark, tmp_path / "a.csv") == [("c", None), "a", "b,torn, badly"]

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("item;reason\na;b\n", "a single column 'item;reason'; if ';' divides its columns"),
            ('item,reason\na,"never closed\nb,\n', "a.csv has a quote that is never closed"),
            ("item,reason,Item\na,b,c\n", "has the column 'item' twice"),
        ],
    )
    def test_what_would_be_read_wrongly_is_refused(
        self, spark: SparkSession, tmp_path: Path, text: str, why: str
    ) -> None:
        (tmp_path / "a.csv").write_text(text)
        with pytest.raises(InvalidRequest, match=why):
            opened(spark, tmp_path / "a.csv")

    def test_a_column_may_have_the_name_that_looks_divided(self, spark: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("item;reason\na;b\n")
        given = Input(str(tmp_path), DatasetFormat.CSV, Dialect(delimiter=","))
        assert open_input(spark, given, fields=[]).rows.columns[0] == "item;reason"

    def test_types_are_of_the_columns_that_they_name(self, spark: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("n,item\n5,a\n")
        (tmp_path / "b.csv").write_text("item,n\nb,x\n")
        given = Input(str(tmp_path), DatasetFormat.CSV)

        types = spark.createDataFrame([], "item string, N int").schema
        rows = open_input(spark, given, fields=[], types=types).rows.collect()
        assert sorted((row["item"], row[LINE]) for row in rows) == [("a", None), ("b", "b,x")]
        for wrong, why in (("item string", "it lacks n"), ("item string, n int, m int", "no file has m")):
            types = spark.createDataFrame([], wrong).schema
            with pytest.raises(InvalidRequest, match=why):
                open_input(spark, given, fields=[], types=types)


class TestJson:
    def test_fields_are_named_without_regard_to_case_unless_the_session_does(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        lines = ['{"item": "a", "Reason": "torn"}', '{"item": "b", "reason": null, "REASON": "x"}']
        (tmp_path / "a.json").write_text("\n".join(lines))

        assert opened(spark, tmp_path / "a.json") == [("a", "torn"), lines[1]]
        with setting(spark, "spark.sql.caseSensitive", "true"):
            assert opened(spark, tmp_path / "a.json") == [("a", None), ("b", None)]

    def test_two_objects_on_a_line_are_not_one(self, spark: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "a.json").write_text('{"item": "a"}{"item": "b"}\n {"item": "c", "reason": 1.10} \n')
        assert opened(spark, tmp_path / "a.json") == [("c", "1.10"), '{"item": "a"}{"item": "b"}']


class TestColumns:
    def test_schemas_of_all_files_are_merged(self, spark: SparkSession, tmp_path: Path) -> None:
        parquet(tmp_path / "pq" / "1.parquet", item=["a"])
        parquet(tmp_path / "pq" / "2.parquet", Reason=["torn"], item=["b"])
        spark.createDataFrame([("a",)], "item string").write.orc(f"{tmp_path}/orc/one")
        spark.createDataFrame([("torn", "b")], "reason string, item string").write.orc(f"{tmp_path}/orc/two")

        assert opened(spark, tmp_path / "pq") == [("a", None), ("b", "torn")]
        assert opened(spark, tmp_path / "orc", "orc") == [("a", None), ("b", "torn")]

    def test_types_that_do_not_fit_together_are_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        parquet(tmp_path / "1.parquet", item=["a"])
        parquet(tmp_path / "2.parquet", item=[5])
        with pytest.raises(InvalidRequest, match=r"(?i)merg"):
            opened(spark, tmp_path)

    def test_a_corrupt_file_is_named(self, spark: SparkSession, tmp_path: Path) -> None:
        parquet(tmp_path / "pq" / "1.parquet", item=["a"])
        (tmp_path / "pq" / "2 bad.parquet").write_text("not Parquet at all")
        (tmp_path / "bad.csv.gz").write_bytes(gzip.compress(b"item\n" + b"a\n" * 9_000)[:-20])

        with pytest.raises(InvalidRequest, match=r"2(%20| )bad\.parquet"):
            opened(spark, tmp_path / "pq")
        with pytest.raises(InvalidRequest, match=r"bad\.csv\.gz"):
            opened(spark, tmp_path / "bad.csv.gz")


class TestFiles:
    @pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
    def test_the_same_files_are_read_whatever_the_format(
        self, spark: SparkSession, tmp_path: Path, format_: str
    ) -> None:
        # Given files in folders below, hidden ones, and names that are patterns, with spaces or umlauts
        root = tmp_path / "a b ü"
        names = ["x", "sub/y", "day=1/z", "[1] {x}", "_day=1/w", "100%25"]
        for name in (*names, "_hidden", ".hidden", "_temporary/t", "sub/_t/t"):
            file = root / f"{name}.{format_}"
            file.parent.mkdir(parents=True, exist_ok=True)
            text = name.rpartition("/")[2]
            if format_ == "parquet":
                parquet(file, item=[text])
            else:
                file.write_text(f"item\n{text}\n" if format_ == "csv" else json.dumps({"item": text}))

        for path in (root, f"file:{root}", f"file://{root}/"):
            found = open_input(spark, Input(str(path), DatasetFormat(format_)), fields=FIELDS).rows.select(
                "item"
            )
            assert {row[0] for row in found.collect()} == {name.rpartition("/")[2] for name in names}

        one = f"{root}/[1] {{x}}.{format_}"
        assert [row[0] for row in opened(spark, one)] == ["[1] {x}"]
        assert [row[0] for row in opened(spark, f"{root}/s*/*.{format_}")] == ["y"]

    def test_folders_may_be_columns(self, spark: SparkSession, tmp_path: Path) -> None:
        for name in ("batch_id=7", "batch_id=8"):
            parquet(tmp_path / name / "x.parquet", ordinal=[3])

        rows = open_input(spark, Input(str(tmp_path)), fields=[]).rows

        assert {(row["batch_id"], row["ordinal"]) for row in rows.collect()} == {(7, 3), (8, 3)}

    @pytest.mark.parametrize("path", ["nowhere", "nowhere/*", "_hidden.csv"])
    def test_what_is_not_there_or_hidden_is_refused_by_its_name(
        self, spark: SparkSession, tmp_path: Path, path: str
    ) -> None:
        (tmp_path / "_hidden.csv").write_text("item\na\n")
        with pytest.raises(InvalidRequest, match="cannot be read: ") as refused:
            opened(spark, tmp_path / path)
        assert str(refused.value).startswith(f"{tmp_path}/{path} cannot be read: ")

    @pytest.mark.parametrize("format_", ["csv", "json", "parquet", "orc"])
    def test_a_folder_of_empty_files_has_no_rows(
        self, spark: SparkSession, tmp_path: Path, format_: str
    ) -> None:
        (tmp_path / f"0.{format_}").write_text("")
        assert opened(spark, tmp_path, format_) == []
        assert opened(spark, tmp_path / f"0.{format_}") == []

    def test_a_fingerprint_is_of_names_sizes_and_times(self, spark: SparkSession, tmp_path: Path) -> None:
        file, given = tmp_path / "a.csv", Input(str(tmp_path), DatasetFormat.CSV)
        file.write_text("item\na\n")
        before = fingerprint_of(spark, given)
        assert fingerprint_of(spark, given) == before

        file.write_text("item\nb\n")
        import os

        os.utime(file, (2_000_000_000, 2_000_000_000))
        assert fingerprint_of(spark, given) != before


class TestTables:
    @pytest.fixture
    def delta(self, tmp_path: Path) -> Path:
        """A Delta table as its log describes it: of its two files one counts."""
        parquet(tmp_path / "t" / "day=1" / "old.parquet", item=["deleted"])
        parquet(tmp_path / "t" / "day=1" / "new.parquet", item=["kept"])
        log = tmp_path / "t" / "_delta_log"
        log.mkdir()
        add = {"add": {"path": "day=1/new.parquet", "dataChange": True}}
        (log / "00000000000000000000.json").write_text(json.dumps(add))
        return tmp_path / "t"

    @pytest.fixture
    def iceberg(self, tmp_path: Path) -> Path:
        """The folders of an Iceberg table, with one snapshot."""
        parquet(tmp_path / "i" / "data" / "a.parquet", item=["a"])
        (tmp_path / "i" / "metadata").mkdir()
        (tmp_path / "i" / "metadata" / "v1.metadata.json").write_text('{"format-version": 2}')
        return tmp_path / "i"

    @pytest.mark.parametrize("below", ["", "day=1", "day=1/old.parquet", "*", ".."])
    def test_files_of_a_delta_table_are_not_read_as_they_are(
        self, spark: SparkSession, delta: Path, below: str
    ) -> None:
        with pytest.raises(InvalidRequest, match="t is a table of Delta, whose files also hold rows"):
            opened(spark, f"{delta}/{below}".rstrip("/"), "parquet")

    @pytest.mark.parametrize("below", ["", "data", "data/a.parquet", ".."])
    def test_files_of_an_iceberg_table_are_not_read_as_they_are(
        self, spark: SparkSession, iceberg: Path, below: str
    ) -> None:
        with pytest.raises(InvalidRequest, match="i is a table of Iceberg, whose files also hold rows"):
            opened(spark, f"{iceberg}/{below}".rstrip("/"), "parquet")

    def test_a_hudi_table_is_refused(self, spark: SparkSession, tmp_path: Path) -> None:
        parquet(tmp_path / "a.parquet", item=["a"])
        (tmp_path / ".hoodie").mkdir()
        with pytest.raises(InvalidRequest, match="--format table"):
            opened(spark, tmp_path)

    def test_a_session_without_the_source_says_what_it_needs(
        self, spark: SparkSession, delta: Path, iceberg: Path
    ) -> None:
        # Given nobody who says the format, when a folder is a table, then its own format is taken
        for path, name in ((delta, "delta"), (iceberg, "iceberg")):
            with pytest.raises(InvalidRequest, match=f"no source {name}; start Spark with its package"):
                opened(spark, path)

    def test_a_table_of_the_catalog_is_read_by_its_name(self, spark: SparkSession) -> None:
        spark.createDataFrame([("a", "torn")], "item string, Reason string").createOrReplaceTempView("acks")

        assert opened(spark, "acks", "table") == [("a", "torn")]
        with pytest.raises(InvalidRequest, match="no_such cannot be read"):
            opened(spark, "no_such", "table")


@pytest.fixture(autouse=True)
def _no_catalog_left(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.dropTempView("acks")
