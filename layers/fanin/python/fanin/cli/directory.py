"""Commands on the directory and on routes: ``fanin directory register``, ``fanin route put`` and so on."""

import json
from datetime import timedelta
from typing import Any

import typer

from fanin.cli import options
from fanin.cli.commands import argument, group, option
from fanin.cli.listing import FactSheet, Table
from fanin.cli.parsing import Pair
from fanin.cli.session import session
from fanin.domain.directory import Policy, PutEvent, PutRoute, Register, Registration, Registrations, Route
from fanin.wire import patterns as wire
from fanin.wire.json_types import encode_time

app = typer.Typer()
directory = group("directory", "The directory of instances and their queues.")
route_ = group("route", "Content-based routing: which events go to which topic.")
app.add_typer(directory)
app.add_typer(route_)


def _object(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"expected a JSON object; this is not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise typer.BadParameter(f"expected a JSON object, in braces, not {text}")
    return parsed


TOPIC = argument("Topic that the instance listens to.", metavar="TOPIC")
NAME = argument("Name of the instance within the topic.", metavar="NAME")
ATTRIBUTES = options.pairs("Attribute of the instances", "--attribute", "-a")


@directory.command()
def register(
    ctx: typer.Context,
    topic: str = TOPIC,
    name: str = NAME,
    channel: str = argument("URL or ARN of a queue tagged fanin:channel.", metavar="QUEUE"),
    *,
    attributes: list[Pair] | None = ATTRIBUTES,
    lease: timedelta = options.spans(
        "Lifetime of the registration unless it is renewed, such as 90s.", "1h", default=timedelta(hours=1)
    ),
) -> None:
    """Register an instance; repeating the command renews its lease or changes its queue."""
    run = session(ctx)
    wanted = Register(topic, name, channel, dict(attributes or ()), int(lease.total_seconds()))
    registration = run.tracker.directory.register(wanted)
    run.answer(wire.REGISTRATION.encode(registration), f"until {encode_time(registration.until)}")


@directory.command()
def deregister(ctx: typer.Context, topic: str = TOPIC, name: str = NAME) -> None:
    """End a registration; succeeds also if the instance is not registered."""
    run = session(ctx)
    deleted = run.tracker.directory.deregister(topic, name)
    run.answer({"deleted": deleted}, "deregistered" if deleted else "nobody is registered under that name")


@directory.command()
def show(ctx: typer.Context, topic: str = TOPIC, name: str = NAME) -> None:
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


@directory.command("list")
def list_topic(
    ctx: typer.Context,
    topic: str = TOPIC,
    *,
    attributes: list[Pair] | None = ATTRIBUTES,
    limit: int = options.PAGE_SIZE,
    cursor: str | None = options.CURSOR,
    every: bool = options.EVERY_PAGE,
) -> None:
    """List the registrations in a topic that have all the given attributes."""
    run = session(ctx)
    directory, wanted = run.tracker.directory, dict(attributes or ())
    if every:
        page = Registrations(tuple(directory.members(topic, wanted)))
    else:
        page = directory.page(topic, attributes=wanted, cursor=cursor, limit=limit)
    shown = Table("name", "until", "attributes", "channel")
    for one in page.registrations:
        shown.add_row(one.name, encode_time(one.until), _attributes(one), one.channel)
    run.answer(wire.REGISTRATIONS.encode(page), shown, cursor=page.cursor)


def _attributes(one: Registration | Route) -> str:
    return ", ".join(f"{name}={value}" for name, value in one.attributes.items())


ROUTE_NAME = argument("Name of the route.", metavar="ROUTE")


@route_.command()
def put(
    ctx: typer.Context,
    name: str = ROUTE_NAME,
    topic: str = argument("Topic whose registrations get the matching events.", metavar="TOPIC"),
    pattern: dict[str, Any] = argument(
        "EventBridge event pattern, as JSON.", parser=_object, metavar="PATTERN"
    ),
    *,
    policy: Policy = option("Which of the registrations get an event.", default=Policy.ALL),
    attributes: list[Pair] | None = ATTRIBUTES,
) -> None:
    """Create or change a route, and print its name."""
    run = session(ctx)
    wanted = PutRoute(name, pattern, topic, policy, dict(attributes or ()))
    route = run.tracker.routing.put(wanted)
    run.answer(wire.ROUTE.encode(route), route.name)


@route_.command("show")
def show_route(ctx: typer.Context, name: str = ROUTE_NAME) -> None:
    """Show a route."""
    run = session(ctx)
    route = run.tracker.routing.get(name)
    document = wire.ROUTE.encode(route)
    shown = {**document, "pattern": json.dumps(document["pattern"]), "attributes": _attributes(route)}
    run.answer(document, FactSheet(shown.items()))


@route_.command("list")
def list_routes(
    ctx: typer.Context, limit: int = options.PAGE_SIZE, cursor: str | None = options.CURSOR
) -> None:
    """List the routes."""
    run = session(ctx)
    page = run.tracker.routing.page(cursor=cursor, limit=limit)
    shown = Table("route", "topic", "policy", "pattern")
    for route in page.routes:
        shown.add_row(route.name, route.topic, route.policy.value, json.dumps(dict(route.pattern)))
    run.answer(wire.ROUTES.encode(page), shown, cursor=page.cursor)


@route_.command()
def delete(ctx: typer.Context, name: str = ROUTE_NAME) -> None:
    """Delete a route; succeeds also if the route does not exist."""
    run = session(ctx)
    deleted = run.tracker.routing.delete(name)
    run.answer({"deleted": deleted}, "deleted" if deleted else "there was no such route")


@route_.command()
def send(
    ctx: typer.Context,
    source: str = argument("Source of the event: a name of your own.", metavar="SOURCE"),
    detail_type: str = argument("Detail type of the event.", metavar="TYPE"),
    detail: dict[str, Any] | None = argument(
        "Detail of the event, as a JSON object.", default=None, parser=_object, metavar="DETAIL"
    ),
) -> None:
    """Put an event on the bus, to be routed, and print its correlation id."""
    run = session(ctx)
    sent = run.tracker.routing.publish(PutEvent(source, detail_type, detail or {}))
    run.answer(wire.SENT.encode(sent), sent.correlation_id)
