"""The command ``fanin plan``: what it costs to track a fan-out, computed beforehand."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from fanin.cli.listing import Table, Value
from fanin.cli.session import session
from fanin.domain import limits
from fanin.domain.costs import RATE, TOGETHER, Cost, Order, Usage, costs, extras, failure_writes
from fanin.domain.ids import MAX_COUNT, MAX_ITEMS
from fanin.domain.planning import CONCURRENCY, ITEM_MS, REQUESTS, WRITES, Quota, alternatives, idle, needs
from fanin.domain.prices import DEFAULT, Prices, dollars, nearest, prices_of
from fanin.errors import InvalidRequest
from fanin.wire.typed import whole

app = typer.Typer()

_SERVICES = ("DynamoDB", "API", "Lambda", "SQS", "logs")
_OF_CONSUMERS = 4
"""The first ways: a consumer marks the items of each message; their rate decides what quotas they need."""


@app.command()
def plan(
    ctx: typer.Context,
    *,
    items: Annotated[
        int,
        typer.Argument(
            parser=lambda text: whole(text, 1, MAX_ITEMS),
            metavar="N",
            help="Number of items in the batch, such as 1000000, 1_000_000, 1e6, 10k or 2.5M.",
        ),
    ],
    together: Annotated[
        int, typer.Option(min=1, max=limits.MAX_MARKS, help="Items that one call or message acknowledges.")
    ] = TOGETHER,
    order: Annotated[
        Order,
        typer.Option(
            "--order",
            help="Which items are acknowledged together: any, as queues deliver them, or those that follow"
            " one another.",
        ),
    ] = Order.SCATTERED,
    rate: Annotated[
        int,
        typer.Option(
            min=1,
            max=1_000_000,
            help="Items done in the busiest second, for the quotas; the ack queue merges more if it is high.",
        ),
    ] = RATE,
    item_ms: Annotated[
        int,
        typer.Option(
            min=0,
            max=900_000,
            help="Milliseconds that a consumer on Lambda works on an item, for the quotas.",
        ),
    ] = ITEM_MS,
    keys: Annotated[
        bool,
        typer.Option(
            "--keys", help="Items have keys of 20 letters: two write units each, and four to six an addition."
        ),
    ] = False,
    growing: Annotated[
        int,
        typer.Option(
            min=0,
            max=MAX_COUNT,
            metavar="N",
            help="The batch grows from inside, and drains: an item adds N others at a time, for four write"
            " units and two reads; 0 if it does not.",
        ),
    ] = 0,
    result_bytes: Annotated[
        int,
        typer.Option(
            min=0,
            max=limits.MAX_KEPT_INLINE,
            metavar="BYTES",
            help="Items have results of so many bytes of JSON: one write unit a KB; 0 if they have none.",
        ),
    ] = 0,
    region: Annotated[
        str, typer.Option(metavar="REGION", help="Region of AWS whose prices are taken.")
    ] = DEFAULT.region,
    own: Annotated[
        Path | None,
        typer.Option(
            "--prices",
            metavar="FILE",
            dir_okay=False,
            help='JSON with prices of your own, such as {"write": 0.5}, or what --json printed; others are'
            " those of the region, or of us-east-1 if fanin does not know them.",
        ),
    ] = None,
) -> None:
    """Show what tracking N items costs: the whole bill of each way, and of its alternatives; and its quotas.

    The messages, the work itself and the time that consumers wait for an answer are not counted. Prices
    are list prices, on demand, without free tiers. How long a function takes is assumed.
    """
    run = session(ctx)
    prices = _prices(region, own)
    more = extras(items, keys=keys, growing=growing, result_bytes=result_bytes)
    ways = costs(items, order, together=together, rate=rate, more=more)
    others = alternatives(items)
    quotas = {way.way: needs(way, items, rate=rate, item_ms=item_ms) for way in ways[:_OF_CONSUMERS]}
    waiting = idle()
    document = {
        "items": items,
        "order": order,
        "together": together,
        "rate": rate,
        "item_ms": item_ms,
        "keys": keys,
        "growing": growing,
        "result_bytes": result_bytes,
        "prices": prices.as_json(),
        "ways": [_document(way, prices) for way in ways],
        "alternatives": [_document(way, prices) for way in others],
        "idle_month": {
            "dollars": round(waiting.dollars(prices), 6),
            "bill": _rounded(waiting.bill(prices)),
            "usage": waiting.amounts(),
        },
        "quotas": [
            {
                "way": way,
                "service": quota.service,
                "quota": quota.name,
                "needed": needed,
                "default": quota.default,
            }
            for way, taken in quotas.items()
            for quota, needed in taken.items()
        ],
        "failure": {
            "writes": failure_writes(0),
            "writes_with_1_kib": failure_writes(1024),
            "writes_with_8_kib": failure_writes(limits.MAX_KEPT_INLINE),
        },
    }
    shown = Table("way", "writes", *_SERVICES, "dollars", right=("writes", *_SERVICES, "dollars"))
    for way in [*ways, *others]:
        bill = way.usage.bill(prices)
        shown.add_row(
            way.way,
            way.writes,
            *(_money(bill[service]) for service in _SERVICES),
            _money(way.dollars(prices)),
        )
    run.answer(
        document,
        shown,
        *(f"{way.way}: {way.note}" for way in [*ways, *others]),
        *(f"{way}: at {rate:,} items a second, {_quotas(taken)}" for way, taken in quotas.items()),
        *([_extras(more, dollars(more.dollars(prices)))] if more.writes else []),
        f"an item that fails takes {failure_writes(0)} writes more with a small message,"
        f" {failure_writes(1024)} with 1 KiB, {failure_writes(limits.MAX_KEPT_INLINE)} with 8 KiB;"
        " a larger message is an object in S3",
        f"a deployment that does nothing costs {dollars(waiting.dollars(prices))} a month",
        f"{order} items; prices of {prices.region}, {prices.since}: {prices.source}; without free tiers",
        *([f"assumed as in {DEFAULT.region}: {', '.join(prices.assumed)}"] if prices.assumed else []),
    )


def _extras(more: Usage, dollars: str) -> str:
    amounts = f"{more.writes:,.0f} writes and {more.reads:,.0f} reads"
    return f"keys, growth and results: {amounts}, {dollars} of each way"


def _quotas(taken: dict[Quota, int]) -> str:
    """What people read of the quotas: the three that matter, and what is more than an account has."""
    return ", ".join(
        f"{needed:,} {quota.unit}"
        + (f" (an account has {quota.default:,}: raise {quota.name})" if needed > quota.default else "")
        for quota, needed in taken.items()
        if needed and (quota in (CONCURRENCY, REQUESTS, WRITES) or needed > quota.default)
    )


def _prices(region: str, own: Path | None) -> Prices:
    try:
        return prices_of(region) if own is None else nearest(region).with_own(*_read(own))
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from None


def _read(file: Path) -> tuple[dict[str, Any], str]:
    """Read prices from a file.

    Returns:
        Prices by name, and the name of the file.

    Raises:
        InvalidRequest: it cannot be read, or is not a JSON object.
    """
    try:
        own = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"the prices in {file} cannot be read: {error}") from None
    if not isinstance(own, dict):
        raise InvalidRequest(
            f'{file} must hold a JSON object such as {{"write": 0.5}}, not {type(own).__name__}'
        )
    # What ``fanin plan --json`` prints is taken as well: the whole document, or its prices alone.
    if isinstance(own.get("prices"), dict):
        own = own["prices"]
    return {key: value for key, value in own.items() if key not in _DESCRIBING}, str(file)


_DESCRIBING = ("region", "since", "source", "assumed", "currency")


def _money(amount: float) -> Value:
    """An amount in dollars; people see nothing where nothing is to be paid."""
    return Value(dollars(amount) if amount else "", f"{amount:.6f}")


def _document(way: Cost, prices: Prices) -> dict[str, Any]:
    return {
        "way": way.way,
        "writes": way.writes,
        "reads": way.reads,
        "dollars": round(way.dollars(prices), 6),
        "bill": _rounded(way.usage.bill(prices)),
        "usage": way.usage.amounts(),
        "note": way.note,
    }


def _rounded(bill: dict[str, float]) -> dict[str, float]:
    return {service: round(amount, 6) for service, amount in bill.items() if amount}
