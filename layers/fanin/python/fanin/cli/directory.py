"""Commands on the directory: ``fanin directory register``, ``deregister``, ``show`` and ``list``."""

from __future__ import annotations

from typing import Annotated

import typer

from fanin.cli import parsing
from fanin.cli.commands import CommandGroup
from fanin.cli.listing import FactSheet, Table
from fanin.cli.options import Cursor, EveryPage, PageSize
from fanin.cli.session import session
from fanin.domain.directory import Register, Registration, Registrations
from fanin.wire import directory as wire
from fanin.wire.json_types import encode_time

app = typer.Typer(
    cls=CommandGroup,
    name="directory",
    help="The directory of instances and their queues.",
    no_args_is_help=True,
)

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Topic that the instance listens to.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the instance within the topic.")]
Attributes = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute", "-a", metavar="NAME=VALUE", help="Attribute of the instance; may be repeated."
    ),
]
Having = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute", "-a", metavar="NAME=VALUE", help="Only instances with this attribute; may be repeated."
    ),
]


@app.command()
def register(
    ctx: typer.Context,
    topic: Topic,
    name: Name,
    channel: Annotated[
        str, typer.Argument(metavar="QUEUE", help="URL or ARN of a queue tagged fanin:channel.")
    ],
    *,
    attributes: Attributes = None,
    lease: Annotated[
        str,
        typer.Option(
            metavar="SPAN", help="Lifetime of the registration unless it is renewed, such as 90s or 1h."
        ),
    ] = "1h",
) -> None:
    """Register an instance; repeating the command renews its lease or changes its queue."""
    run = session(ctx)
    seconds = int(parsing.span(lease).total_seconds())
    wanted = Register(topic, name, channel, dict(map(parsing.pair, attributes or ())), seconds)
    registration = run.tracker.directory.register(wanted)
    run.answer(wire.REGISTRATION.encode(registration), f"until {encode_time(registration.until)}")


@app.command()
def deregister(ctx: typer.Context, topic: Topic, name: Name) -> None:
    """End a registration; succeeds also if the instance is not registered."""
    run = session(ctx)
    deleted = run.tracker.directory.deregister(topic, name)
    run.answer({"deleted": deleted}, "deregistered" if deleted else "nobody is registered under that name")


@app.command()
def show(ctx: typer.Context, topic: Topic, name: Name) -> None:
    """Show a registration."""
    run = session(ctx)
    one = run.tracker.directory.get(topic, name)
    shown = [
        ("channel", one.channel),
        ("attributes", _attributes(one)),
        ("since", encode_time(one.since)),
        ("until", encode_time(one.until)),
    ]
    run.answer(wire.REGISTRATION.encode(one), FactSheet(shown))


@app.command("list")
def list_topic(
    ctx: typer.Context,
    topic: Topic,
    *,
    attributes: Having = None,
    limit: PageSize = 100,
    cursor: Cursor = None,
    every: EveryPage = False,
) -> None:
    """List the registrations in a topic that have all the given attributes."""
    run = session(ctx)
    directory, wanted = run.tracker.directory, dict(map(parsing.pair, attributes or ()))
    if every:
        page = Registrations(tuple(directory.members(topic, wanted)))
    else:
        page = directory.page(topic, attributes=wanted, cursor=cursor, limit=limit)
    shown = Table("name", "until", "attributes", "channel")
    for one in page.registrations:
        shown.add_row(one.name, encode_time(one.until), _attributes(one), one.channel)
    run.answer(wire.REGISTRATIONS.encode(page), shown)
    run.more(page.cursor)


def _attributes(one: Registration) -> str:
    return ", ".join(f"{name}={value}" for name, value in one.attributes.items())
