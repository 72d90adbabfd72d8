"""List prices of AWS, region by region: the only place where fanin knows a price.

Dollars, on demand, without free tiers, volume discounts and taxes. A region whose prices could not be looked
up is not here: ``fanin plan --prices FILE`` takes your own prices.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Final, Self

from fanin.errors import InvalidRequest

MILLION: Final = 1e6
_PRICE_LIST: Final = "AWS Price List; of Lambda, the API and dashboards the pricing pages"
_NOT_PRICES: Final = ("region", "since", "source", "assumed")


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What AWS charges in a region.

    Attributes:
        region: region of AWS.
        since: date on which these prices were valid, ISO 8601.
        source: where they were read.
        assumed: names of prices that were not found for this region; they are those of us-east-1.
        write: a million write request units of DynamoDB on demand, 1 KB each.
        read: a million read request units, 4 KB strongly consistent each.
        stored_gb: a GB of a table for a month.
        backed_up_gb: a GB of a table with point-in-time recovery for a month, besides.
        api_request: a million requests to an HTTP API of API Gateway.
        invocation: a million invocations of Lambda.
        gb_second: a million GB-seconds of Lambda on arm64.
        queue_request: a million requests to a standard queue of SQS, of 64 KB each.
        log_gb: a GB written to CloudWatch Logs.
        event: a million events on a bus of EventBridge.
        schedule: a million invocations by EventBridge Scheduler.
        metric: a custom metric for a month.
        alarm_metric: a metric that an alarm looks at for a month.
        dashboard: a dashboard for a month.
        secret: a secret of Secrets Manager for a month.
        trace: a million traces of X-Ray.
        transition: a million state transitions of Step Functions, Standard workflows.
        express_request: a million executions of Express workflows.
        express_gb_second: a million GB-seconds of Express workflows.
        durable_operation: a million operations of Lambda durable functions.
        cache_gb_hour: a GB of ElastiCache Serverless for Valkey for an hour.
        cache_unit: a million processing units (ECPU) of it.
    """

    region: str
    since: str
    source: str
    assumed: tuple[str, ...] = ()
    write: float
    read: float
    stored_gb: float
    backed_up_gb: float
    api_request: float
    invocation: float = 0.20
    gb_second: float = 13.3334
    queue_request: float = 0.40
    log_gb: float
    event: float = 1.00
    schedule: float = 1.00
    metric: float = 0.30
    alarm_metric: float = 0.10
    dashboard: float = 3.00
    secret: float = 0.40
    trace: float = 5.00
    transition: float = 25.00
    express_request: float = 1.00
    express_gb_second: float = 16.67
    durable_operation: float = 8.00
    cache_gb_hour: float = 0.084
    cache_unit: float = 0.0023

    def with_own(self, own: Mapping[str, Any], name: str) -> Self:
        """Replace prices by one's own.

        Args:
            own: some of the prices above, by name.
            name: where they come from, for people.

        Raises:
            InvalidRequest: a name or a value is not one of a price.
        """
        known = self.amounts()
        for key, value in own.items():
            if key not in known:
                raise InvalidRequest(f"{name}: there is no price {key!r}; there are {', '.join(known)}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MILLION:
                raise InvalidRequest(
                    f"{name}: the price {key} must be dollars, a number from 0 below 1,000,000, not {value!r}"
                )
        assumed = tuple(price for price in self.assumed if price not in own)
        given: dict[str, Any] = {key: float(value) for key, value in own.items()}
        return replace(self, **given, source=name, assumed=assumed)

    def amounts(self) -> dict[str, float]:
        """The prices by name, as ``--prices`` reads them."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _NOT_PRICES}

    def as_json(self) -> dict[str, Any]:
        """All attributes, for people's programs."""
        return {**asdict(self), "assumed": list(self.assumed), "currency": "USD"}


_EVERYWHERE_ELSE: Final = ("trace", "durable_operation", "cache_gb_hour", "cache_unit")
"""Prices that were only found for us-east-1; none is part of what fanin costs by default."""

_COLUMNS: Final = ("write", "read", "stored_gb", "backed_up_gb", "api_request", "log_gb")
"""Prices that differ from region to region."""


def _region(name: str, *columns: float, **others: Any) -> Prices:
    usual = {"since": "2026-08-15", "source": _PRICE_LIST, "assumed": _EVERYWHERE_ELSE}
    return Prices(region=name, **{**usual, **dict(zip(_COLUMNS, columns, strict=True)), **others})


_REGIONS: Final = (
    _region("us-east-1", 0.625, 0.125, 0.25, 0.20, 1.00, 0.50, assumed=()),
    _region("eu-west-1", 0.705, 0.1415, 0.283, 0.22, 1.11, 0.57),
    _region("eu-central-1", 0.7625, 0.1525, 0.306, 0.2448, 1.20, 0.63, schedule=1.15),
    _region(
        "ap-northeast-1",
        *(0.715, 0.1425, 0.285, 0.20, 1.29, 0.76),
        since="2026-09-23",
        source="AWS Price List, read on 2026-09-23",
        assumed=(
            *("backed_up_gb", "event", "schedule", "dashboard", "transition"),
            *("express_request", "express_gb_second", *_EVERYWHERE_ELSE),
        ),
    ),
)
BY_REGION: Final = {prices.region: prices for prices in _REGIONS}
DEFAULT: Final = BY_REGION["us-east-1"]


def prices_of(region: str) -> Prices:
    """The prices of a region.

    Raises:
        InvalidRequest: they are not known.
    """
    if region not in BY_REGION:
        raise InvalidRequest(
            f"the prices of region {region!r} are not known; they are for {', '.join(BY_REGION)}."
            " Take the one that is nearest, or give your own with --prices FILE"
        )
    return BY_REGION[region]


def prices_or_default(region: str) -> Prices:
    """The prices of a region; those of us-east-1, and named so, if they are not known."""
    return BY_REGION.get(region, DEFAULT)


def nearest(region: str) -> Prices:
    """The prices of a region, as far as they are known: the others are those of us-east-1, and ``assumed``.

    For prices of one's own, which replace some of them.
    """
    if region in BY_REGION:
        return BY_REGION[region]
    return replace(DEFAULT, region=region, assumed=tuple(DEFAULT.amounts()))


def dollars(amount: float) -> str:
    """An amount of money as people read it; small ones to a hundredth of a cent."""
    if 0 < amount < 0.0001:  # noqa: PLR2004
        return "< $0.0001"
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"
