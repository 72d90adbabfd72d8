"""Datasets that lie somewhere: their formats, and how text is written down in them."""

import codecs
import os
from dataclasses import KW_ONLY, asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from fanin.client.conversions import member
from fanin.errors import InvalidRequest
from fanin.spark.runtime.places import path_of
from fanin.spark.runtime.session import Located


class DatasetFormat(StrEnum):
    """The format of a dataset, as Spark names it.

    Attributes:
        PARQUET: whichever program wrote it.
        CSV: with a header line.
        JSON: one object on each line.
        ORC: whichever program wrote it.
        DELTA: a Delta table, by its path. The session needs Delta's package.
        ICEBERG: an Iceberg table, by its path or its name. The session needs Iceberg's package.
        TABLE: a table or view of the session's catalog, by its name.
    """

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ORC = "orc"
    DELTA = "delta"
    ICEBERG = "iceberg"
    TABLE = "table"

    @property
    def of_files(self) -> bool:
        """Whether a dataset of this format is all the files of a folder."""
        return self not in {DatasetFormat.DELTA, DatasetFormat.ICEBERG, DatasetFormat.TABLE}


_SUFFIXES: Final = {
    "csv": DatasetFormat.CSV,
    "json": DatasetFormat.JSON,
    "jsonl": DatasetFormat.JSON,
    "ndjson": DatasetFormat.JSON,
    "orc": DatasetFormat.ORC,
}


def format_of_path(path: str) -> DatasetFormat:
    """The format that a path's suffix names, compressed or not; Parquet if it names none."""
    parts = path.rstrip("/").rpartition("/")[2].lower().split(".")[1:]
    return next((_SUFFIXES[part] for part in parts if part in _SUFFIXES), DatasetFormat.PARQUET)


UTF8: Final = "utf-8"
_LATIN: Final = "iso8859"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How the text of a dataset is written down; the defaults are those of RFC 4180.

    Attributes:
        delimiter: what divides the columns of CSV. None takes commas, and refuses a header that looks as if
            something else divided it.
        encoding: of CSV and JSON, for example ``ISO-8859-1``.
        quote: the character around values of CSV that have a delimiter in them; empty if there is none.
        escape: what stands before a quote within quotes; by default another quote.
        multiline: the objects of JSON have line breaks: a file is one object, or an array of them. In CSV
            line breaks within quotes are found without it; then a file is not looked through for them.
    """

    delimiter: str | None = None
    encoding: str = UTF8
    quote: str = '"'
    escape: str | None = None
    multiline: bool = False

    def __post_init__(self) -> None:
        for name in ("quote", "escape"):
            text = getattr(self, name)
            if text is not None and len(text) > 1:
                raise InvalidRequest(f"the {name} must be a single character, and is {text!r}")
        if self.delimiter == "":
            raise InvalidRequest("the delimiter is empty; name the text that divides columns, for example ;")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise InvalidRequest(
                f"there is no encoding {self.encoding!r}; name one such as UTF-8, ISO-8859-1 or windows-1252"
            ) from None

    @property
    def codec(self) -> str:
        """Python's name of the encoding."""
        return codecs.lookup(self.encoding).name

    @property
    def wide(self) -> bool:
        """Whether bytes of this encoding cannot be divided at the bytes of line breaks."""
        return self.codec.startswith(("utf-16", "utf-32"))

    @property
    def inner_escape(self) -> str:
        """What stands before a quote within quotes."""
        return self.quote if self.escape is None else self.escape

    def csv_options(self) -> dict[str, Any]:
        """Options of Spark's reader of CSV."""
        return {
            "header": True,
            "sep": "," if self.delimiter is None else self.delimiter,
            # Java does not know "latin-1", and other names that Python has for these.
            "encoding": self.codec.replace(_LATIN, "ISO-8859") if _LATIN in self.codec else self.encoding,
            "quote": self.quote,
            "escape": self.inner_escape or "\0",
            "timeZone": "UTC",
            # Spark checks the number of columns only in those that it parses.
            "columnPruning": False,
        }


@dataclass(frozen=True)
class Dataset(Dialect, Located):
    """Rows that lie somewhere, for the functions that take rows of any kind.

    Example:
        >>> rows = Dataset("s3://lake/orders/*.csv", delimiter=";")  # doctest: +SKIP
        >>> fan_out(rows, queue=queue, staging="s3://lake/runs/1")  # doctest: +SKIP

    Attributes:
        path: file, folder or pattern, as Spark takes it; or the name of a table.
        format: ``csv``, ``json``, ``parquet``, ``orc``, ``delta``, ``iceberg`` or ``table``. None takes that
            of the table that the folder is, or the one that the suffix names.
        schema: the columns of a CSV dataset, in DDL; without it all values are text.

    Raises:
        InvalidRequest: there is no such format or encoding, or the path is not one.
    """

    path: str | os.PathLike[str]
    format: str | None = None
    _: KW_ONLY
    schema: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.place, self.known

    @property
    def place(self) -> str:
        """The path as text."""
        return path_of("the path of a dataset", self.path)

    @property
    def known(self) -> DatasetFormat | None:
        """The format; None if nobody has named it."""
        return None if self.format is None else member(DatasetFormat, self.format)

    def describe(self) -> dict[str, Any]:
        """Everything but the data that the rows depend on, as JSON."""
        format_ = (self.known or format_of_path(self.place)).value
        return {**asdict(self), "path": self.place, "format": format_}
