"""Reads the rows of a CSV, JSON Lines or Parquet file as message bodies; collects malformed ones."""

import codecs
import csv
import io
import json
import zlib
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, BinaryIO, Final, NoReturn, TextIO, cast

from fanin.domain import limits
from fanin.errors import InvalidRequest, NotConfigured

_NAMED: Final = 100
"""Malformed rows that are listed one by one."""


class RowFormat(StrEnum):
    """The format of a file of rows.

    Attributes:
        CSV: with a header line.
        TSV: the same with tabs between the fields.
        JSONL: JSON Lines, one object a line.
        PARQUET: needs pyarrow.
    """

    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"


_SUFFIXES: Final = {
    **{f".{kind}": kind for kind in RowFormat},
    ".tab": RowFormat.TSV,
    ".ndjson": RowFormat.JSONL,
}

_CSV_ERRORS: Final = {"unexpected end of data": "a quoted field in it does not end"}
_BLANK: Final = " \t\r\n"
"""What may stand around a value of JSON; a no-break space may not."""
_LONGEST: Final = 16 * 2**20
"""Characters of the longest field of CSV that is read; a message takes less."""
_AHEAD: Final = 64 * 2**20
"""Characters that are read ahead in search of a quote."""
_BEGIN: Final = 4_096
"""Bytes at the beginning of a stream that tell its format."""
_UNREADABLE: Final = (
    (b"\x1f\x8b", "compressed with gzip", "pipe it through `gunzip`"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard", "pipe it through `zstdcat`"),
    (b"PAR1", "Parquet, which needs a file; write it to one", "pass the file's name"),
)
"""How files begin that a pipe cannot bring: magic bytes, what they are, and what to do."""


def format_of(name: str) -> RowFormat:
    """The format that the suffix of a file's name stands for.

    Raises:
        InvalidRequest: the suffix is unknown.
    """
    plain = name.lower()
    for packed in PACKED:
        plain = plain.removesuffix(packed)
    for suffix, kind in _SUFFIXES.items():
        if plain.endswith(suffix):
            return kind
    raise InvalidRequest(
        f"the name {name!r} does not say the format of the file; pass --format csv, tsv, jsonl or parquet"
    )


def guessed(file: io.BufferedReader) -> RowFormat:
    """The format of a stream without a name, from its beginning, which stays unread.

    An object of JSON Lines begins with a brace; the header of CSV with the name of a column. A stream with
    nothing in it is CSV without rows.

    Raises:
        InvalidRequest: it is compressed, or Parquet, which only a file can be.
    """
    begun = file.peek(_BEGIN)[:_BEGIN]
    for magic, what, way in _UNREADABLE:
        if begun.startswith(magic):
            raise InvalidRequest(f"stdin is {what}; {way}")
    begun = begun.removeprefix(codecs.BOM_UTF8)
    if begun.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidRequest("stdin is UTF-16; pass --encoding utf-16, and --format csv, tsv or jsonl")
    begun = begun.lstrip()
    if begun.startswith(b"["):
        raise InvalidRequest(
            "stdin begins with [, a JSON array; write one object a line, as `jq -c '.[]'` does, or pass"
            " --format csv if it is a name of a column"
        )
    if begun.startswith(b"{"):
        return RowFormat.JSONL
    head = begun.partition(b"\n")[0]
    return RowFormat.TSV if b"\t" in head and b"," not in head else RowFormat.CSV


def unpacked(file: BinaryIO, name: str) -> BinaryIO:
    """The content of a file that may be compressed, as the suffix of its name says: ``.gz`` or ``.zst``.

    Raises:
        NotConfigured: the file is compressed with Zstandard, and pyarrow is not installed.
    """
    if name.lower().endswith(".gz"):
        import gzip

        return cast("BinaryIO", gzip.GzipFile(fileobj=file))
    if name.lower().endswith(".zst"):
        try:
            from pyarrow import CompressedInputStream
        except ImportError as error:
            raise NotConfigured("a .zst file needs pyarrow: pip install 'fanin[parquet]'") from error
        return cast("BinaryIO", CompressedInputStream(file, "zstd"))
    return file


PACKED: Final = (".gz", ".zst")
"""Suffixes of compressed files, after that of the format."""


@dataclass
class MalformedRow:
    """Collects the rows that cannot become messages.

    Attributes:
        count: how many there are; of lines that are left out together, each counts.
        named: (number of the row, reason) of the first hundred. Rows are numbered from 1; in text files the
            number is that of the row's last line, or of the first of several that are left out.
    """

    count: int = 0
    named: list[tuple[int, str]] = field(default_factory=list)

    def add(self, row: int, reason: str) -> None:
        self.count += 1
        if len(self.named) < _NAMED:
            self.named.append((row, reason))

    def lines(self, first: int, last: int, reason: str) -> None:
        """Add lines that are left out together, as a field may go on from each to the next."""
        self.add(first, reason + (f"; lines {first:,} to {last:,} are left out" if last > first else ""))
        self.count += last - first


@dataclass(frozen=True)
class RowReading:
    """How the text of a file is read.

    Attributes:
        kind: its format.
        delimiter: one character between two fields of CSV; None for that of the format.
        encoding: of the text, by Python's name.
    """

    kind: RowFormat
    delimiter: str | None = None
    encoding: str = "utf-8"

    @property
    def separator(self) -> str:
        """The character between two fields."""
        return self.delimiter or ("\t" if self.kind is RowFormat.TSV else ",")


def bodies(file: BinaryIO, how: RowReading, malformed: MalformedRow, *, most_bytes: int) -> Iterator[str]:
    """Read the rows of a file, one at a time, as JSON objects.

    Args:
        file: the open file; Parquet needs a seekable one.
        how: its format, delimiter and encoding.
        malformed: gets the rows that are skipped.
        most_bytes: largest body, in bytes of UTF-8.

    Yields:
        A JSON text for each row; lines of JSON Lines stay as they are.

    Raises:
        NotConfigured: the file is Parquet, and pyarrow is not installed.
        InvalidRequest: the file as a whole is not of this format, or not compressed as its name says.
    """
    if how.kind is RowFormat.PARQUET:
        rows = _parquet(file, malformed)
    else:
        text = _text(file, how.encoding)
        rows = _json_lines(text, malformed) if how.kind is RowFormat.JSONL else _csv(text, how, malformed)
    for number, body in _readable(rows, how):
        try:
            size = len(body.encode())
            limits.sendable("the row", body)
        except UnicodeEncodeError:
            malformed.add(number, f"not {how.encoding.upper()}")
            continue
        except InvalidRequest as error:
            malformed.add(number, str(error))
            continue
        if size > most_bytes:
            malformed.add(number, f"{size} bytes; a message may have {most_bytes}")
        else:
            yield body


def _readable(rows: Iterator[tuple[int, str]], how: RowReading) -> Iterator[tuple[int, str]]:
    try:
        yield from rows
    except UnicodeError as error:
        raise InvalidRequest(
            f"the file cannot be read as {how.encoding}: {error}; pass its encoding with --encoding"
        ) from error
    except (EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InvalidRequest(f"the file cannot be unpacked: {error}; is it damaged, or cut off?") from error


def _text(file: BinaryIO, encoding: str) -> TextIO:
    # UTF-8 may begin with a byte order mark. Bytes that are not of the encoding become surrogates, so that a
    # bad row does not end the reading.
    named = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    return io.TextIOWrapper(file, encoding=named, errors="surrogateescape", newline="")


class _Lines(Iterator[str]):
    """The lines of a text, some of which are read again after a row that could not be read.

    Attributes:
        number: of the line that was read last, from 1.
        taken: lines of the row that is being read.
    """

    def __init__(self, text: TextIO, delimiter: str) -> None:
        self.number = 0
        self.taken: list[str] = []
        self._text = text
        self._delimiter = delimiter
        self._again: deque[str] = deque()

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._text)
        self.number += 1
        self.taken.append(line)
        return line

    def skip(self) -> tuple[int, int]:
        """Leave the row that cannot be read, for the next line that is certainly the beginning of a row.

        After a quote that stands wrong, a field may still go on, and its lines look like rows. The next quote
        tells: a field ends there, or one begins, and then the lines before it were rows. So are those before
        the end of the text, since there a field that goes on would lack its quote.

        Returns:
            The first and the last line that are left out.
        """
        first = self.number - len(self.taken) + 1
        self._read_again(self.taken[1:])
        while True:
            self.taken.clear()
            line, size = "", 0
            for line in self:
                size += len(line)
                if '"' in line:
                    break
                if size > _AHEAD:
                    self.taken.clear()
            if '"' not in line or self._opens(line):
                self._read_again(self.taken)
                return first, self.number

    def _opens(self, line: str) -> bool:
        """Whether the first quote of a line can begin a field, and cannot end one."""
        before, _, after = line.partition('"')
        begins, ends = {"", self._delimiter}, {"", '"', self._delimiter, "\r", "\n"}
        return before[-1:] in begins and after[:1] not in ends

    def _read_again(self, lines: list[str]) -> None:
        self._again.extendleft(reversed(lines))
        self.number -= len(lines)


def _csv(text: TextIO, how: RowReading, malformed: MalformedRow) -> Iterator[tuple[int, str]]:
    csv.field_size_limit(_LONGEST)
    lines = _Lines(text, how.separator)
    reader = csv.reader(lines, strict=True, delimiter=how.separator)
    header: list[str] = []
    while True:
        lines.taken.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if not header:
                raise InvalidRequest(f"the header of the CSV file cannot be read: {error}") from error
            malformed.lines(*lines.skip(), _CSV_ERRORS.get(str(error), str(error)))
            continue
        if not header:
            header = row
            if twice := [column for column, count in Counter(header).items() if count > 1]:
                raise InvalidRequest(f"the header of the CSV file has column {twice[0]!r} twice; rename one")
        elif len(row) == len(header) or (not row and len(header) == 1):
            # A line with nothing in it is a row of one empty field, if rows have one, and else no row.
            values = dict(zip(header, row or [""], strict=True))
            yield lines.number, json.dumps(values, ensure_ascii=False)
        elif row:
            reason = f"{len(row)} fields; the header has {len(header)}"
            malformed.lines(lines.number - len(lines.taken) + 1, lines.number, reason)


def _json_lines(text: TextIO, malformed: MalformedRow) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text, 1):
        body = line.strip(_BLANK)
        if not body:
            continue
        try:
            parsed = json.loads(body, parse_constant=_refuse_constant, parse_int=str)
        except ValueError as error:
            malformed.add(number, f"not JSON: {error}")
            continue
        except RecursionError:
            malformed.add(number, "nested too deeply")
            continue
        if isinstance(parsed, dict):
            yield number, body
        else:
            malformed.add(number, "not a JSON object")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid in JSON")


def _parquet(file: BinaryIO, malformed: MalformedRow) -> Iterator[tuple[int, str]]:
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
        for at, row in enumerate(_values(batch)):
            number += 1
            try:
                values = batch.slice(at, 1).to_pylist()[0] if row is None else row
                yield number, json.dumps(values, ensure_ascii=False, allow_nan=False, default=_plain)
            except (ValueError, ArithmeticError, LookupError) as error:
                malformed.add(number, str(error))


def _values(batch: Any) -> list[dict[str, Any] | None]:
    """The rows of an Arrow batch; None for each if Python cannot hold some value, so that one tells which."""
    try:
        rows: list[dict[str, Any] | None] = batch.to_pylist()
    except (ValueError, ArithmeticError, LookupError):  # such as a time after the year 9999
        return [None] * batch.num_rows
    return rows


def _plain(value: Any) -> str:
    """Write dates, times and decimals as text.

    Raises:
        ValueError: the value is bytes.
    """
    if isinstance(value, bytes):
        raise ValueError("a column holds bytes, which JSON cannot represent")  # noqa: TRY004 - a bad row
    return str(value)
