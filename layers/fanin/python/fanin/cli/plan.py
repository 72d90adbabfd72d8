"""The command ``fanin plan``: what it costs to track a fan-out, computed beforehand."""

import json
from pathlib import Path
from typing import Any

import typer

from fanin.cli.commands import argument, flag, option
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
_ASKED = ("items", "order", "together", "rate", "item_ms", "keys", "growing", "result_bytes")
_OF_CONSUMERS = 4
"""The first ways: a consumer marks the items of each message; their rate decides what quotas they need."""


@app.command()
def plan(
    ctx: typer.Context,
    *,
    items: int = argument(
        "Number of items in the batch, such as 1000000, 1_000_000, 1e6, 10k or 2.5M.",
        parser=lambda text: whole(text, 1, MAX_ITEMS),
        metavar="N",
    ),
    together: int = option(
        "Items that one call or message acknowledges.", default=TOGETHER, min=1, max=limits.MAX_MARKS
    ),
    order: Order = option(
        "Which items are acknowledged together: any, as queues deliver them, or those that follow"
        " one another.",
        "--order",
        default=Order.SCATTERED,
    ),
    rate: int = option(
        "Items done in the busiest second, for the quotas; the ack queue merges more if it is high.",
        default=RATE,
        min=1,
        max=1_000_000,
    ),
    item_ms: int = option(
        "Milliseconds that a consumer on Lambda works on an item, for the quotas.",
        default=ITEM_MS,
        min=0,
        max=900_000,
    ),
    keys: bool = flag(
        "Items have keys of 20 letters: two write units each, and four to six an addition.", "--keys"
    ),
    growing: int = option(
        "The batch grows from inside, and drains: an item adds N others at a time, for four write"
        " units and two reads; 0 if it does not.",
        default=0,
        min=0,
        max=MAX_COUNT,
        metavar="N",
    ),
    result_bytes: int = option(
        "Items have results of so many bytes of JSON: one write unit a KB; 0 if they have none.",
        default=0,
        min=0,
        max=limits.MAX_KEPT_INLINE,
        metavar="BYTES",
    ),
    region: str = option("Region of AWS whose prices are taken.", default=DEFAULT.region, metavar="REGION"),
    own: Path | None = option(
        'JSON with prices of your own, such as {"write": 0.5}, or what --json printed; others are'
        " those of the region, or of us-east-1 if fanin does not know them.",
        "--prices",
        metavar="FILE",
        dir_okay=False,
    ),
) -> None:
    """Show what tracking N items costs: the whole bill of each way, and of its alternatives; and its quotas.

    The messages, the work itself and the time that consumers wait for an answer are not counted. Prices
    are list prices, on demand, without free tiers. How long a function takes is assumed.
    """
    run = session(ctx)
    try:
        prices = prices_of(region) if own is None else nearest(region).with_own(_own(own), str(own))
    except InvalidRequest as error:
        raise typer.BadParameter(str(error)) from None
    more = extras(items, keys=keys, growing=growing, result_bytes=result_bytes)
    ways = costs(items, order, together=together, rate=rate, more=more)
    others = alternatives(items)
    quotas = {way.way: needs(way, items, rate=rate, item_ms=item_ms) for way in ways[:_OF_CONSUMERS]}
    waiting = idle()
    small, kib, largest = map(failure_writes, (0, 1024, limits.MAX_KEPT_INLINE))
    document = {
        **{name: ctx.params[name] for name in _ASKED},
        "prices": prices.as_json(),
        "ways": [_document(way, prices) for way in ways],
        "alternatives": [_document(way, prices) for way in others],
        "idle_month": _bill(waiting, prices),
        "quotas": [
            {"way": way, "service": quota.service, "quota": quota.name, "needed": n, "default": quota.default}
            for way, taken in quotas.items()
            for quota, n in taken.items()
        ],
        "failure": {"writes": small, "writes_with_1_kib": kib, "writes_with_8_kib": largest},
    }
    shown = Table("way", "writes", *_SERVICES, "dollars", right=("writes", *_SERVICES, "dollars"))
    for way in [*ways, *others]:
        bill = way.usage.bill(prices)
        amounts = [*(bill[service] for service in _SERVICES), way.dollars(prices)]
        # People see nothing where nothing is to be paid.
        money = (Value(dollars(amount) if amount else "", f"{amount:.6f}") for amount in amounts)
        shown.add_row(way.way, way.writes, *money)
    said = [f"{way.way}: {way.note}" for way in [*ways, *others]]
    said += [f"{way}: at {rate:,} items a second, {_quotas(taken)}" for way, taken in quotas.items()]
    if more.writes:
        amount = f"{more.writes:,.0f} writes and {more.reads:,.0f} reads, {dollars(more.dollars(prices))}"
        said.append(f"keys, growth and results: {amount} of each way")
    kept = f"{small} writes more with a small message, {kib} with 1 KiB, {largest} with 8 KiB"
    said += [
        f"an item that fails takes {kept}; a larger message is an object in S3",
        f"a deployment that does nothing costs {dollars(waiting.dollars(prices))} a month",
        f"{order} items; prices of {prices.region}, {prices.since}: {prices.source}; without free tiers",
    ]
    if prices.assumed:
        said.append(f"assumed as in {DEFAULT.region}: {', '.join(prices.assumed)}")
    run.answer(document, shown, *said)


def _quotas(taken: dict[Quota, int]) -> str:
    """What people read of the quotas: the three that matter, and what is more than an account has."""
    return ", ".join(
        f"{needed:,} {quota.unit}"
        + (f" (an account has {quota.default:,}: raise {quota.name})" if needed > quota.default else "")
        for quota, needed in taken.items()
        if needed and (quota in (CONCURRENCY, REQUESTS, WRITES) or needed > quota.default)
    )


def _own(file: Path) -> dict[str, Any]:
    """Prices by name, from a file that may also be what ``fanin plan --json`` printed, or its prices alone.

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
    if isinstance(own.get("prices"), dict):
        own = own["prices"]
    return {key: value for key, value in own.items() if key not in _DESCRIBING}


_DESCRIBING = ("region", "since", "source", "assumed", "currency")


def _document(way: Cost, prices: Prices) -> dict[str, Any]:
    bill = _bill(way.usage, prices)
    return {"way": way.way, "writes": way.writes, "reads": way.reads, **bill, "note": way.note}


def _bill(usage: Usage, prices: Prices) -> dict[str, Any]:
    bill = {service: round(amount, 6) for service, amount in usage.bill(prices).items() if amount}
    return {"dollars": round(usage.dollars(prices), 6), "bill": bill, "usage": usage.amounts()}
