"""Commands on routes and events: fanin route put, show, list, delete, send."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from fanin.cli import parsing
from fanin.cli.directory import Attributes
from fanin.cli.options import Cursor, PageSize
from fanin.cli.session import session
from fanin.domain.routing import Policy, PutEvent, PutRoute
from fanin.wire import directory as wire

app = typer.Typer(name="route", help="Which events go to whom.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="ROUTE", help="Name of the route.")]


@app.command()
def put(
    ctx: typer.Context,
    name: Name,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Whose registrations get what matches.")],
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="Event pattern of EventBridge, as JSON.")],
    *,
    policy: Annotated[Policy, typer.Option(help="Which of the registrations.")] = Policy.ALL,
    attributes: Attributes = None,
) -> None:
    """Make or change a route."""
    run = session(ctx)
    wanted = PutRoute(name, _object(pattern), topic, policy, dict(map(parsing.pair, attributes or ())))
    route = run.tracker.routing.put(wanted)
    run.answer(wire.ROUTE.encode(route), route.name)


@app.command()
def show(ctx: typer.Context, name: Name) -> None:
    """Show a route."""
    from fanin.cli.tables import facts

    run = session(ctx)
    route = run.tracker.routing.get(name)
    document = wire.ROUTE.encode(route)
    told = {**document, "pattern": json.dumps(document["pattern"]), "attributes": ""}
    told["attributes"] = ", ".join(f"{key}={value}" for key, value in route.attributes.items())
    run.answer(document, facts(told.items()))


@app.command("list")
def list_routes(ctx: typer.Context, *, limit: PageSize = 100, cursor: Cursor = None) -> None:
    """List the routes."""
    from fanin.cli.tables import table

    run = session(ctx)
    page = run.tracker.routing.page(cursor=cursor, limit=limit)
    shown = table("route", "topic", "policy", "pattern")
    for route in page.routes:
        shown.add_row(route.name, route.topic, route.policy.value, json.dumps(dict(route.pattern)))
    run.answer(wire.ROUTES.encode(page), shown)
    run.more(page.cursor)


@app.command()
def delete(ctx: typer.Context, name: Name) -> None:
    """Delete a route; none being there is no error."""
    run = session(ctx)
    deleted = run.tracker.routing.delete(name)
    run.answer({"deleted": deleted}, "deleted" if deleted else "there was no such route")


@app.command()
def send(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Who says it: a name of your own.")],
    detail_type: Annotated[str, typer.Argument(metavar="TYPE", help="What kind of event it is.")],
    detail: Annotated[str, typer.Argument(metavar="DETAIL", help="JSON object.")] = "{}",
) -> None:
    """Put an event on the bus, to be routed; prints its correlation id."""
    run = session(ctx)
    sent = run.tracker.routing.publish(PutEvent(source, detail_type, _object(detail)))
    run.answer(wire.SENT.encode(sent), sent.correlation_id)


def _object(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise typer.BadParameter("not a JSON object")
    return parsed
