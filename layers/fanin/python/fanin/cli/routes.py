"""Commands on routes and events: ``fanin route put``, ``show``, ``list``, ``delete`` and ``send``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from fanin.cli import parsing
from fanin.cli.commands import CommandGroup
from fanin.cli.directory import Having
from fanin.cli.listing import FactSheet, Table
from fanin.cli.options import Cursor, PageSize
from fanin.cli.session import session
from fanin.domain.directory import Policy, PutEvent, PutRoute
from fanin.wire import directory as wire

app = typer.Typer(
    cls=CommandGroup,
    name="route",
    help="Content-based routing: which events go to which topic.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="ROUTE", help="Name of the route.")]


@app.command()
def put(
    ctx: typer.Context,
    name: Name,
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Topic whose registrations get the matching events.")
    ],
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="EventBridge event pattern, as JSON.")],
    *,
    policy: Annotated[Policy, typer.Option(help="Which of the registrations get an event.")] = Policy.ALL,
    attributes: Having = None,
) -> None:
    """Create or change a route, and print its name."""
    run = session(ctx)
    wanted = PutRoute(name, _object(pattern), topic, policy, dict(map(parsing.pair, attributes or ())))
    route = run.tracker.routing.put(wanted)
    run.answer(wire.ROUTE.encode(route), route.name)


@app.command()
def show(ctx: typer.Context, name: Name) -> None:
    """Show a route."""
    run = session(ctx)
    route = run.tracker.routing.get(name)
    document = wire.ROUTE.encode(route)
    shown = {**document, "pattern": json.dumps(document["pattern"]), "attributes": ""}
    shown["attributes"] = ", ".join(f"{key}={value}" for key, value in route.attributes.items())
    run.answer(document, FactSheet(shown.items()))


@app.command("list")
def list_routes(ctx: typer.Context, *, limit: PageSize = 100, cursor: Cursor = None) -> None:
    """List the routes."""
    run = session(ctx)
    page = run.tracker.routing.page(cursor=cursor, limit=limit)
    shown = Table("route", "topic", "policy", "pattern")
    for route in page.routes:
        shown.add_row(route.name, route.topic, route.policy.value, json.dumps(dict(route.pattern)))
    run.answer(wire.ROUTES.encode(page), shown)
    run.more(page.cursor)


@app.command()
def delete(ctx: typer.Context, name: Name) -> None:
    """Delete a route; succeeds also if the route does not exist."""
    run = session(ctx)
    deleted = run.tracker.routing.delete(name)
    run.answer({"deleted": deleted}, "deleted" if deleted else "there was no such route")


@app.command()
def send(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Source of the event: a name of your own.")],
    detail_type: Annotated[str, typer.Argument(metavar="TYPE", help="Detail type of the event.")],
    detail: Annotated[
        str, typer.Argument(metavar="DETAIL", help="Detail of the event, as a JSON object.")
    ] = "{}",
) -> None:
    """Put an event on the bus, to be routed, and print its correlation id."""
    run = session(ctx)
    sent = run.tracker.routing.publish(PutEvent(source, detail_type, _object(detail)))
    run.answer(wire.SENT.encode(sent), sent.correlation_id)


def _object(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"expected a JSON object; this is not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise typer.BadParameter(f"expected a JSON object, in braces, not {text}")
    return parsed
