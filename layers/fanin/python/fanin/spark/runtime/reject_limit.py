"""How many rows may be left out, and what to say if there are more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple, Self

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.errors import InvalidRequest, TooManyRejects
from fanin.spark.runtime.datasets import read_dataset
from fanin.spark.runtime.rejects import SCHEMA, Reason, in_words
from fanin.spark.runtime.unreadable import UNKNOWN, UNREADABLE, WRONG_COLUMNS
from fanin.spark.runtime.values import whole

MOST_SHOWN: Final = 200
"""Most characters of a value or a detail in a message."""


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
        """Read a limit as callers give it: a number of rows, a text such as ``2.5%``, None, or a limit.

        Raises:
            InvalidRequest: it is anything else.
        """
        if given is None or isinstance(given, cls):
            return given or cls()
        if isinstance(given, str):
            return cls.parse(given)
        return cls(count=whole("max_rejects, unless it is a text such as '2.5%',", given))

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

    def check(self, rejected: Mapping[str, int], rows: int, folder: str, spark: SparkSession) -> None:
        """Go on only if few enough rows are left out.

        Args:
            rejected: reason → rows.
            rows: all rows.
            folder: where the rejects are; they are looked at only if there are too many.
            spark: the session.

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


class Commonest(NamedTuple):
    """What most rejects have in common.

    Attributes:
        reason: why they are left out.
        detail: the same in words.
        rows: how many rows have both.
        value: of one of them, if possible one with bytes that are not of the encoding.
    """

    reason: str
    detail: str | None
    rows: int
    value: str | None

    def __str__(self) -> str:
        said = f"{self.reason}, {_cut(self.detail)}" if self.detail else self.reason
        value = "null" if self.value is None else repr(_cut(self.value))
        told = f"The commonest ({self.rows}): {said}; for example {value}."
        if UNKNOWN in (self.value or ""):
            return f"{told} Name the encoding of the files (--encoding, for example windows-1252)."
        if self.detail in {UNREADABLE, WRONG_COLUMNS}:
            return f"{told} For CSV, look whether its delimiter and quote are right (--delimiter, --quote)."
        return told


def _find_commonest(spark: SparkSession, folder: str) -> Commonest:
    """What most of the rejects in a folder have in common, of those that count."""
    found = read_dataset(spark, folder, SCHEMA).where(F.col("reason") != Reason.DUPLICATE)
    shown = F.substring("value", 1, MOST_SHOWN + 1)
    undecoded = F.coalesce(F.contains(shown, F.lit(UNKNOWN)), F.lit(False))
    grouped = found.groupBy("reason", "detail").agg(
        F.count("*").alias("count"), F.max_by(shown, F.struct(undecoded, shown)).alias("value")
    )
    (row,) = grouped.orderBy(F.desc("count"), "reason", "detail").limit(1).collect()
    return Commonest(*row)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


ANY: Final = RejectLimit()
"""As many as there are, if a row is left."""
EVERY: Final = RejectLimit(share=1)
"""All rows, if need be."""
