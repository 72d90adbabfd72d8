"""Commands on scatters: ``fanin scatter start``, ``fanin scatter show`` and ``fanin replies``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from fanin.cli import parsing
from fanin.cli.commands import CommandGroup
from fanin.cli.listing import FactSheet, Table
from fanin.cli.options import BatchId, Cursor, EveryPage, Metadata, TotalNames, UserKey
from fanin.cli.session import session
from fanin.domain.scatter import MAX_RETRIES, Gathered, Scattered
from fanin.wire import scatters as wire

app = typer.Typer()
scatter = typer.Typer(
    cls=CommandGroup,
    name="scatter",
    help="Scatter-gather: send a message to many recipients, and gather their replies.",
    no_args_is_help=True,
)
app.add_typer(scatter)


@scatter.command()
def start(
    ctx: typer.Context,
    body: Annotated[str, typer.Argument(metavar="BODY", help="Text of the message.")],
    *,
    topic: Annotated[
        str | None, typer.Option(help="Send to everyone who is registered in this topic.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Send only to registrations with this attribute; may be repeated."
        ),
    ] = None,
    to: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUEUE",
            help="Send to this queue, given by URL or ARN, or to TOPIC/NAME; may be repeated.",
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option("--type", help="Type of the message, by which recipients tell what is asked.")
    ] = "",
    correlation_id: Annotated[
        str | None, typer.Option(help="A correlation id of your own; no running scatter may have it.")
    ] = None,
    timeout: Annotated[
        str,
        typer.Option(metavar="SPAN", help="Send again to those missing after this long, such as 30s or 2m."),
    ] = "2m",
    max_retries: Annotated[int, typer.Option(help="How often to send again at most.")] = MAX_RETRIES,
    quorum: Annotated[
        str | None,
        typer.Option(
            metavar="K|SHARE", help="End after this many replies: a number like 5, or a share like 0.8."
        ),
    ] = None,
    user_key: UserKey = "",
    metadata: Metadata = None,
    total: TotalNames = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: repeating the command with it starts nothing more.")
    ] = None,
) -> None:
    """Send a message to a topic or to queues, and print the batch id of the scatter."""
    if (topic is None) == (not to):
        raise typer.BadParameter("pass either --topic, or --to for each queue")
    run = session(ctx)
    started = run.tracker.scatters.start(
        topic if topic is not None else list(to or ()),
        body,
        where=dict(map(parsing.pair, where or ())),
        type=kind,
        correlation_id=correlation_id,
        timeout=parsing.span(timeout),
        max_retries=max_retries,
        quorum=parsing.quorum(quorum) if quorum else None,
        user_key=user_key,
        metadata=dict(map(parsing.pair, metadata or ())),
        totals=total or (),
        key=key,
    )
    run.answer(wire.SCATTERED.encode(started), str(started.batch.batch_id))


@scatter.command()
def show(ctx: typer.Context, batch: BatchId) -> None:
    """Show how many recipients replied, failed and are missing, counted exactly."""
    run = session(ctx)
    found = run.tracker.scatters.status(batch)
    run.answer(wire.SCATTERED.encode(found), FactSheet(_facts(found)))


@app.command()
def replies(
    ctx: typer.Context,
    batch: BatchId,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="Most replies on one page.")] = 100,
    cursor: Cursor = None,
    every: EveryPage = False,
) -> None:
    """List the replies to a scatter, in the order of the recipients."""
    run = session(ctx)
    scatters = run.tracker.scatters
    if every:
        page = Gathered(tuple(scatters.replies(batch)))
    else:
        page = scatters.replies_page(batch, cursor=cursor, limit=limit)
    shown = Table("recipient", "name", "reply", right=("recipient",), empty="nobody has replied")
    for reply in page.replies:
        said = json.dumps(reply.payload, ensure_ascii=False) if reply.claim is None else reply.url
        shown.add_row(str(reply.ordinal), reply.name, said)
    run.answer(wire.GATHERED.encode(page), shown)
    run.more(page.cursor)


def _facts(found: Scattered) -> list[tuple[str, object]]:
    from fanin.cli.tables import total_facts

    return [
        ("scatter", str(found.batch.batch_id)),
        ("state", f"{found.batch.state}, partial" if found.batch.partial else str(found.batch.state)),
        ("correlation id", found.correlation_id),
        ("recipients", "being listed" if found.starting else f"{found.batch.items:,}"),
        ("received", f"{found.received:,}"),
        ("failed", f"{found.failed:,}"),
        ("missing", f"{found.missing:,}"),
        ("sent again", f"{found.retries} of {found.max_retries} times"),
        ("quorum", found.quorum),
        *total_facts(found.batch),
    ]
