"""Rows of CSV, JSON Lines and Parquet files; malformed rows are counted and listed."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import parquet

from fanin.cli import rows
from fanin.cli.rows import MalformedRow, RowFormat, RowReading, bodies
from fanin.errors import InvalidRequest


def read(data, kind, *, most_bytes=10_000):
    malformed = MalformedRow()
    return list(
        bodies(
            io.BytesIO(data),
            RowReading(kind) if isinstance(kind, RowFormat) else kind,
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


NOTE = "\n".join(f"line {n} of a note" for n in range(20_000))  # longer than the csv module reads by itself


@pytest.mark.parametrize(
    ("text", "kept", "left"),
    [
        # Long fields, blank lines, one column
        (f'a,b\n1,"{NOTE}"\n2,x\n', [("1", NOTE), ("2", "x")], []),
        ("\n\r\na,b\n1,2\n\n3,4\n\n", [("1", "2"), ("3", "4")], []),
        ("a\n1\n\n3\n", [("1",), ("",), ("3",)], []),
        # A quote that is never closed: its line alone is left out, for no other quote closes it
        ('a,b\n1,"2\n3,4\n5,6\n', [("3", "4"), ("5", "6")], [(2, 1)]),
        # The same before another quoted field
        ('a,b\n1,"2\n3,4\n5,"6"\n', [("3", "4"), ("5", "6")], [(2, 1)]),
        # A quote inside of a quoted field, whose next line looks like a row, and is none
        ('a,b\n1,"he said "hi"\nthere" x,2\n3,4\n', [("3", "4")], [(2, 2)]),
        ('a,b\n1,"x "y" z\n8,9\nend"\n3,4\n', [("3", "4")], [(2, 3)]),
        # Something behind a quoted field of several lines
        ('a,b\n1,"x\ny\nz"w\n3,4\n5,"6"\n', [("3", "4"), ("5", "6")], [(2, 3)]),
        # A row that may be of either kind is left out
        ('a,b\n1,"x"y"\n2,""\n3,4\n', [("3", "4")], [(2, 2)]),
    ],
)
def test_csv_never_goes_on_in_the_middle_of_a_field(text, kept, left):
    found, malformed = read(text.encode(), RowFormat.CSV, most_bytes=10**6)
    assert [tuple(json.loads(body).values()) for body in found] == kept
    assert [row for row, _ in malformed.named] == [row for row, _ in left]
    assert malformed.count == sum(count for _, count in left)


def test_csv_names_all_lines_that_are_left_out(monkeypatch):
    # Given a quote that is not closed within what is read of a field, nor ahead
    monkeypatch.setattr(rows, "_LONGEST", 1_000)
    monkeypatch.setattr(rows, "_AHEAD", 1_000)
    text = 'a,b\n1,"2\n' + "3,4\n" * 1_000 + '5,"6"\n7,8\n'
    found, malformed = read(text.encode(), RowFormat.CSV)
    # Then the lines that could not be remembered are left out, and named
    assert [json.loads(body)["a"] for body in found][-2:] == ["5", "7"]
    ((row, reason),) = malformed.named
    assert row == 2
    assert f"lines 2 to {malformed.count + 1:,} are left out" in reason
    assert malformed.count + len(found) == 1_003


def test_csv_with_a_column_twice_is_refused():
    with pytest.raises(InvalidRequest, match="twice"):
        read(b"a,a\n1,2\n", RowFormat.CSV)


def test_an_empty_file_has_no_rows():
    assert read(b"", RowFormat.CSV)[0] == read(b"", RowFormat.JSONL)[0] == []


def test_json_lines_pass_as_they_are():
    number = "9" * 5_000
    text = b'{"a": 1.10}\n\n  {"a":{"b":[]}}\r\n{"n": ' + number.encode() + b"}\n"
    found, malformed = read(text, RowFormat.JSONL)
    assert found == ['{"a": 1.10}', '{"a":{"b":[]}}', f'{{"n": {number}}}']
    assert malformed.count == 0


@pytest.mark.parametrize(
    "line", [b"{", b"[1]", b"1", b'{"a": NaN}', b'{"a": "\xff"}', b'{"a": 1} {}', b"\xc2\xa0{}"]
)
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
        read(content, RowReading(RowFormat.CSV, encoding=encoding))


def test_a_header_that_is_not_csv_is_refused():
    with pytest.raises(InvalidRequest, match="the header of the CSV file cannot be read"):
        read(b'"a"b,c\n1,2\n', RowFormat.CSV)


def test_a_value_that_python_cannot_hold_makes_its_row_malformed():
    # Given a time in the year 300,000 between two others
    times = pa.array([0, 9_400_000_000_000_000, 1], pa.timestamp("ms"))
    file = io.BytesIO()
    parquet.write_table(pa.table({"at": times}), file)
    # Then only its row is left out
    found, malformed = read(file.getvalue(), RowFormat.PARQUET)
    assert [json.loads(body)["at"][:4] for body in found] == ["1970", "1970"]
    assert [row for row, _ in malformed.named] == [2]
