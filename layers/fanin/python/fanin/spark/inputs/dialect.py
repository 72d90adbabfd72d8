"""How the text of a CSV or JSON dataset is written down."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Any, Final

from fanin.errors import InvalidRequest

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
