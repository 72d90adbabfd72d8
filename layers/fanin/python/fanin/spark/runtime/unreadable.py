"""Text that is not what its format says, on its way to the rejects."""

from collections.abc import Iterable
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

LINE: Final = "_fanin_line"
"""Column with the text of what cannot be read; null where a row is as its format says."""
PROBLEM: Final = "_fanin_problem"
"""Column that says in words what is wrong with it; null likewise."""
MARK: Final = "\uffff\ufffe"
"""Stands behind text that must not be taken for a value: it ends neither an item id nor a number. Each of its
characters alone may be in text of people."""

UNKNOWN: Final = "\ufffd"
"""What Java makes of bytes that are not of the encoding."""

UNREADABLE: Final = "the line cannot be read in its format"
WRONG_COLUMNS: Final = (
    "the line does not have the columns of the header, or a value is not of its column's type"
)


def marked() -> Column:
    """The text of what cannot be read, so that nobody takes it for a value; null where a row can be read."""
    return F.concat(LINE, F.lit(MARK))


def unmarked(rejects: DataFrame) -> DataFrame:
    """Rejects with their values as they came, as UTF-8; where one was marked, ``detail`` says so."""
    unreadable = F.contains("value", F.lit(MARK))
    value = decoded(F.replace(F.col("value"), F.lit(MARK), F.lit("")))
    detail = F.when(unreadable, F.lit(UNREADABLE)).otherwise(decoded(F.col("detail")))
    return rejects.withColumns({"value": value, "detail": detail})


def unmarked_text(value: str | None, detail: str | None) -> tuple[str | None, str | None]:
    """As ``unmarked``, for the value and the detail of one reject."""
    if value is None or MARK not in value:
        return value, detail
    return value.replace(MARK, ""), UNREADABLE


def readable_columns(rows: DataFrame) -> list[str]:
    """The columns of the dataset itself."""
    return [name for name in rows.columns if name not in {LINE, PROBLEM}]


def not_utf8(text: Column) -> Column:
    """Whether a text is not UTF-8; null where it is null."""
    # Formatting a text decodes and encodes it, which changes it only if it was not UTF-8.
    return F.format_string("%s", text).cast("binary") != text.cast("binary")  # whatever the collation is


def undecoded(column: Column, kind: DataType) -> Column | None:
    """Whether a text in a column is not UTF-8, of which Spark makes no check.

    Returns:
        Null or false where all texts are UTF-8; None if a column of this type has none.
    """
    if isinstance(kind, StringType):
        return not_utf8(column)
    found: list[Column | None] = []
    if isinstance(kind, StructType):
        found = [undecoded(column.getField(field.name), field.dataType) for field in kind]
    elif isinstance(kind, ArrayType):
        found = [_any_of(column, kind.elementType)]
    elif isinstance(kind, MapType):
        found = [_any_of(F.map_keys(column), kind.keyType), _any_of(F.map_values(column), kind.valueType)]
    told = [one for one in found if one is not None]
    return any_true(told) if told else None


def _any_of(array: Column, kind: DataType) -> Column | None:
    def wrong(one: Column) -> Column:
        found = undecoded(one, kind)
        return F.lit(False) if found is None else F.coalesce(found, F.lit(False))

    return None if undecoded(array, kind) is None else F.exists(array, wrong)


def any_true(tests: Iterable[Column]) -> Column:
    """Whether one of some tests is true; a null is not."""
    return reduce(lambda a, b: a | b, (F.coalesce(test, F.lit(False)) for test in tests), F.lit(False))


def decoded(text: Column) -> Column:
    """A text with ``UNKNOWN`` in place of all that is not UTF-8."""
    return F.when(not_utf8(text), F.format_string("%s", text)).otherwise(text)
