"""CSV as people leave it: every file counts, by the names of its columns, or an error says why."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import DatasetFormat, Dialect
from fanin.spark.inputs.opening import Input, open_input
from fanin.spark.runtime.unreadable import LINE
from tests.spark.datasets import opened


def test_columns_are_taken_by_the_name_that_each_file_gives_them(spark: SparkSession, tmp_path: Path) -> None:
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


def test_quotes_are_those_of_rfc_4180(spark: SparkSession, tmp_path: Path) -> None:
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


def test_a_mark_of_the_byte_order_is_not_part_of_a_name(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufeffitem\na\n")
    (tmp_path / "b.csv").write_text('\ufeffitem,reason\nb,"two\nlines"\n')
    (tmp_path / "c.json").write_text('\ufeff{"item": "c"}\n')

    assert opened(spark, tmp_path / "*.csv", "csv") == [("a", None), ("b", "two\nlines")]
    assert opened(spark, tmp_path / "c.json") == [("c", None)]


def test_other_dialects(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item§reason\na§'it^'s; \"so\"'\n")
    (tmp_path / "b.csv").write_text('item\treason\nb\t5" pipe\n')

    assert opened(spark, tmp_path / "a.csv", delimiter="§", quote="'", escape="^") == [("a", 'it\'s; "so"')]
    assert opened(spark, tmp_path / "b.csv", delimiter="\t", quote="") == [("b", '5" pipe')]


def test_lines_with_too_few_or_too_many_columns_cannot_be_read(spark: SparkSession, tmp_path: Path) -> None:
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
    spark: SparkSession, tmp_path: Path, text: str, why: str
) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InvalidRequest, match=why):
        opened(spark, tmp_path / "a.csv")


def test_a_column_may_have_the_name_that_looks_divided(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item;reason\na;b\n")
    given = Input(str(tmp_path), DatasetFormat.CSV, Dialect(delimiter=","))
    assert open_input(spark, given, fields=[]).rows.columns[0] == "item;reason"


def test_types_are_of_the_columns_that_they_name(spark: SparkSession, tmp_path: Path) -> None:
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
