"""Rows that a job cannot use: they go to a dataset of their own, each with its reason, and are not fatal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from io import BytesIO
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from fanin.spark.runtime.datasets import check_replaceable, replace_dataset
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.unreadable import unmarked, unmarked_text


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
        TOO_LARGE: the message is larger than SQS takes.
        UNSENT: the queue refused the message for good.
    """

    NULL = "null"
    MALFORMED = "malformed"
    FOREIGN = "foreign"
    GONE = "gone"
    DUPLICATE = "duplicate"
    CONFLICTING = "conflicting"
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


def rejects_folder(named: str | None, folder: str) -> str:
    """The folder of a job's rejects: the one that was named, or ``rejects`` in the job's own folder."""
    return named or f"{folder.rstrip('/')}/rejects"


def check_rejects_folder(spark: SparkSession, folder: str) -> bool:
    """Refuse a folder that holds something other than rejects; as ``check_replaceable``."""
    return check_replaceable(spark, folder, ours=lambda footer: footer.columns == SCHEMA.names)


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

    Raises:
        InvalidRequest: as ``replace_dataset``.
    """
    if counted is not None and not counted:
        return write_few_rejects(rejects.sparkSession, [], folder, write_empty=True)
    written = replace_dataset(unmarked(rejects), folder)
    return count_by_reason(written) if counted is None else dict(counted)


class Reject(NamedTuple):
    """A row of ``SCHEMA``."""

    value: str | None
    reason: str
    detail: str | None


def write_few_rejects(
    spark: SparkSession, rejects: Sequence[Reject], path: str, *, write_empty: bool
) -> dict[str, int]:
    """Write what ``write_rejects`` writes, without a job.

    Args:
        spark: the session.
        rejects: rows of ``SCHEMA``.
        path: of the folder for them; the rejects of an earlier run are replaced.
        write_empty: whether to write a dataset if there are no rejects; otherwise there is no folder then.

    Returns:
        Reason → number of rows.

    Raises:
        InvalidRequest: as ``check_rejects_folder``.
    """
    folder = Folder(spark, path)
    if check_rejects_folder(spark, path):
        folder.delete()
    if rejects or write_empty:
        texts = [unmarked_text(row.value, row.detail) for row in rejects]
        columns = {
            "value": [value for value, _ in texts],
            "reason": [row.reason for row in rejects],
            "detail": [detail for _, detail in texts],
        }
        file = BytesIO()
        pq.write_table(pa.table(columns, pa.schema([(name, pa.string()) for name in SCHEMA.names])), file)
        folder.write_bytes("part-00000.parquet", file.getvalue())
        folder.write_bytes("_SUCCESS", b"")
    return dict(Counter(row.reason for row in rejects))


def in_words(rejected: Mapping[str, int]) -> str:
    """Reason → number of rows, as people are told it: ``2 malformed, 1 null``."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(rejected.items()))


def count_by_reason(rejects: DataFrame) -> dict[str, int]:
    """Reason → number of rows, of rows of ``SCHEMA``."""
    return {row["reason"]: row["count"] for row in rejects.groupBy("reason").count().collect()}
