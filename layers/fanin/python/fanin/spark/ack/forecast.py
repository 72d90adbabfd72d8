"""What a run would write, how much that costs, and how long the table takes for it."""

from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, Final, NamedTuple

from botocore.exceptions import ClientError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.adapters.aws import translated
from fanin.domain import ids
from fanin.domain.costs import failure_writes
from fanin.domain.prices import prices_or_default
from fanin.domain.tree import Tree
from fanin.errors import AccessDenied, NotConfigured
from fanin.spark.ack.coalescing import Coalesced
from fanin.spark.runtime.results import Result
from fanin.spark.runtime.service import Service

QUOTA: Final = 40_000  # write units a second of an on-demand table, unless the account's quota was raised
WARM: Final = 4_000  # write units a second that a new on-demand table takes at once
_GROWS: Final = 1_800  # seconds after which an on-demand table takes twice as much as it was sent before
_LEVELS: Final = range(1, Tree().root_level(ids.MAX_ITEMS) + 1)


@dataclass(frozen=True)
class Forecast(Result):
    """What a run would do, if nothing of it was done before.

    Attributes:
        rows: of the input.
        failed: items that the rows fail.
        rejects: rows that would be left out, by reason.
        words: words to clear.
        above: words above them, which are written when one below is finished: at most, and about.
        writes: write units, at most.
        dollars: of these writes.
        price_region: region whose list price that is.
        price_assumed: whether the price of the table's own region is not known.
        writes_per_second: at which it would write in the end: what it was told, or the limit of the table.
        warm_writes_per_second: that the table takes at once; an on-demand table then doubles it every half
            hour.
        hours: that this takes.
    """

    rows: int
    failed: int
    rejects: dict[str, int] = field(default_factory=dict)
    words: int = 0
    above: int = 0
    writes: int = 0
    dollars: float = 0.0
    price_region: str = ""
    price_assumed: bool = False
    writes_per_second: float = QUOTA
    warm_writes_per_second: float = WARM
    hours: float = 0.0

    ok, detail = True, None

    def summary(self) -> dict[str, Any]:
        rounded = {"dollars": round(self.dollars, 4), "hours": round(self.hours, 3)}
        return {"ok": True, "dry_run": True, **super().summary(), **rounded}


class Throughput(NamedTuple):
    """How fast a table takes writes."""

    limit: float
    warm: float


def words_above(merged: DataFrame) -> int:
    """About how many words there are above those of ``MERGED``.

    They are counted as if every word had one on every level; a root has none, so a batch counts up to five
    too many.
    """
    number = "if(level < {0}, struct(batch_id, shiftright(number, 6 * ({0} - level))), null)"
    above = [F.approx_count_distinct(F.expr(number.format(level))) for level in _LEVELS]
    return int(merged.agg(reduce(add, above)).collect()[0][0])


def forecast_of(
    above: int, found: Coalesced, *, region: str, table: Throughput, per_second: float | None
) -> Forecast:
    """Add up what is known of a run."""
    prices = prices_or_default(region)
    most = min(table.limit, per_second or table.limit)
    writes = found.words + above + found.failed * (1 + failure_writes(0))
    return Forecast(
        found.rows,
        found.failed,
        found.rejects,
        words=found.words,
        above=above,
        writes=writes,
        dollars=writes * prices.write / 1e6,
        price_region=prices.region,
        price_assumed=prices.region != region,
        writes_per_second=most,
        warm_writes_per_second=table.warm,
        hours=_seconds(writes, most, table.warm) / 3_600,
    )


def _seconds(writes: int, most: float, warm: float) -> float:
    """How long writes take at a rate that begins with what is warm and doubles up to the most.

    Source: "On-demand capacity mode" in the developer guide of DynamoDB: a table takes twice its previous
    peak, and refuses more within 30 minutes of it.
    """
    rate, seconds, left = min(most, warm), 0.0, float(writes)
    while rate < most and left > rate * _GROWS:
        left -= rate * _GROWS
        seconds += _GROWS
        rate = min(most, 2 * rate)
    return seconds + left / rate


def throughput_of_table(service: Service) -> Throughput:
    """How fast the table of words takes writes: its own limit, or the quota of an account."""
    table = service.settings().words_table
    try:
        with translated():
            described = service.connection().client.describe_table(TableName=table)["Table"]
    except (AccessDenied, NotConfigured, ClientError):
        return Throughput(QUOTA, WARM)
    on_demand = described.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST"
    provisioned = described.get("ProvisionedThroughput", {}).get("WriteCapacityUnits", 0)
    if provisioned > 0 and not on_demand:
        return Throughput(provisioned, provisioned)
    limit = described.get("OnDemandThroughput", {}).get("MaxWriteRequestUnits", -1)
    warm = described.get("WarmThroughput", {}).get("WriteUnitsPerSecond") or WARM
    # A table that was warmed beyond the usual quota has another one.
    return Throughput(limit if limit > 0 else max(QUOTA, warm), warm)
