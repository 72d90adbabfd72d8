"""Datasets as message bodies: each row is either sent or left out, with a reason."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.testing import assertDataFrameEqual

from fanin.client.sqs import REQUEST_BYTES
from fanin.errors import InvalidRequest
from fanin.spark.fanout import bodies
from fanin.spark.inputs.formats import Dataset
from fanin.spark.inputs.opening import open_input
from fanin.spark.runtime import rejects
from tests.spark.datasets import undecodable
from tests.spark.setting import setting


def read(spark: SparkSession, dataset: Dataset, body: str | None = None) -> DataFrame:
    opened = open_input(spark, dataset, fields=[] if body is None else [body])
    return bodies.of_rows(opened.rows, body, opened.format)


def split(
    spark: SparkSession, dataset: Dataset, body: str | None = None
) -> tuple[list[str], list[tuple[str, str]]]:
    """The bodies of a dataset, and the values and reasons of what was left out; sorted."""
    rows = read(spark, dataset, body)
    assert rows.schema.names == [bodies.BODY, *rejects.SCHEMA.names]
    found = rows.collect()
    assert all((row["body"] is None) == (row["reason"] is not None) for row in found)
    return (
        sorted(row["body"] for row in found if row["reason"] is None),
        sorted((row["value"], row["reason"]) for row in found if row["reason"] is not None),
    )


def parquet(frame: DataFrame, folder: Path) -> Dataset:
    frame.write.parquet(str(folder / "rows"))
    return Dataset(str(folder / "rows"))


def test_a_parquet_row_is_sent_as_an_object_with_its_nulls(spark, tmp_path):
    rows = spark.createDataFrame(
        [(1, "a", [1, 2]), (2, None, None)], "id long, `the.name` string, list array<int>"
    )

    sent, left = split(spark, parquet(rows, tmp_path))

    assert [json.loads(body) for body in sent] == [
        {"id": 1, "the.name": "a", "list": [1, 2]},
        {"id": 2, "the.name": None, "list": None},
    ]
    assert left == []


def test_a_column_may_be_the_body_and_rows_without_one_are_left_out(spark, tmp_path):
    large = "x" * REQUEST_BYTES
    texts = ["a", None, "", large, "☂ 🌂\t\n", "a\x00b", "\uffff"]
    rows = spark.createDataFrame(list(enumerate(texts, 1)), "id long, text string")

    dataset = parquet(rows, tmp_path)
    sent, left = split(spark, dataset, "text")

    assert sent == ["a", "☂ 🌂\t\n"]
    assert [(json.loads(value)["id"], reason) for value, reason in left] == [
        (2, "null"),
        (3, "malformed"),
        (4, "too_large"),
        (6, "malformed"),
        (7, "malformed"),
    ]


@pytest.mark.parametrize(("size", "sent"), [(0, 1), (1, 0)])
def test_the_largest_body_is_counted_in_bytes(spark, tmp_path, size, sent):
    text = "☂" * ((REQUEST_BYTES - 256) // 3) + "x" * ((REQUEST_BYTES - 256) % 3 + size)
    dataset = parquet(spark.createDataFrame([(text,)], "text string"), tmp_path)

    assert len(split(spark, dataset, "text")[0]) == sent


def test_malformed_lines_of_csv_are_left_out(spark, any_ansi, tmp_path):
    # Given a CSV file with quoted commas and quotes, lines too short and too long, and a bad number
    file = tmp_path / "rows.csv"
    file.write_text('id,name,n\n1,"a, ""b""",5\n2,short\n3,long,6,7\n4,not a number,x\n5,,8\n')
    # When it is read, then the lines are left out as they came, and every line is either sent or left out
    sent, left = split(spark, Dataset(str(file), schema="id long, name string, n int"))
    assert [json.loads(one) for one in sent] == [
        {"id": 1, "name": 'a, "b"', "n": 5},
        {"id": 5, "name": None, "n": 8},
    ]
    assert left == [("2,short", "malformed"), ("3,long,6,7", "malformed"), ("4,not a number,x", "malformed")]


