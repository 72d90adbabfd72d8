"""Rows that a job cannot use: they go to a dataset of their own, each with its reason, and are not fatal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import StringType, StructField, StructType

from fanin.errors import InvalidRequest, TooManyRejects
from fanin.spark.runtime.unreadable import MARK, unmarked


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
        CORRECTED: a later row says something else about the same thing, and counts in its place.
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
    CORRECTED = "corrected"
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


_UNREADABLE: Final = "the line cannot be read in its format"


@dataclass(frozen=True)
class RejectLimit:
    """How many rows may be left out before a job writes nothing. Repeats are harmless, and do not count.

    Attributes:
        count: most rows; None for any number.
        share: most of all rows, from 0 to 1; None for any share but all of them.
    """

    count: int | None = None
    share: float | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a limit as people write it: ``100`` or ``2.5%``.

        Raises:
            InvalidRequest: it is neither a number of rows nor a share of them.
        """
        try:
            if text.endswith("%"):
                share = float(Decimal(str(float(text.removesuffix("%")))) / 100)
                if 0 <= share <= 1:
                    return cls(share=share)
            elif (count := int(text)) >= 0:
                return cls(count=count)
        except ValueError:
            pass
        raise InvalidRequest(f"{text!r} is neither a number of rows nor a share of them, such as 100 or 2.5%")

    def check(self, rejected: Mapping[str, int], rows: int, folder: str) -> None:
        """Go on only if few enough rows are left out.

        Args:
            rejected: reason → rows.
            rows: all rows.
            folder: where the rejects are.

        Raises:
            TooManyRejects: there are more.
        """
        harmless = {Reason.DUPLICATE, Reason.CORRECTED}
        out = sum(count for reason, count in rejected.items() if reason not in harmless)
        most = self.count if self.share is None else int(Decimal(str(self.share)) * rows)
        if out and (out > most if most is not None else out >= rows):
            limit = "that is all of them" if most is None else f"at most {most} may be"
            raise TooManyRejects(
                f"{out} of {rows} rows are rejects, and {limit}; nothing else was written. Look at"
                f" {folder}, then mend the rows, or pass a higher --max-rejects",
                rejects=rejected,
                rows=rows,
            )


ANY: Final = RejectLimit()
"""As many as there are, if a row is left."""
EVERY: Final = RejectLimit(share=1)
"""All rows, if need be."""


def write_none(spark: SparkSession, folder: str) -> dict[str, int]:
    """Write a dataset of no rejects, as ``write_rejects`` does, in a fraction of its time."""
    nothing = [f"CAST(NULL AS {field.dataType.simpleString()}) AS {field.name}" for field in SCHEMA]
    spark.range(0, 0, 1, 1).selectExpr(*nothing).write.mode("overwrite").parquet(folder)
    return {}


def write_rejects(
    rejects: DataFrame, folder: str, counted: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Write rejects as Parquet; what an earlier run of the same job wrote is replaced.

    Args:
        rejects: rows of ``SCHEMA``.
        folder: where to write them.
        counted: reason → number of rows, if that is known; ``rejects`` is then not looked at for none.

    Returns:
        Reason → number of rows; if it was not known, counted in what was written.
    """
    if counted is not None and not counted:
        return write_none(rejects.sparkSession, folder)
    unreadable = F.contains("value", F.lit(MARK))
    shown = rejects.withColumns(
        {
            "value": F.when(unreadable, unmarked("value")).otherwise(F.col("value")),
            "detail": F.when(unreadable, F.lit(_UNREADABLE)).otherwise(F.col("detail")),
        }
    )
    shown.write.mode("overwrite").parquet(folder)
    if counted is not None:
        return dict(counted)
    written = rejects.sparkSession.read.schema(SCHEMA).parquet(folder)
    return {row["reason"]: row["count"] for row in written.groupBy("reason").count().collect()}
