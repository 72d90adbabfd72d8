"""Commands on bounded buffers: ``fanin buffer define``, ``status``, ``list``, ``put``, ``take`` and so on."""

from __future__ import annotations

from typing import Annotated

import typer

from fanin.cli.commands import CommandGroup
from fanin.cli.listing import Table
from fanin.cli.options import Cursor, PageSize, Yes
from fanin.cli.session import lines_of_stdin, session
from fanin.domain.buffer import Level
from fanin.wire import buffers as wire

app = typer.Typer(
    cls=CommandGroup,
    name="buffer",
    help="Bounded buffers: queues that make producers wait when they are full.",
)

Name = Annotated[str, typer.Argument(metavar="BUFFER", help="Name of the buffer.")]


@app.command()
def define(
    ctx: typer.Context,
    name: Name,
    limit: Annotated[int, typer.Argument(min=1, help="Most items that may be pending at a time.")],
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE", help="URL or ARN of a queue tagged fanin:channel; without it a queue is created."
        ),
    ] = None,
) -> None:
    """Create a buffer or change its limit, and print the URL of its queue."""
    run = session(ctx)
    buffer = run.tracker.buffers.define(name, limit, queue=queue)
    run.answer(wire.BUFFER.encode(buffer), buffer.queue)


@app.command()
def status(ctx: typer.Context, name: Name) -> None:
    """Show how full a buffer is."""
    run = session(ctx)
    level = run.tracker.buffers.status(name)
    run.answer(wire.LEVEL.encode(level), _describe(level))


@app.command("list")
def list_buffers(ctx: typer.Context, *, limit: PageSize = 100, cursor: Cursor = None) -> None:
    """List the buffers and their limits."""
    run = session(ctx)
    page = run.tracker.buffers.list(cursor=cursor, limit=limit)
    shown = Table("buffer", "limit", "queue", right=("limit",), empty="no buffer")
    for buffer in page.buffers:
        shown.add_row(buffer.name, buffer.limit, buffer.queue)
    run.answer(wire.BUFFERS.encode(page), shown)
    run.more(page.cursor)


@app.command()
def put(
    ctx: typer.Context,
    name: Name,
    payloads: Annotated[
        list[str], typer.Argument(metavar="TEXT...", help="Payloads; - reads one from each line of stdin.")
    ],
    *,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Fail at once if the buffer is full.")] = False,
    key: Annotated[
        str,
        typer.Option(
            metavar="PREFIX",
            help="Idempotency keys of the payloads are PREFIX/1, PREFIX/2 and so on: run the same command"
            " again, and nothing is put in twice.",
        ),
    ] = "",
) -> None:
    """Put payloads into a buffer, waiting while it is full.

    Prints the item id of each payload as soon as it is in. An error or Ctrl-C says how many are in. Then
    run the same command again if it had --key, or else with the payloads that are left.
    """
    run = session(ctx)
    producer = run.tracker.producer(name)
    send = producer.put_now if no_wait else producer.put
    texts = (text for one in payloads for text in (lines_of_stdin() if one == "-" else (one,)))
    items: list[str] = []
    try:
        for number, text in enumerate(texts, 1):
            (item,) = send(text, key=f"{key}/{number}" if key else None).items
            items.append(item)
            if not run.as_json:
                typer.echo(item)
    except BaseException:  # an error, or Ctrl-C
        if run.as_json:
            run.answer({"items": items})
        run.remark(_stopped(name, len(items), key))
        raise
    run.answer({"items": items})


def _stopped(name: str, count: int, key: str) -> str:
    """How many payloads are in, and how to go on."""
    done = f"buffer {name}: {count:,} payloads are in"
    if key:
        return f"{done}; run the same command again to go on, and nothing is put in twice"
    return f"{done}; go on with payload {count + 1:,}, which may be in, too, if its answer was lost"


@app.command()
def take(
    ctx: typer.Context,
    name: Name,
    *,
    most: Annotated[int, typer.Option(min=1, max=10, help="Most payloads to take.")] = 1,
    wait: Annotated[int, typer.Option(min=0, max=20, help="Seconds to wait for work.")] = 20,
) -> None:
    """Take payloads out of a buffer; each line has a receipt, a space and a payload."""
    run = session(ctx)
    work = run.tracker.buffers.take(name, most=most, wait=wait)
    run.answer(wire.TAKEN.encode(work))
    if not run.as_json:
        for one in work:
            typer.echo(f"{one.receipt} {one.payload}")  # not through the console, which would expand tabs


@app.command()
def done(
    ctx: typer.Context,
    name: Name,
    receipts: Annotated[list[str], typer.Argument(metavar="RECEIPT...", help="Receipts that take printed.")],
) -> None:
    """Mark payloads done, which frees their slots."""
    run = session(ctx)
    released = run.tracker.buffers.done(name, receipts)
    run.answer(wire.RELEASED.encode(released), f"{released.done} done, {released.late} late")


@app.command()
def delete(ctx: typer.Context, name: Name, yes: Yes = False) -> None:
    """Delete a buffer and the payloads in it; asks before."""
    run = session(ctx)
    run.confirm(f"Delete the buffer {name} and the payloads in it?", yes=yes)
    run.tracker.buffers.delete(name)
    run.answer({"deleted": name}, f"deleted {name}")


def _describe(level: Level) -> str:
    who = f"{level.count} waiting" if level.count >= 0 else f"{-level.count} consumers waiting"
    draining = ", draining" if level.draining else ""
    return f"{level.pending} of {level.buffer.limit} slots in use: {who}, {level.taken} taken{draining}"
