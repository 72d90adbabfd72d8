"""CSV by the names in the header of each file.

Spark gives the columns of all files the names that one of them has, and ends a row at the end of its line.
So all files are looked through first: for their headers, for line breaks within quotes, and for bytes that
are not of their encoding. Then files with the same header are read together; their rows are joined by name.
"""

import codecs
import csv
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import DoubleType, FloatType, StringType, StructField, StructType

from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import UTF8, Dialect
from fanin.spark.inputs.listing import FoundFile, load, same_file
from fanin.spark.inputs.names import folded, quoted
from fanin.spark.runtime.places import escaped, read_here
from fanin.spark.runtime.unreadable import LINE, PROBLEM, UNKNOWN, WRONG_COLUMNS, any_true, not_utf8

_OTHER_DELIMITERS: Final = (";", "\t", "|", ",")
_PLAIN: Final = (".csv", ".tsv", ".txt")
"""How names of files end that are surely not compressed: Spark goes by the name."""
_FEW_BYTES: Final = 16 * 2**20
"""Bytes of all files that are looked through without a job."""
_PACKED: Final = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
_HEAD: Final = 1 << 16
"""Bytes at the beginning of a file that show how its lines end."""


class _Found(NamedTuple):
    """What was found in a file.

    Attributes:
        header: its first line that is not blank, as bytes: those of two encodings may give the same text.
        quotes: how many quotes the file has.
        broken: whether a line has an odd number of them, so that a value goes on in the next.
        undecoded: whether a line is not of the encoding.
    """

    header: bytes | None
    quotes: int = 0
    broken: bool = False
    undecoded: bool = False


class _Group(NamedTuple):
    """Files that are read in the same way; of those with a line break in the header each is its own group."""

    header: bytes | None
    multiline: bool
    line_end: str | None
    undecoded: bool
    only: str


def read_csv(
    spark: SparkSession,
    files: Sequence[FoundFile],
    dialect: Dialect,
    *,
    types: StructType | None,
    folders: Sequence[str],
    base: str | None,
    whole: str | None,
) -> list[DataFrame]:
    """Read CSV files: the columns of each header, ``LINE`` and ``PROBLEM``; nothing if none has a header."""
    groups: dict[_Group, list[str]] = defaultdict(list)
    looked = _inspect(spark, files, dialect, whole)
    multiline = [path for path in looked if dialect.multiline or dialect.wide or looked[path].broken]
    line_ends = _line_ends(spark, multiline, dialect)
    for path, found in looked.items():
        if dialect.wide or found.header is not None:
            alone = dialect.wide or _text(found.header, dialect).count(dialect.quote or "\0") % 2
            ends = path in line_ends, line_ends.get(path)
            groups[_Group(found.header, *ends, found.undecoded, path if alone else "")].append(path)
    headed = {group: _names(spark, paths[0], dialect, group) for group, paths in groups.items()}
    for group, names in headed.items():
        _refuse_twice(spark, groups[group][0], folders, names)
    if types is not None:
        _check_types(spark, types, list(headed.values()))
    folder = whole if len(groups) == 1 else None
    return [
        _read(spark, groups[group], dialect, group, names, types=types, base=base, whole=folder)
        for group, names in headed.items()
        if names
    ]


def _inspect(
    spark: SparkSession, files: Sequence[FoundFile], dialect: Dialect, whole: str | None = None
) -> dict[str, _Found]:
    paths = [file.path for file in files]
    if dialect.wide:
        return {path: _Found(None) for path in paths}
    plain = all(path.lower().endswith(_PLAIN) for path in paths)
    few = plain and sum(file.size for file in files) <= _FEW_BYTES
    contents = read_here(spark, paths, lambda file, _: file.read()) if few else None
    if contents is None:
        by_path = _inspect_lines(load(spark.read.format("text"), whole, paths), dialect)
    else:
        by_path = {path: _looked_through(raw, dialect) for path, raw in zip(paths, contents, strict=True)}
    for path, one in sorted(by_path.items()):
        if one.quotes % 2:
            raise InvalidRequest(
                f"{path} has a quote that is never closed; mend the file, or name another quote with --quote"
                ' ("" if quotes are ordinary characters)'
            )
    return {path: by_path.get(path, _Found(None)) for path in paths}


def _looked_through(raw: bytes, dialect: Dialect) -> _Found:
    # In bytes only these three end a line, as for Spark, which takes every encoding for UTF-8 here.
    lines = raw.removeprefix(codecs.BOM_UTF8).splitlines()
    header = next((line for line in lines if line.strip(b" ")), None)
    quote, escape = dialect.quote.encode(), dialect.inner_escape.encode()
    counts = [0]
    if quote:
        if escape and escape != quote:
            lines = [line.replace(escape * 2, b"").replace(escape + quote, b"") for line in lines]
        counts = [line.count(quote) for line in lines]
    try:
        undecoded = dialect.codec != UTF8 or raw.decode(UTF8) is None
    except UnicodeDecodeError:
        undecoded = True
    return _Found(header, sum(counts), any(count % 2 for count in counts), undecoded)


