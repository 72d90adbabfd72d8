"""Which format a dataset has when nobody says it, and how its text is written down."""

import json
from pathlib import Path

import pytest

from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import Dataset, DatasetFormat, Dialect, format_of_path
from fanin.spark.inputs.json_lines import objects


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("s3://bucket/trips", "parquet"),
        ("trips.parquet/", "parquet"),
        ("a.b/trips.CSV.gz", "csv"),
        ("a.csv/trips", "parquet"),
        ("trips-2024.03.jsonl", "json"),
        ("acks/*.ndjson", "json"),
    ],
)
def test_suffixes_say_the_format(path, form):
    # Given a path, when nobody says its format, then the suffix does
    assert format_of_path(path) == form


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"encoding": "nonsense"}, "no encoding 'nonsense'"),
        ({"quote": "''"}, "the quote must be a single character"),
        ({"escape": "ab"}, "the escape must be a single character"),
        ({"delimiter": ""}, "the delimiter is empty"),
    ],
)
def test_what_makes_no_sense_is_refused(given, why):
    with pytest.raises(InvalidRequest, match=why):
        Dialect(**given)


@pytest.mark.parametrize(
    ("encoding", "wide"),
    [("UTF-8", False), ("latin-1", False), ("windows-1252", False), ("UTF-16LE", True), ("utf32", True)],
)
def test_lines_of_wide_encodings_cannot_be_divided(encoding, wide):
    assert Dialect(encoding=encoding).wide is wide


@pytest.mark.parametrize(
    ("encoding", "javas"),
    [("latin-1", "ISO-8859-1"), ("l9", "ISO-8859-15"), ("windows-1252", "windows-1252")],
)
def test_spark_is_told_an_encoding_by_a_name_that_java_knows(encoding, javas):
    assert Dialect(encoding=encoding).csv_options()["encoding"] == javas


def test_a_quote_escapes_itself_unless_another_does():
    assert (Dialect().inner_escape, Dialect(quote="'").inner_escape) == ('"', "'")
    assert Dialect(escape="\\").csv_options()["escape"] == "\\"
    assert Dialect(quote="").csv_options()["quote"] == ""


def test_a_description_has_every_option_as_json():
    dataset = Dataset(Path("rows.csv"), DatasetFormat.CSV, schema="id long", delimiter=";", multiline=True)
    assert json.loads(json.dumps(dataset.describe())) == {
        "path": "rows.csv",
        "format": "csv",
        "schema": "id long",
        "multiline": True,
        "delimiter": ";",
        "encoding": "utf-8",
        "quote": '"',
        "escape": None,
    }


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("rows", "xml"), "'xml' is not a DatasetFormat: name one of parquet, csv, "),
        ((7,), "the path of a dataset must be a path, such as .* not 7"),
        (("",), "must be a path"),
        ((Path("s3://lake/rows"),), "a Path has one slash; give the text s3://lake/rows"),
    ],
)
def test_what_is_not_a_dataset_is_refused(given, why):
    with pytest.raises(InvalidRequest, match=why):
        Dataset(*given)


@pytest.mark.parametrize(("line", "rows"), [(" \t\r", 0), ("\u00a0", 1), ("\u2028 ", 1), ("\v", 1)])
def test_only_a_line_that_json_takes_for_blank_is_no_row(line, rows):
    found = list(objects(line.encode(), "utf-8", {"item": 0}, whole=False, exact=True))
    assert len(found) == rows
    assert all("not an object of JSON" in str(problem) for *_, problem in found)
