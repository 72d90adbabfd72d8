"""Reads the rows of a CSV, JSON Lines or Parquet file as message bodies; collects malformed ones."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, BinaryIO, Final, NoReturn, TextIO

from fanin.errors import InvalidRequest, NotConfigured

_NAMED: Final = 100
"""Malformed rows that are listed one by one."""


class RowFormat(StrEnum):
    """The format of a file of rows.

    Attributes:
        CSV: with a header line.
        JSONL: JSON Lines, one object a line.
        PARQUET: needs pyarrow.
    """

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
    """The format that the suffix of a file's name stands for.

    Raises:
        InvalidRequest: the suffix is unknown.
    """
    for suffix, kind in _SUFFIXES.items():
        if name.lower().endswith(suffix):
            return kind
    raise InvalidRequest(
        f"the name {name!r} does not say the format of the file; pass --format csv, jsonl or parquet"
    )


@dataclass
class Malformed:
    """Collects the rows that cannot become messages.

    Attributes:
        count: how many there are.
        named: (number of the row, reason) of the first hundred. Rows are numbered from 1; in text files the
            number is that of the row's last line.
    """

    count: int = 0
    named: list[tuple[int, str]] = field(default_factory=list)

    def add(self, row: int, reason: str) -> None:
        self.count += 1
        if len(self.named) < _NAMED:
            self.named.append((row, reason))


class _NotJson(ValueError):
    """A value has no form in JSON."""


def bodies(file: BinaryIO, kind: RowFormat, malformed: Malformed, *, most_bytes: int) -> Iterator[str]:
    """Read the rows of a file, one at a time, as JSON objects.

    Args:
        file: the open file; Parquet needs a seekable one.
        kind: its format.
        malformed: gets the rows that are skipped.
        most_bytes: largest body, in bytes of UTF-8.

    Yields:
        A JSON text for each row; lines of JSON Lines stay as they are.

    Raises:
        NotConfigured: the file is Parquet, and pyarrow is not installed.
        InvalidRequest: the file as a whole is not of this format.
    """
    if kind is RowFormat.PARQUET:
        rows = _parquet(file, malformed)
    else:
        # Bytes that are not UTF-8 become surrogates, so that a bad row does not end the reading.
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
    if twice := [column for column, count in Counter(header).items() if count > 1]:
        raise InvalidRequest(f"the header of the CSV file has column {twice[0]!r} twice; rename one")
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
    raise _NotJson(f"{name} is not valid in JSON")


def _parquet(file: BinaryIO, malformed: Malformed) -> Iterator[tuple[int, str]]:
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise NotConfigured("Parquet needs pyarrow: pip install 'fanin[parquet]'") from error
    try:
        source = ParquetFile(file)
    except ArrowInvalid as error:
        raise InvalidRequest(f"the file is not Parquet: {error}") from error
    number = 0
    for batch in source.iter_batches(batch_size=4_096):
        for row in batch.to_pylist():
            number += 1
            try:
                yield number, json.dumps(row, ensure_ascii=False, allow_nan=False, default=_plain)
            except ValueError as error:
                malformed.add(number, str(error))


def _plain(value: Any) -> str:
    """Write dates, times and decimals as text.

    Raises:
        _NotJson: the value is bytes.
    """
    if isinstance(value, bytes):
        raise _NotJson("a column holds bytes, which JSON cannot represent")
    return str(value)