def _inspect_lines(lines: DataFrame, dialect: Dialect) -> dict[str, _Found]:
    first = (F.col("_metadata.file_block_start") == 0) & (F.trim("value") != "")
    lines = lines.select(
        "value",
        F.col("_metadata.file_path").alias("file"),
        F.when(first, F.monotonically_increasing_id()).alias("at"),
        _count_quotes(dialect).alias("quotes"),
    )
    found = lines.groupBy("file").agg(
        F.min_by(F.col("value").cast("binary"), "at"),
        F.sum("quotes"),
        F.count_if(F.col("quotes") % 2 == 1) > 0,
        F.count_if(not_utf8(F.col("value"))) > 0 if dialect.codec == UTF8 else F.lit(True),
    )
    return {same_file(row[0]): _Found(row[1] and bytes(row[1]), *row[2:]) for row in found.collect()}


def _line_ends(spark: SparkSession, paths: Sequence[str], dialect: Dialect) -> dict[str, str | None]:
    """What ends the lines of each file, as far as its head shows a single way; None leaves it to Spark.

    Spark then makes line feeds of such line ends within quotes, too.
    """
    quote, escape = re.escape(dialect.quote), re.escape(dialect.inner_escape)
    escaped_quote = re.compile(f"{escape}{escape}|{escape}{quote}" if quote and escape else "(?!)")
    begins = rf"(?:^|(?<=[\r\n])|(?<={re.escape(dialect.delimiter or ',')}))"
    quoted_text = re.compile(f"{begins}{quote}[^{quote}]*({quote}|$)" if quote else "(?!)")

    def only(file: Any, path: str) -> str | None:
        suffix = path.rpartition(".")[2]
        if suffix == "deflate":  # which pyarrow has no name for
            return None
        packed = _PACKED.get(suffix)
        head = (pa.CompressedInputStream(file, packed) if packed else file).read(_HEAD)
        text = quoted_text.sub("", escaped_quote.sub("", head.decode(dialect.codec, errors="replace")))
        ways = set(re.findall("\r\n|\r|\n", text.rstrip("\r")))
        return ways.pop() if len(ways) == 1 else None

    found = read_here(spark, paths, only)
    return dict(zip(paths, found or [None] * len(paths), strict=True))


def _count_quotes(dialect: Dialect) -> Column:
    if not dialect.quote:
        return F.lit(0)
    text = F.col("value")
    escape = dialect.inner_escape
    if escape and escape != dialect.quote:
        for pair in (escape * 2, escape + dialect.quote):
            text = F.replace(text, F.lit(pair), F.lit(""))
    without = F.replace(text, F.lit(dialect.quote), F.lit(""))
    return F.length(text) - F.length(without)


def _text(header: bytes | None, dialect: Dialect) -> str:
    return (header or b"").decode(dialect.codec, errors="replace")


def _names(spark: SparkSession, path: str, dialect: Dialect, group: _Group) -> list[str]:
    """The names in the header of a file, as Spark reads them."""
    names = spark.read.options(**_options(dialect, group)).csv(escaped(path)).columns
    if any("\0" in name or (group.undecoded and UNKNOWN in name) for name in names):
        raise InvalidRequest(
            f"the header of {path} has bytes that are not {dialect.encoding}. Name the encoding of the files"
            " (--encoding, for example windows-1252 or UTF-16); if they are compressed, Spark reads gzip and"
            " bzip2, and their names have to end in .gz or .bz2"
        )
    if len(names) == 1 and dialect.delimiter is None:
        divided = next((one for one in _OTHER_DELIMITERS if one in names[0]), None)
        if divided:
            raise InvalidRequest(
                f"the header of {path} is a single column {names[0]!r}; if {divided!r} divides its columns,"
                f" say so with --delimiter {divided!r}; if that is the column's name, with --delimiter ,"
            )
    if group.header is not None and not group.only:
        _check_twice(spark, path, dialect, _text(group.header, dialect))
    return names