def test_csv_without_a_schema_is_text(spark, tmp_path):
    (tmp_path / "rows.csv").write_text("id,when\n007,2026-11-21\n")

    sent, _ = split(spark, Dataset(tmp_path / "rows.csv", "csv"))

    assert [json.loads(body) for body in sent] == [{"id": "007", "when": "2026-11-21"}]


def test_of_a_column_of_files_and_folders_the_folder_s_value_is_sent(spark, tmp_path):
    spark.createDataFrame([(4, "a")], "n int, z string").write.parquet(f"{tmp_path}/in/n=3")

    sent, left = split(spark, Dataset(f"{tmp_path}/in"))

    assert ([json.loads(body) for body in sent], left) == ([{"n": 3, "z": "a"}], [])


def test_numbers_of_csv_that_are_not_finite_are_left_out(spark, any_ansi, tmp_path):
    # Given cells that JSON has no number for, between others that Java takes for numbers
    lines = [f'{cell},"a,""b"""' for cell in ("1e999", "-1e999", "NaN", "nan", "Inf", "-Infinity")]
    file = tmp_path / "rows.csv"
    file.write_text("\n".join(["x,t", "1.5,a;b", ",a;b", *lines, " 2e3 ,", '"",""', "3,4,5", "nothing,b"]))

    sent, left = split(spark, Dataset(str(file), schema="x double, t string"))
    # Then their lines are left out as they came, and those that are wrong otherwise
    assert [json.loads(one) for one in sent] == [
        {"x": 1.5, "t": "a;b"},
        {"x": 2000.0, "t": None},
        {"x": None, "t": "a;b"},
        {"x": None, "t": None},
    ]
    assert left == sorted((line, "malformed") for line in [*lines, "3,4,5", "nothing,b"])


def test_a_number_that_is_not_finite_says_so(spark, tmp_path):
    (tmp_path / "rows.csv").write_text("n;x\n1; 1e39\n2;1e38\n")
    dataset = Dataset(tmp_path / "rows.csv", schema="n int, X float", delimiter=";", quote="")

    (left,) = read(spark, dataset).where("reason IS NOT NULL").collect()

    assert left["value"] == "1; 1e39"
    assert left["detail"] == "a number is not finite, or too large for its column's type"


def test_numbers_of_parquet_that_are_not_finite_are_sent_as_text(spark, tmp_path):
    rows = spark.sql("SELECT double('NaN') AS a, double('Infinity') AS b, float('-Infinity') AS c")

    (sent,), _ = split(spark, parquet(rows, tmp_path))

    assert json.loads(sent) == {"a": "NaN", "b": "Infinity", "c": "-Infinity"}


def test_line_breaks_within_quotes(spark, tmp_path):
    (tmp_path / "rows.csv").write_text('id,text\n1,"two\n\nlines, really"\n2,one\n')

    sent, left = split(spark, Dataset(tmp_path / "rows.csv", "csv", multiline=True), "text")

    assert (sent, left) == (["one", "two\n\nlines, really"], [])


def test_times_keep_their_microseconds(spark, tmp_path):
    rows = spark.sql(
        "SELECT TIMESTAMP '2026-11-21 18:00:00.123456' AS at,"
        " TIMESTAMP_NTZ '2026-11-21 18:00:00.000001' AS local"
    )

    dataset = parquet(rows, tmp_path)
    with setting(spark, "spark.sql.session.timeZone", "America/New_York"):
        (sent,), _ = split(spark, dataset)

    assert json.loads(sent) == {"at": "2026-11-21T18:00:00.123456Z", "local": "2026-11-21T18:00:00.000001"}


def test_bytes_of_another_encoding_are_left_out(spark, tmp_path):
    # Given a line of Latin-1 among lines of UTF-8, one of which has the very character that Java puts there
    lines = ["id,name", "1,Zoé", "2,\ufffd"]
    (tmp_path / "utf8.csv").write_text("\n".join(lines))
    (tmp_path / "mixed.csv").write_bytes(b"id,name\n3,caf\xe9\n4,Z\xc3\xbcrich\n")
    # When it is read as UTF-8, then that line alone is a reject
    sent, left = split(spark, Dataset(str(tmp_path), "csv"))
    assert [json.loads(one)["name"] for one in sent] == ["Zoé", "\ufffd", "Zürich"]
    assert left == [('{"id":"3","name":"caf\ufffd"}', "malformed")]
    # And in its own encoding it is right
    sent, _ = split(spark, Dataset(tmp_path / "mixed.csv", encoding="ISO-8859-1"), "name")
    assert sent == ["ZÃ¼rich", "café"]


