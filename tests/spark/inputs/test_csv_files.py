"""CSV as people leave it: every file counts, by the names of its columns, or an error says why."""

import gzip
import lzma
import zlib
from dataclasses import replace

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.inputs import csv_files
from fanin.spark.inputs.formats import Dataset, Dialect
from fanin.spark.inputs.listing import find_files
from fanin.spark.inputs.opening import open_input
from fanin.spark.runtime.unreadable import LINE
from tests.spark.datasets import opened


def test_columns_are_taken_by_the_name_that_each_file_gives_them(spark, tmp_path):
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


def test_quotes_are_those_of_rfc_4180(spark, tmp_path):
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


def test_line_ends_within_quotes_stay_as_they_are(spark, tmp_path):
    # Given files whose lines end in each way, with each way within quotes, also in a header, and packed
    ways = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
    texts = {f"{a} in {b}": (one, other) for a, one in ways.items() for b, other in ways.items()}
    for name, (inner, end) in texts.items():
        text = f'item,reason,"x{inner}y"{end}{name},"{inner}late{inner}",1{end}{name}!,"",2{end}'
        packed = name.startswith("cr ")
        (tmp_path / f"{name}.csv{'.gz' * packed}").write_bytes(
            gzip.compress(text.encode()) if packed else text.encode()
        )

    rows = dict(opened(spark, tmp_path, "csv"))

    assert {name: rows[name] for name in texts} == {
        name: f"{inner}late{inner}" for name, (inner, _) in texts.items()
    }


@pytest.mark.parametrize(
    ("name", "text", "dialect"),
    [
        ("quote in a header.csv", 'item,size (")\r\na,"5\nx"\r\nb",6\r\n', {}),
        ("other quote.csv", "item,it's\na,'5\nx'\nb',6\n", {"quote": "'"}),
        ("doubled.csv", 'item,c\r\r\na,"5\nx"\r\r\nb,6\r\r\n', {}),
        ("at the end of the head.csv", f'item,{"c" * 65_530}\r\na,"5\nx"\r\nb,6\r\n', {}),
        ("escaped.csv", 'item,"6\\" c"\r\na,"5\nx"\r\nb,6\r\n', {"escape": "\\"}),
        ("packed.csv.deflate", 'item,c\r\na,"5\nx"\r\nb,6\r\n', {}),
    ],
)
def test_line_ends_are_not_mistaken(spark, tmp_path, name, text, dialect):
    packed = name.endswith("deflate")
    (tmp_path / name).write_bytes(zlib.compress(text.encode()) if packed else text.encode())

    rows = open_input(spark, Dataset(str(tmp_path / name), "csv", **dialect), fields=[]).rows.collect()

    assert [row[1] for row in rows] == ["5\nx", "6"]


def test_a_mark_of_the_byte_order_is_not_part_of_a_name(spark, tmp_path):
    (tmp_path / "a.csv").write_text("\ufeffitem\na\n")
    (tmp_path / "b.csv").write_text('\ufeffitem,reason\nb,"two\nlines"\n')
    (tmp_path / "c.json").write_text('\ufeff{"item": "c"}\n')

    assert opened(spark, tmp_path / "*.csv", "csv") == [("a", None), ("b", "two\nlines")]
    assert opened(spark, tmp_path / "c.json") == [("c", None)]


def test_other_dialects(spark, tmp_path):
    (tmp_path / "a.csv").write_text("item§reason\na§'it^'s; \"so\"'\n")
    (tmp_path / "b.csv").write_text('item\treason\nb\t5" pipe\n')

    assert opened(spark, tmp_path / "a.csv", delimiter="§", quote="'", escape="^") == [("a", 'it\'s; "so"')]
    assert opened(spark, tmp_path / "b.csv", delimiter="\t", quote="") == [("b", '5" pipe')]


def test_lines_with_too_few_or_too_many_columns_cannot_be_read(spark, tmp_path):
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
def test_what_would_be_read_wrongly_is_refused(spark, tmp_path, text, why):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InvalidRequest, match=why):
        opened(spark, tmp_path / "a.csv")


def test_a_column_may_have_the_name_that_looks_divided(spark, tmp_path):
    (tmp_path / "a.csv").write_text("item;reason\na;b\n")
    given = Dataset(str(tmp_path), "csv", delimiter=",")
    assert open_input(spark, given, fields=[]).rows.columns[0] == "item;reason"