def _check_twice(spark: SparkSession, path: str, dialect: Dialect, header: str) -> None:
    """Refuse a name that stands twice in a header: Spark would number both."""
    delimiter = dialect.delimiter or ","
    if len(delimiter) > 1:
        header, delimiter = header.replace(delimiter, "\0"), "\0"
    quoting: Any = {"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE}
    try:
        read = next(csv.reader([header], delimiter=delimiter, **quoting))
    except csv.Error as error:
        raise InvalidRequest(f"the header of {path} cannot be read: {error}") from error
    names = [folded(spark, name) for name in read if name]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidRequest(f"the header of {path} has the column {twice!r} twice; rename one of them")


def _refuse_twice(spark: SparkSession, path: str, folders: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a column that folders have, too: Spark leaves it out, and shifts those behind it."""
    inside = {folded(spark, name) for name in names}
    twice = next((name for name in folders if folded(spark, name) in inside), None)
    if twice is not None:
        raise InvalidRequest(
            f"the column {twice} is in the header of {path} and in the names of its folders; leave it out of"
            " the files, rename the folders, or read one folder by its path, whose own name is no column"
        )


def _check_types(spark: SparkSession, types: StructType, headers: Sequence[Sequence[str]]) -> None:
    typed = {folded(spark, name) for name in types.names}
    present = {folded(spark, name): name for names in headers for name in names}
    unknown = [name for name in types.names if folded(spark, name) not in present]
    untyped = [present[name] for name in present.keys() - typed]
    if headers and (unknown or untyped):
        wrong = f"no file has {', '.join(unknown)}" if unknown else f"it lacks {', '.join(sorted(untyped))}"
        raise InvalidRequest(
            f"the schema is not that of the files: {wrong}; their columns are {', '.join(present.values())}"
        )


def _options(dialect: Dialect, group: _Group) -> dict[str, Any]:
    line_end = {"lineSep": group.line_end} if group.line_end else {}
    return {**dialect.csv_options(), "multiLine": group.multiline, **line_end}


def _read(
    spark: SparkSession,
    paths: Sequence[str],
    dialect: Dialect,
    group: _Group,
    header: Sequence[str],
    *,
    types: StructType | None,
    base: str | None,
    whole: str | None,
) -> DataFrame:
    known = {folded(spark, field.name): field for field in (types or ())}
    fields = [known.get(folded(spark, name), StructField(name, StringType())) for name in header]
    options = {**_options(dialect, group), "columnNameOfCorruptRecord": LINE}
    if base:
        options["basePath"] = base
    numbers = {
        field.name: F.expr(f"try_cast({quoted(field.name)} AS {field.dataType.simpleString()})")
        for field in fields
        if isinstance(field.dataType, DoubleType | FloatType)
    }
    # Spark takes numbers that are not finite, and then does not say what their lines were.
    read = [StructField(field.name, StringType()) if field.name in numbers else field for field in fields]
    schema = StructType(read).add(LINE, "string")
    rows = load(spark.read.format("csv").options(**options).schema(schema), whole, paths)
    names = [name for name in rows.columns if name != LINE]
    texts = [field.name for field in read if group.undecoded and isinstance(field.dataType, StringType)]
    foreign = any_true(F.contains(F.col(quoted(name)), F.lit(UNKNOWN)) for name in texts)
    row = F.to_json(F.struct(*(F.col(quoted(name)) for name in names)), {"ignoreNullFields": "false"})
    line = F.col(LINE)
    if types is not None:
        # Spark looks at the types of the columns that are asked for only; so this asks for all of them.
        line = F.when(line.isNotNull() | row.isNull(), F.coalesce(line, row))
    problem = F.when(line.isNotNull(), F.lit(WRONG_COLUMNS))
    if numbers:
        wrong = reduce(F.coalesce, (_wrong(name, number) for name, number in numbers.items()))
        written = _written([field.name for field in fields], dialect)
        line, problem = F.coalesce(line, F.when(wrong.isNotNull(), written)), F.coalesce(problem, wrong)
    encoding = f"it has U+FFFD, or bytes that are not {dialect.encoding}; name its encoding"
    return rows.select(
        *(numbers.get(name, F.col(quoted(name))).alias(name) for name in names),
        F.when(foreign & F.col(LINE).isNull(), row).otherwise(line).alias(LINE),
        F.when(foreign, F.lit(encoding)).otherwise(problem).alias(PROBLEM),
    )


def _wrong(name: str, number: Column) -> Column:
    """What is wrong with a text that is read as a number; JSON has none that is not finite."""
    infinite = "a number is not finite, or too large for its column's type"
    return F.when(F.abs(number) >= F.lit(math.inf), F.lit(infinite)).when(
        F.col(quoted(name)).isNotNull() & number.isNull(), F.lit(WRONG_COLUMNS)
    )


def _written(names: Sequence[str], dialect: Dialect) -> Column:
    form = {name: str(dialect.csv_options()[name]) for name in ("sep", "quote", "escape")}
    spaces = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
    texts = (F.col(quoted(name)).cast("string").alias(name) for name in names)
    return F.to_csv(F.struct(*texts), form | spaces)