def test_text_of_parquet_that_is_not_utf8_is_left_out_wherever_it_is(spark, tmp_path):
    # Given text of Latin-1 in a column, an array, a structure, and the keys and values of a map
    good, bad = (text.encode("latin-1") for text in ("good", "Gr\xfc\xdfe"))
    words = [[bad if at == place else good for at in range(5)] for place in range(6)]
    column, item, field, key, value = (undecodable(*one) for one in zip(*words, strict=True))
    each = pa.array(range(7), pa.int32())
    nested = {
        "list": pa.ListArray.from_arrays(each, item),
        "struct": pa.StructArray.from_arrays([field], ["the.field"]),
        "map": pa.MapArray.from_arrays(each, key, value),
    }
    pq.write_table(pa.table({"n": range(6), "text": column, **nested}), tmp_path / "rows.parquet")
    # When rows are sent, then the one that is text goes out, and the others say which column is not
    found = read(spark, Dataset(tmp_path / "rows.parquet")).collect()
    assert [json.loads(row["body"])["n"] for row in found if row["reason"] is None] == [5]
    assert [row["detail"] for row in found[:5]] == [
        f"the column {name} has bytes that are not UTF-8" for name in ("text", "list", "struct", "map", "map")
    ]
    assert {row["reason"] for row in found[:5]} == {"malformed"}
    # And so it is where the column is the body, and where it is compared without case
    sent, left = split(spark, Dataset(tmp_path / "rows.parquet"), "text")
    assert (sent, len(left)) == (["good"] * 5, 1)
    if spark.version >= "4":
        rows = spark.read.parquet(str(tmp_path / "rows.parquet")).selectExpr(
            "text COLLATE UNICODE_CI AS text"
        )
        assert bodies.of_rows(rows).where("reason IS NOT NULL").count() == 1


@pytest.mark.parametrize("kind", ["date", "timestamp", "binary", "array<int>", "struct<a: int>"])
def test_a_map_whose_keys_json_has_no_form_for_is_refused(spark, tmp_path, kind):
    rows = spark.createDataFrame([], f"id long, deep array<struct<by: map<{kind}, int>>>")
    dataset = parquet(rows, tmp_path)

    with pytest.raises(InvalidRequest, match=r"the column deep has a map whose keys are of the type"):
        read(spark, dataset)
    with pytest.raises(InvalidRequest, match="the column deep"):
        bodies.with_body(rows)
    assert split(spark, dataset, "id") == ([], [])


def test_a_body_without_text_is_refused(spark):
    rows = spark.sql("SELECT named_struct('a', 1) AS some, array(1) AS list, 1 AS n")
    for body, why in (("some", "has no text"), ("list", "has no text"), ("nobody", "there is no column")):
        with pytest.raises(InvalidRequest, match=why):
            bodies.of_rows(rows, body)
    assert [row.body for row in bodies.of_rows(rows, "n").collect()] == ["1"]


def test_keys_of_maps_that_are_numbers_are_sent_as_they_are_written(spark, tmp_path):
    rows = spark.sql("SELECT map(1, 'a') AS whole, map(1.50, 'b') AS decimal, map(true, 'c') AS flag")

    (sent,), _ = split(spark, parquet(rows, tmp_path))

    assert json.loads(sent) == {"whole": {"1": "a"}, "decimal": {"1.50": "b"}, "flag": {"true": "c"}}


@pytest.mark.parametrize("encoding", ["windows-1252", "utf-16"])
def test_other_encodings(spark, tmp_path, encoding):
    (tmp_path / "rows.csv").write_bytes("id,naïve\n1,“x”\n".encode(encoding))
    (tmp_path / "rows.json").write_bytes('{"naïve": "“x”"}'.encode(encoding))

    for name in ("rows.csv", "rows.json"):
        dataset = Dataset(tmp_path / name, encoding=encoding, multiline=True)
        assert split(spark, dataset, "naïve") == (["“x”"], [])


