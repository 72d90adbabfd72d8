"""Rows that a job cannot use: they go to a dataset of their own, each with its reason, and are not fatal."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType


class Reason(StrEnum):
    """Why a row is left out.

    Attributes:
        NULL: the value is null.
        MALFORMED: the value is not an item id, or not a row of its format; or what the item brings to a total
            is not a whole number within ±2⁵³.
        FOREIGN: the value looks like an item, but this service never issued it; or the item brings something
            to a total that its batch does not have.
        GONE: the item's batch is past its lifetime.
        DUPLICATE: the input names the item more than once; all of its rows but one are rejects.
        CONFLICTING: the input names the item more than once, with different values for its totals; all of
            its rows are rejects.
        IMPLAUSIBLE: the value looks like a measurement, but cannot be true.
        TOO_LARGE: the message is larger than SQS takes.
        UNSENT: the queue refused the message for good.
    """

    NULL = "null"
    MALFORMED = "malformed"
    FOREIGN = "foreign"
    GONE = "gone"
    DUPLICATE = "duplicate"
    CONFLICTING = "conflicting"
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
"""``value`` is the id or the row as it came, a row as JSON; ``reason`` a ``Reason``, ``detail`` in words."""


def write_rejects(rejects: DataFrame, folder: str) -> dict[str, int]:
    """Write rejects as Parquet; what an earlier run of the same job wrote is replaced.

    Args:
        rejects: rows of ``SCHEMA``.
        folder: where to write them.

    Returns:
        Reason → number of rows, counted in what was written.
    """
    rejects.write.mode("overwrite").parquet(folder)
    written = rejects.sparkSession.read.schema(SCHEMA).parquet(folder)
    return {row["reason"]: row["count"] for row in written.groupBy("reason").count().collect()}
