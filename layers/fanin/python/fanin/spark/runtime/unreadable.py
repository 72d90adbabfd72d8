"""Text that is not what its format says, on its way to the rejects."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

LINE: Final = "_fanin_line"
"""Column with the text of what cannot be read; null where a row is as its format says."""
PROBLEM: Final = "_fanin_problem"
"""Column that says in words what is wrong with it; null likewise."""
MARK: Final = "\uffff"
"""Stands behind text that must not be taken for a value: it ends neither an item id nor a number."""

UNREADABLE: Final = "the line cannot be read in its format"
WRONG_COLUMNS: Final = (
    "the line does not have the columns of the header, or a value is not of its column's type"
)


def marked(line: str | Column = LINE) -> Column:
    """The text of what cannot be read, so that nobody takes it for a value; null where a row can be read."""
    return F.concat(F.col(line) if isinstance(line, str) else line, F.lit(MARK))


def unmarked(rejects: DataFrame) -> DataFrame:
    """Rejects with their values as they came; where one was marked, ``detail`` says that it cannot be read.

    Args:
        rejects: rows with ``value`` and ``detail``.
    """
    unreadable = F.contains("value", F.lit(MARK))
    value = F.replace(F.col("value"), F.lit(MARK), F.lit(""))
    return rejects.withColumns(
        {
            "value": F.when(unreadable, value).otherwise(F.col("value")),
            "detail": F.when(unreadable, F.lit(UNREADABLE)).otherwise(F.col("detail")),
        }
    )


def unmarked_text(value: str | None, detail: str | None) -> tuple[str | None, str | None]:
    """As ``unmarked``, for the value and the detail of one reject."""
    if value is None or MARK not in value:
        return value, detail
    return value.replace(MARK, ""), UNREADABLE


def readable_columns(rows: DataFrame) -> list[str]:
    """The columns of the dataset itself."""
    return [name for name in rows.columns if name not in {LINE, PROBLEM}]