def test_types_are_of_the_columns_that_they_name(spark, tmp_path):
    (tmp_path / "a.csv").write_text("n,item\n5,a\n")
    (tmp_path / "b.csv").write_text("item,n\nb,x\n")
    given = Dataset(tmp_path, "csv", schema="item string, N int")

    rows = open_input(spark, given, fields=[]).rows.collect()
    assert sorted((row["item"], row[LINE]) for row in rows) == [("a", None), ("b", "b,x")]
    for wrong, why in (("item string", "it lacks n"), ("item string, n int, m int", "no file has m")):
        with pytest.raises(InvalidRequest, match=why):
            open_input(spark, replace(given, schema=wrong), fields=[])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("latin.csv", "id,größe\n1,10\n".encode("latin-1")),
        ("wide.csv", "id,size\n1,10\n".encode("utf-16")),
        ("wide-without-mark.csv", "id,size\n1,10\n".encode("utf-16-le")),
        ("packed.csv", lzma.compress(b"id,size\n1,10\n")),
        ("gzip.csv", gzip.compress(b"id,size\n1,10\n", mtime=0)),
        ("packed.csv.xz", lzma.compress(b"id,size\n1,10\n")),
    ],
    ids=["latin", "utf-16", "utf-16 without mark", "xz", "gzip", "xz by name"],
)
def test_a_header_that_is_not_text_is_refused_with_what_to_do(spark, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)

    with pytest.raises(
        InvalidRequest, match=rf"{name} .*(--encoding.* windows-1252 or UTF-16|gzip or bzip2)"
    ):
        opened(spark, tmp_path / name, "csv")


def test_a_header_of_a_whole_document_is_refused(spark, tmp_path):
    (tmp_path / "rows.csv").write_text(f'7,"{"x" * 140_000}"\n')
    with pytest.raises(InvalidRequest, match=r"the header of .*rows.csv cannot be read: field larger"):
        opened(spark, tmp_path / "rows.csv", "csv")


@pytest.mark.parametrize("format_", ["csv", "json"])
@pytest.mark.parametrize("packed", ["lz4", "SNAPPY"])
def test_text_of_which_hadoop_would_read_nothing_is_refused(spark, tmp_path, format_, packed):
    (tmp_path / f"a.{format_}").write_text("n\n1\n")
    (tmp_path / f"b.{format_}.{packed}").write_text("n\n1\n")
    with pytest.raises(InvalidRequest, match=rf"Spark reads .*b.{format_}.{packed} only as Hadoop packs it"):
        opened(spark, tmp_path, format_)


def test_headers_that_differ_in_bytes_of_their_encoding_are_two(spark, tmp_path):
    # Given two files of Latin-1 whose headers would be the same text if they were read as UTF-8
    (tmp_path / "1.csv").write_bytes("item,ö\na,1\n".encode("latin-1"))
    (tmp_path / "2.csv").write_bytes("ö,item\n2,b\n".encode("latin-1"))
    (tmp_path / "3.csv").write_bytes("item,ü\nc,3\n".encode("latin-1"))

    rows = open_input(spark, Dataset(str(tmp_path), "csv", encoding="ISO-8859-1"), fields=[]).rows

    found = {row["item"]: (row["ö"], row["ü"]) for row in rows.collect()}
    assert found == {"a": ("1", None), "b": ("2", None), "c": (None, "3")}


@pytest.mark.parametrize("dialect", [Dialect(), Dialect(quote="'", escape="^"), Dialect(encoding="latin-1")])
def test_small_files_are_looked_through_as_spark_does(spark, tmp_path, dialect, monkeypatch):
    # Given headers behind blank lines and marks, ends of lines of all kinds, quotes, and bytes of no encoding
    contents = [
        b"a,b\n1,2\n",
        b"\r\n  \r\xef\xbb\xbfa,b\r1,2",
        b"\xef\xbb\xbf\na,'b'\n\"x\ny\",2\n",
        b"a,'b^^'\n'x^'\ny',2\n'^'',1\n",
        b"a,\xf6\n1,\x0b\x0c\x1c2\n",
        b"\n \n",
        "a,\u2028\x85\n''\"\",\n".encode(),
    ]
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.csv").write_bytes(content)
    files = find_files(spark, str(tmp_path))
    found = csv_files._inspect(spark, files, dialect)
    # When there are more bytes, so that tasks of Spark look through the lines
    monkeypatch.setattr(csv_files, "_FEW_BYTES", 0)
    assert csv_files._inspect(spark, files, dialect) == found
