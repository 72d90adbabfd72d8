"""Rows that a job cannot use: they go to a dataset of their own, each with its reason, and are not fatal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from io import BytesIO
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import StructType

from fanin.errors import InvalidRequest, TooManyRejects
from fanin.spark.runtime.arrow import page
from fanin.spark.runtime.datasets import check_replaceable, read_dataset, replace_dataset
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.unreadable import UNKNOWN, UNREADABLE, WRONG_COLUMNS, unmarked, unmarked_text
from fanin.spark.runtime.values import whole


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


SCHEMA: Final = (
    StructType().add("value", "string").add("reason", "string", nullable=False).add("detail", "string")
)
"""``value`` is the id or the row as it came, a row as JSON; ``reason`` a ``Reason``, ``detail`` in words."""


def rejects_folder(named: str | None, folder: str) -> str:
    """The folder of a job's rejects: the one that was named, or ``rejects`` in the job's own folder."""
    return named or f"{folder.rstrip('/')}/rejects"


def check_rejects_folder(spark: SparkSession, folder: str) -> bool:
    """Refuse a folder that holds something other than rejects; as ``check_replaceable``."""
    return check_replaceable(spark, folder, columns=SCHEMA.names)


def write_rejects(rejects: DataFrame, folder: str, counted: Mapping[str, int]) -> None:
    """Write rows of ``SCHEMA``, which are counted, in the place of those of an earlier run."""
    if counted:
        replace_dataset(unmarked(rejects), folder)
    else:
        write_few_rejects(rejects.sparkSession, [], folder, write_empty=True)


class Reject(NamedTuple):
    """A row of ``SCHEMA``."""

    value: str | None
    reason: str
    detail: str | None


def write_few_rejects(
    spark: SparkSession, rejects: Sequence[Reject], path: str, *, write_empty: bool
) -> dict[str, int]:
    """Write what ``write_rejects`` writes, without a job."""
    folder = Folder(spark, path)
    if check_rejects_folder(spark, path):
        folder.delete()
    if rejects or write_empty:
        texts = [unmarked_text(row.value, row.detail) for row in rejects]
        rows = [(value, row.reason, detail) for (value, detail), row in zip(texts, rejects, strict=True)]
        columns = pa.schema([(name, pa.string()) for name in SCHEMA.names])
        file = BytesIO()
        pq.write_table(pa.Table.from_batches([page(columns, rows)]), file)
        folder.write("part-00000.parquet", file.getvalue())
        folder.write("_SUCCESS", b"")
    return dict(Counter(row.reason for row in rejects))


def in_words(rejected: Mapping[str, int]) -> str:
    """Reason → number of rows, as people are told it: ``2 malformed, 1 null``."""
    return ", ".join(f"{count} {reason}" for reason, count in sorted(rejected.items()))


def count_by_reason(rejects: DataFrame) -> dict[str, int]:
    """Reason → number of rows, of rows of ``SCHEMA``."""
    return {row["reason"]: row["count"] for row in rejects.groupBy("reason").count().collect()}


MOST_SHOWN: Final = 200  # characters of a value or a detail in a message


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
    def of(cls, given: Any) -> Self:
        """Read a limit as people give it: a number of rows, or a text such as ``100`` or ``2.5%``.

        Raises:
            InvalidRequest: it is anything else.
        """
        if given is None or isinstance(given, cls):
            return given or cls()
        if not isinstance(given, str):
            return cls(count=whole("max_rejects, unless it is a text such as '2.5%',", given))
        with suppress(ValueError):
            if given.endswith("%"):
                share = float(Decimal(str(float(given.removesuffix("%")))) / 100)
                if 0 <= share <= 1:
                    return cls(share=share)
            elif (count := int(given)) >= 0:
                return cls(count=count)
        raise InvalidRequest(f"{given!r} is neither a number of rows nor a share of them, as 100 or 2.5%")

    def check(self, rejected: Mapping[str, int], rows: int, folder: str, spark: SparkSession) -> None:
        """Go on only if few enough rows are left out, by reason, of all rows.

        Raises:
            TooManyRejects: there are more; says how many of each reason, and shows the commonest.
        """
        if self.allows(rejected, rows):
            return
        counting = _that_count(rejected)
        reasons = in_words(counting)
        if besides := {reason: count for reason, count in rejected.items() if reason not in counting}:
            reasons += f", besides {in_words(besides)}"
        out = sum(counting.values())
        most = self._most(rows)
        if out >= rows:
            limit, what = "that is all of them", "mend the rows"
        else:
            limit, what = f"at most {most} may be", "mend the rows, or raise max_rejects (--max-rejects)"
        raise TooManyRejects(
            f"{out} of {rows} rows are rejects, and {limit}: {reasons}. Nothing else was written."
            f" {_find_commonest(spark, folder)} All are in {folder}; look at them and {what}",
            rejects=rejected,
            rows=rows,
        )

    def allows(self, rejected: Mapping[str, int], rows: int) -> bool:
        """Whether so many rows may be left out."""
        out, most = sum(_that_count(rejected).values()), self._most(rows)
        return not out or (out <= most if most is not None else out < rows)

    def _most(self, rows: int) -> int | None:
        return self.count if self.share is None else int(Decimal(str(self.share)) * rows)


def _that_count(rejected: Mapping[str, int]) -> Mapping[str, int]:
    return {reason: count for reason, count in rejected.items() if reason != Reason.DUPLICATE}


def commonest(reason: str, detail: str | None, rows: int, value: str | None) -> str:
    """What most rejects have in common: reason and detail, how many rows have them, and the value of one."""
    said = f"{reason}, {_cut(detail)}" if detail else reason
    shown = "null" if value is None else repr(_cut(value))
    told = f"The commonest ({rows}): {said}; for example {shown}."
    if UNKNOWN in (value or ""):
        return f"{told} Name the encoding of the files (--encoding, for example windows-1252)."
    if detail in {UNREADABLE, WRONG_COLUMNS}:
        return f"{told} For CSV, look whether its delimiter and quote are right (--delimiter, --quote)."
    return told


def _find_commonest(spark: SparkSession, folder: str) -> str:
    """What most of the rejects in a folder have in common, of those that count."""
    found = read_dataset(spark, folder, SCHEMA).where(F.col("reason") != Reason.DUPLICATE)
    shown = F.substring("value", 1, MOST_SHOWN + 1)
    undecoded = F.coalesce(F.contains(shown, F.lit(UNKNOWN)), F.lit(False))
    grouped = found.groupBy("reason", "detail").agg(
        F.count("*").alias("count"), F.max_by(shown, F.struct(undecoded, shown)).alias("value")
    )
    (row,) = grouped.orderBy(F.desc("count"), "reason", "detail").limit(1).collect()
    return commonest(*row)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


EVERY: Final = RejectLimit(share=1)  # all rows, if need be