def test_a_line_of_json_in_another_encoding_is_left_out(spark, tmp_path):
    (tmp_path / "rows.json").write_bytes(b'{"a": "caf\xe9"}\n{"a": "b"}\n')

    assert split(spark, Dataset(tmp_path / "rows.json")) == (
        ['{"a": "b"}'],
        [('{"a": "caf\ufffd"}', "malformed")],
    )
    assert split(spark, Dataset(tmp_path / "rows.json", encoding="latin-1"), "a") == (["b", "café"], [])


def test_a_line_of_json_is_sent_as_it_is(spark, tmp_path):
    # Given numbers that no double holds, an order of keys, nulls, and lines that are empty or no objects
    good = ['{"n": 123456789012345678901234567890, "b": null, "a": 1.10}', "{}"]
    bad = ["[1]", '"text"', '{"a": ', "nonsense", "null", '{"a":1}{"b":2}', '{"a":1} junk', "{'a': 1}"]
    bad += ['{"a": NaN}', '{"a": 01}', '{"a": 1,}', '{"a": "\t"}', "[" * 100_000]
    (tmp_path / "rows.json").write_text("\n".join([*good, "", *bad, ""]))

    sent, left = split(spark, Dataset(tmp_path / "rows.json", "json"))

    assert sent == sorted(good)
    assert left == sorted((line, "malformed") for line in bad)


def test_a_field_of_json_may_be_the_body(spark, tmp_path):
    (tmp_path / "rows.json").write_text(
        '{"the name": "a"}\n{"other": 1}\n{"the name": {"deep": [1]}}\n{"it\'s": 1.10}'
    )

    sent, left = split(spark, Dataset(tmp_path / "rows.json", "json"), "the name")

    assert sent == ["a", '{"deep": [1]}']
    assert left == [('{"it\'s": 1.10}', "null"), ('{"other": 1}', "null")]
    assert split(spark, Dataset(tmp_path / "rows.json"), "it's")[0] == ["1.10"]


def test_a_file_of_json_may_be_an_array(spark, tmp_path):
    (tmp_path / "array.json").write_text('[\n {"a": 1},\n {"a":\n 2}\n]\n')
    (tmp_path / "object.json").write_text('{\n"a": 3}')
    (tmp_path / "none.json").write_text("[ ]")
    (tmp_path / "half.json").write_text('[{"a": 4}, {"a": 5')

    sent, left = split(spark, Dataset(f"{tmp_path}/*.json", multiline=True))

    assert sent == sorted(['{"a": 1}', '{"a":\n 2}', '{\n"a": 3}', '{"a": 4}'])
    assert left == [(', {"a": 5', "malformed")]


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ({"path": "nowhere"}, "nowhere"),
        ({}, "no column 'missing'; there are id"),
        ({"format": "csv", "schema": "id lon g"}, "is not DDL"),
        ({"schema": "id long"}, "a parquet dataset takes no schema"),
    ],
)
def test_a_dataset_that_cannot_be_read_is_refused(spark, tmp_path, dataset, message):
    path = parquet(spark.range(1), tmp_path).path

    with pytest.raises(InvalidRequest, match=message):
        read(spark, Dataset(**{"path": path, **dataset}), "missing")


def test_a_frame_gets_its_rows_as_bodies(spark):
    frame = spark.createDataFrame([(1, None)], "id long, name string")

    told = bodies.with_body(frame)

    expected = spark.createDataFrame([(1, None, '{"id":1,"name":null}')], "id long, name string, body string")
    assertDataFrameEqual(told, expected)


def test_columns_that_differ_by_case_alone_are_refused(spark):
    with pytest.raises(InvalidRequest, match="two columns 'ID': 'id' and 'ID'; rename one of them"):
        bodies.of_rows(spark.range(3).selectExpr("id", "id AS ID"))


def test_a_row_with_text_that_is_not_utf8_gets_no_body(spark):
    frame = spark.sql(
        "SELECT CAST(X'63616665' AS STRING) AS text UNION ALL SELECT CAST(X'636166e9' AS STRING)"
    )

    told = bodies.with_body(frame).select("body")

    assert [row["body"] for row in told.sort(F.col("body").isNull()).collect()] == ['{"text":"cafe"}', None]
