"""What a run would write, how much that costs, and how long the table takes for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from botocore.exceptions import ClientError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.adapters.aws import translated
from fanin.domain import ids
from fanin.domain.costs import failure_writes
from fanin.domain.tree import Tree
from fanin.errors import AccessDenied, NotConfigured
from fanin.spark.runtime.service import Service

QUOTA: Final = 40_000
"""Write units a second that an account allows an on-demand table unless the quota was raised."""
_LEVELS: Final = range(1, Tree().root_level(ids.MAX_ITEMS) + 1)
_HOUR: Final = 3_600


@dataclass(frozen=True)
class Forecast:
    """What a run would do, if nothing of it was done before.

    Attributes:
        rows: of the input.
        failed: items that the rows fail.
        rejects: rows that would be left out, by reason.
        words: words to clear.
        above: words above them, which are written when one below is finished: at most, and about.
        writes: write units, at most.
        dollars: of these writes.
        writes_per_second: at which it would write: what it was told, or the limit of the table.
        hours: that this takes.
    """

    rows: int
    failed: int
    rejects: dict[str, int] = field(default_factory=dict)
    words: int = 0
    above: int = 0
    writes: int = 0
    dollars: float = 0.0
    writes_per_second: float = QUOTA
    hours: float = 0.0

    def summary(self) -> dict[str, Any]:
        """The summary of the job, ready for JSON."""
        told = asdict(self) | {"dollars": round(self.dollars, 4), "hours": round(self.hours, 3)}
        return {"ok": True, "dry_run": True, "rejects": self.rejects, **told}


def words_of(marks: DataFrame) -> tuple[int, int]:
    """Count the words of ``MARKS``, and about how many words there are above them.

    The words above are counted as if every word had one on every level; a root has none, so a batch counts up
    to five too many.
    """
    above = [
        F.approx_count_distinct(
            F.when(
                F.col("level") < level,
                F.struct("batch_id", F.expr(f"shiftright(number, 6 * ({level} - level))")),
            )
        )
        for level in _LEVELS
    ]
    first, *others = above
    total = first
    for one in others:
        total = total + one
    words, higher = marks.agg(F.count(F.lit(1)), total).collect()[0]
    return int(words), int(higher)


def forecast_of(
    words: tuple[int, int],
    *,
    rows: int,
    failed: int,
    rejects: dict[str, int],
    price: float,
    per_second: float,
) -> Forecast:
    """Add up what is known of a run.

    Args:
        words: as ``words_of`` counts them.
        rows: of the input.
        failed: items that the rows fail.
        rejects: rows that would be left out, by reason.
        price: dollars for a million write units.
        per_second: write units a second.
    """
    cleared, above = words
    writes = cleared + above + failed * (1 + failure_writes(0))
    return Forecast(
        rows=rows,
        failed=failed,
        rejects=rejects,
        words=cleared,
        above=above,
        writes=writes,
        dollars=writes * price / 1e6,
        writes_per_second=per_second,
        hours=writes / per_second / _HOUR,
    )


def limit_of_table(service: Service) -> float:
    """Write units a second that the table of words takes: its own limit, or the quota of an account."""
    table = service.settings().words_table
    try:
        with translated():
            described = service.connection().client.describe_table(TableName=table)["Table"]
    except (AccessDenied, NotConfigured, ClientError):
        return QUOTA
    if described.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST":
        limit = described.get("OnDemandThroughput", {}).get("MaxWriteRequestUnits", -1)
    else:
        limit = described.get("ProvisionedThroughput", {}).get("WriteCapacityUnits", 0)
    return float(limit if limit > 0 else QUOTA)
