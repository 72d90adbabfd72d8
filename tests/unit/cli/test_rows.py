"""Rows of CSV, JSON Lines and Parquet files; malformed rows are counted and listed."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import parquet

from fanin.cli import rows
from fanin.cli.rows import Malformed, Reading, RowFormat, bodies
from fanin.errors import InvalidRequest


def read(data, kind, *, most_bytes=10_000):
    malformed = Malformed()
    return list(
        bodies(
            io.BytesIO(data),
            Reading(kind) if isinstance(kind, RowFormat) else kind,
            malformed,
            most_bytes=most_bytes,
        )
    ), malformed


def test_csv():
    found, malformed = read('\ufeffname,n\n"Zürich, ZH",1\n\n"two\nlines",2\n'.encode(), RowFormat.CSV)
    assert [json.loads(body) for body in found] == [
        {"name": "Zürich, ZH", "n": "1"},
        {"name": "two\nlines", "n": "2"},
    ]
    assert malformed.count == 0


def test_csv_names_malformed_rows_and_goes_on():
    found, malformed = read(b'a,b\n1,2\n1\n1,2,3\n\xff,4\n"x"y,5\n5,6\n', RowFormat.CSV)
    assert [json.loads(body)["b"] for body in found] == ["2", "6"]
    assert [row for row, _ in malformed.named] == [3, 4, 5, 6]
    assert malformed.named[0][1] == "1 fields; the header has 2"
    assert malformed.named[2][1] == "not UTF-8"


def test_csv_with_a_column_twice_is_refused():
    with pytest.raises(InvalidRequest, match="twice"):
        read(b"a,a\n1,2\n", RowFormat.CSV)


def test_an_empty_file_has_no_rows():
    assert read(b"", RowFormat.CSV)[0] == read(b"", RowFormat.JSONL)[0] == []


def test_json_lines_pass_as_they_are():
    found, malformed = read(b'{"a": 1.10}\n\n  {"a":{"b":[]}}\r\n', RowFormat.JSONL)
    assert found == ['{"a": 1.10}', '{"a":{"b":[]}}']
    assert malformed.count == 0


@pytest.mark.parametrize("line", [b"{", b"[1]", b"1", b'{"a": NaN}', b'{"a": "\xff"}', b'{"a": 1} {}'])
def test_json_lines_name_malformed_ones_and_go_on(line):
    found, malformed = read(b'{"a": 1}\n' + line + b'\n{"a": 2}\n', RowFormat.JSONL)
    assert found == ['{"a": 1}', '{"a": 2}']
    assert [row for row, _ in malformed.named] == [2]


def test_rows_too_large_for_a_message_are_malformed():
    found, malformed = read(b'{"a": "%s"}\n{"a": 1}\n' % (b"x" * 100), RowFormat.JSONL, most_bytes=50)
    assert found == ['{"a": 1}']
    assert malformed.named == [(1, "109 bytes; a message may have 50")]


def test_parquet():
    table = pa.table(
        {
            "n": [1, 2],
            "f": [1.5, float("nan")],
            "d": [date(2026, 11, 21), None],
            "t": [datetime(2026, 11, 21, 9, 40, tzinfo=UTC)] * 2,
            "m": [Decimal("1.10"), Decimal(2)],
        }
    )
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    found, malformed = read(sink.getvalue().to_pybytes(), RowFormat.PARQUET)
    assert [json.loads(body) for body in found] == [
        {"n": 1, "f": 1.5, "d": "2026-11-21", "t": "2026-11-21 09:40:00+00:00", "m": "1.10"}
    ]
    assert [row for row, _ in malformed.named] == [2]


def test_parquet_with_bytes_has_no_json():
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table({"b": [b"\x00"]}), sink)
    found, malformed = read(sink.getvalue().to_pybytes(), RowFormat.PARQUET)
    assert (found, malformed.count) == ([], 1)


def test_what_is_no_parquet_is_refused():
    with pytest.raises(InvalidRequest, match="not Parquet"):
        read(b"PAR0" * 10, RowFormat.PARQUET)


def test_names_of_malformed_rows_are_bounded():
    _, malformed = read(b"x\n" * 1_000, RowFormat.JSONL)
    assert (malformed.count, len(malformed.named)) == (1_000, 100)


def test_the_format_is_told_by_the_name():
    assert rows.format_of("Airports.CSV") is RowFormat.CSV
    assert rows.format_of("a.ndjson") is RowFormat.JSONL
    with pytest.raises(InvalidRequest, match="--format"):
        rows.format_of("rows.txt")


def test_a_line_that_is_nested_too_deeply_is_malformed():
    found, malformed = read(b'{"a": 1}\n{"a": ' + b"[" * 200_000 + b'\n{"a": 2}\n', RowFormat.JSONL)
    assert [json.loads(body)["a"] for body in found] == [1, 2]
    assert malformed.named == [(2, "nested too deeply")]


def test_a_character_that_no_message_may_carry_makes_its_row_malformed():
    found, malformed = read("a\n1\n\ufffe\n2\n".encode(), RowFormat.CSV)
    assert len(found) == 2
    ((row, said),) = malformed.named
    assert (row, "U+FFFE" in said) == (3, True)


@pytest.mark.parametrize(
    ("encoding", "content"), [("utf-16", b"a,b\n1,2\n"), ("unicode_escape", b"a\n1\n\\u12\n")]
)
def test_a_file_of_another_encoding_names_the_option(encoding, content):
    with pytest.raises(InvalidRequest, match=f"cannot be read as {encoding}.*--encoding"):
        read(content, Reading(RowFormat.CSV, encoding=encoding))


@pytest.mark.parametrize("header", [b'"a"b,c\n', b"a" * 200_000 + b"\n"])
def test_a_header_that_is_not_csv_is_refused(header):
    with pytest.raises(InvalidRequest, match="the header of the CSV file cannot be read"):
        read(header + b"1,2\n", RowFormat.CSV)


def test_a_value_that_python_cannot_hold_makes_its_row_malformed():
    # Given a time in the year 300,000 between two others
    times = pa.array([0, 9_400_000_000_000_000, 1], pa.timestamp("ms"))
    file = io.BytesIO()
    parquet.write_table(pa.table({"at": times}), file)

    # Then only its row is left out
    found, malformed = read(file.getvalue(), RowFormat.PARQUET)
    assert [json.loads(body)["at"][:4] for body in found] == ["1970", "1970"]
    assert [row for row, _ in malformed.named] == [2]
