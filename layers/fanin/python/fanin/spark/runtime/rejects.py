"""Rows that a job cannot take: not fatal and not lost, but in a dataset of their own, each with a reason."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType


class Reason(StrEnum):
    """Why a row is left out.

    Attributes:
        NULL: the value is null.
        MALFORMED: it has not the form of an id, or of a row of its format.
        FOREIGN: it has the form, but this service never issued it.
        GONE: its batch is past its lifetime.
        DUPLICATE: the input holds it more than once; all but one of its rows are here.
        IMPLAUSIBLE: it has the form of a measurement, but cannot be one.
        TOO_LARGE: its message is larger than SQS takes.
        UNSENT: the queue refused its message for good.
    """

    NULL = "null"
    MALFORMED = "malformed"
    FOREIGN = "foreign"
    GONE = "gone"
    DUPLICATE = "duplicate"
    IMPLAUSIBLE = "implausible"
    TOO_LARGE = "too_large"
    UNSENT = "unsent"


SCHEMA: Final = StructType(
    [
        StructField("value", StringType()),
        StructField("reason", StringType(), nullable=False),
        StructField("detail", StringType()),
    ]
)
"""``value``: the id or the row as it came, rows as JSON; ``reason``: a ``Reason``; ``detail``: for people."""


def write(rejects: DataFrame, folder: str) -> dict[str, int]:
    """Write rejects as Parquet, replacing what an earlier run of the same job left.

    Args:
        rejects: of ``SCHEMA``.
        folder: where to.

    Returns:
        How many rows of each reason, read back from what was written.
    """
    rejects.write.mode("overwrite").parquet(folder)
    written = rejects.sparkSession.read.schema(SCHEMA).parquet(folder)
    return {row["reason"]: row["count"] for row in written.groupBy("reason").count().collect()}
