"""The command ``fanin plan``: what it costs to track a fan-out, computed beforehand."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from fanin.cli.session import session
from fanin.domain import limits
from fanin.domain.costs import Prices, costs, failure_writes

app = typer.Typer()

_LIST: Prices = Prices()


@app.command()
def plan(
    ctx: typer.Context,
    *,
    items: Annotated[
        int, typer.Argument(metavar="N", min=1, max=2**40, help="Number of items in the batch.")
    ],
    together: Annotated[
        int, typer.Option(min=1, max=64, help="Neighbouring items that one acknowledgement marks done.")
    ] = 1,
    write_price: Annotated[
        float, typer.Option(min=0, help="Dollars for a million write request units.")
    ] = _LIST.write,
    read_price: Annotated[
        float, typer.Option(min=0, help="Dollars for a million read request units.")
    ] = _LIST.read,
    transition_price: Annotated[
        float, typer.Option(min=0, help="Dollars for a million state transitions.")
    ] = _LIST.transition,
) -> None:
    """Show what tracking N items costs, with fanin and with its alternatives.

    The messages and the work itself are not counted: they cost the same in every case. The default
    prices are those of DynamoDB on-demand and Step Functions Standard in us-east-1 since 2024-11-01,
    without free tiers; the options take the prices of your region.
    """
    from fanin.cli.tables import table

    run = session(ctx)
    prices = replace(_LIST, write=write_price, read=read_price, transition=transition_price)
    ways = costs(items, together=together)
    document = {
        "items": items,
        "prices": {
            "write": prices.write,
            "read": prices.read,
            "transition": prices.transition,
            "per": 1_000_000,
            "currency": "USD",
        },
        "ways": [
            {
                "way": way.way,
                "writes": way.writes,
                "reads": way.reads,
                "transitions": way.transitions,
                "dollars": round(way.dollars(prices), 6),
                "note": way.note,
            }
            for way in ways
        ],
        "failure": {
            "writes": failure_writes(0),
            "writes_with_1_kib": failure_writes(1024),
            "writes_with_8_kib": failure_writes(limits.MAX_KEPT_INLINE),
        },
    }
    shown = table(
        "way",
        "writes",
        "reads",
        "transitions",
        "dollars",
        right=("writes", "reads", "transitions", "dollars"),
    )
    for way in ways:
        numbers = (f"{way.writes:,}", f"{way.reads:,}", f"{way.transitions:,}", _dollars(way.dollars(prices)))
        shown.add_row(way.way, *numbers)
    list_prices = prices == _LIST
    where = f"{_LIST.region} list prices since {_LIST.since}" if list_prices else "your prices"
    run.answer(
        document,
        shown,
        *(f"{way.way}: {way.note}" for way in ways),
        f"an item that fails takes {failure_writes(0)} writes more with a small message,"
        f" {failure_writes(1024)} with 1 KiB, {failure_writes(limits.MAX_KEPT_INLINE)} with 8 KiB;"
        " a larger message is an object in S3",
        f"{where}: ${prices.write:g} for a million writes, ${prices.read:g} reads, "
        f"${prices.transition:g} transitions; on-demand, without free tiers",
    )


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"
