"""Rows of a file as message bodies: CSV, JSON lines, Parquet; what is malformed is counted and named."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, BinaryIO, Final, NoReturn, TextIO

from fanin.errors import InvalidRequest, NotConfigured

_NAMED: Final = 100


class RowFormat(StrEnum):
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


_SUFFIXES: Final = {
    ".csv": RowFormat.CSV,
    ".jsonl": RowFormat.JSONL,
    ".ndjson": RowFormat.JSONL,
    ".parquet": RowFormat.PARQUET,
}


def format_of(name: str) -> RowFormat:
    """The format that a file's name tells.

    Raises:
        InvalidRequest: it tells none.
    """
    for suffix, kind in _SUFFIXES.items():
        if name.lower().endswith(suffix):
            return kind
    raise InvalidRequest(f"the name {name!r} does not tell the format; give --format csv, jsonl or parquet")


@dataclass
class Malformed:
    """Rows that make no message.

    Attributes:
        count: how many.
        named: number of the row (for text, of the line it ends on; from 1) and what is wrong, of the
            first hundred.
    """

    count: int = 0
    named: list[tuple[int, str]] = field(default_factory=list)

    def add(self, row: int, reason: str) -> None:
        self.count += 1
        if len(self.named) < _NAMED:
            self.named.append((row, reason))


class _Bad(ValueError):
    """A row that makes no message."""


def bodies(file: BinaryIO, kind: RowFormat, malformed: Malformed, *, most_bytes: int) -> Iterator[str]:
    """Read rows, one after the other, as JSON objects.

    Args:
        file: the file; for Parquet it must be seekable.
        kind: its format.
        malformed: is told of rows that are left out.
        most_bytes: largest body.

    Yields:
        JSON texts. Lines of JSON pass as they are.

    Raises:
        NotConfigured: Parquet without pyarrow.
        InvalidRequest: the file as a whole is not of the format.
    """
    if kind is RowFormat.PARQUET:
        rows = _parquet(file, malformed)
    else:
        # Surrogates stand for bytes that are not UTF-8, so that one bad row does not end the reading.
        text = _text(file)
        rows = _csv(text, malformed) if kind is RowFormat.CSV else _json_lines(text, malformed)
    for number, body in rows:
        try:
            size = len(body.encode())
        except UnicodeEncodeError:
            malformed.add(number, "not UTF-8")
            continue
        if size > most_bytes:
            malformed.add(number, f"{size} bytes; a message may have {most_bytes}")
        else:
            yield body


def _text(file: BinaryIO) -> TextIO:
    import io

    return io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")


def _csv(text: TextIO, malformed: Malformed) -> Iterator[tuple[int, str]]:
    reader = csv.reader(text, strict=True)
    header = next(reader, None)
    if header is None:
        return
    if len(set(header)) != len(header):
        raise InvalidRequest("the header of the CSV file names a column twice")
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            malformed.add(reader.line_num, str(error))
            continue
        if len(row) == len(header):
            yield reader.line_num, json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False)
        elif row:
            malformed.add(reader.line_num, f"{len(row)} fields; the header has {len(header)}")


def _json_lines(text: TextIO, malformed: Malformed) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text, 1):
        body = line.strip()
        if not body:
            continue
        try:
            parsed = json.loads(body, parse_constant=_refuse_constant)
        except ValueError as error:
            malformed.add(number, f"not JSON: {error}")
            continue
        if isinstance(parsed, dict):
            yield number, body
        else:
            malformed.add(number, "not a JSON object")


def _refuse_constant(name: str) -> NoReturn:
    raise _Bad(f"{name} is no JSON value")


def _parquet(file: BinaryIO, malformed: Malformed) -> Iterator[tuple[int, str]]:
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise NotConfigured("Parquet needs pyarrow: pip install 'fanin[parquet]'") from error
    try:
        source = ParquetFile(file)
    except ArrowInvalid as error:
        raise InvalidRequest(f"this is no Parquet file: {error}") from error
    number = 0
    for batch in source.iter_batches(batch_size=4_096):
        for row in batch.to_pylist():
            number += 1
            try:
                yield number, json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain)
            except ValueError as error:
                malformed.add(number, str(error))


def _plain(value: Any) -> str:
    """Dates, times and decimals as text; bytes have no form in JSON."""
    if isinstance(value, bytes):
        raise _Bad("a column holds bytes, which JSON cannot carry")
    return str(value)
