"""The formats of the datasets that jobs read, and how text is written down in them."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fanin.errors import InvalidRequest


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


def dataset_format(name: str) -> DatasetFormat:
    """The format of a name.

    Raises:
        InvalidRequest: there is no such format; lists those that there are.
    """
    try:
        return DatasetFormat(name)
    except ValueError:
        raise InvalidRequest(f"there is no format {name!r}; name one of {', '.join(DatasetFormat)}") from None


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


@dataclass(frozen=True)
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

    Raises:
        InvalidRequest: the encoding is unknown, or quote or escape have more than one character.
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
            "encoding": self.encoding,
            "quote": self.quote,
            "escape": self.inner_escape or "\0",
            "timeZone": "UTC",
            # Spark checks the number of columns only in those that it parses.
            "columnPruning": False,
        }

    def differences(self) -> dict[str, Any]:
        """What differs from the default, as JSON."""
        default = Dialect()
        return {
            name: value
            for name, value in vars(self).items()
            if value != getattr(default, name) and name != "multiline"
        }
