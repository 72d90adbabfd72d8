"""Commands on a batch as a whole: open, add, close, cancel, list."""

from __future__ import annotations

from typing import Annotated

import typer

from fanin.cli import parsing
from fanin.cli.options import BatchId, Cursor, Deadline, EveryPage, Limit, Metadata, PageSize, UserKey
from fanin.cli.session import session
from fanin.domain.batch import Mode, OnDeadline, State
from fanin.domain.reports import Batches
from fanin.wire.batches import BATCH, BATCHES, GROUP

app = typer.Typer()


@app.command("open")
def open_batch(
    ctx: typer.Context,
    *,
    user_key: UserKey = "",
    mode: Annotated[Mode, typer.Option(help="The exact tree, or one counter.")] = Mode.EXACT,
    idle_ttl: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Orphan it after so long without activity: 15m, 2h.")
    ] = None,
    lifetime: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Remove it after so long: 30d.")
    ] = None,
    deadline: Deadline = None,
    on_deadline: Annotated[OnDeadline, typer.Option(help="What happens then.")] = OnDeadline.TIME_OUT,
    limit: Limit = None,
    parent_item: Annotated[
        str | None, typer.Option(help="Item of another batch, acknowledged when this one completes.")
    ] = None,
    metadata: Metadata = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: repeating the command opens no second batch.")
    ] = None,
) -> None:
    """Open a batch; prints its id."""
    run = session(ctx)
    batch = run.tracker.open(
        user_key=user_key,
        mode=mode,
        idle_ttl=parsing.span(idle_ttl) if idle_ttl else None,
        lifetime=parsing.span(lifetime) if lifetime else None,
        deadline=parsing.moment(deadline) if deadline else None,
        on_deadline=on_deadline,
        limit=limit,
        parent_item=parent_item,
        metadata=dict(map(parsing.pair, metadata or ())),
        key=key,
    )
    run.answer(BATCH.encode(batch), str(batch.batch_id))


@app.command()
def add(
    ctx: typer.Context,
    batch: BatchId,
    count: Annotated[int, typer.Argument(metavar="N", help="How many items.")],
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: repeating the command adds nothing more.")
    ] = None,
    ids: Annotated[bool, typer.Option("--ids", help="Print all item ids, a line each.")] = False,
) -> None:
    """Add N items to an open batch; prints their group, BATCH:GROUP.

    The items are BATCH:GROUP:0 to BATCH:GROUP:N-1.
    """
    run = session(ctx)
    group = run.tracker.add(batch, count, key=key)
    if ids and not run.as_json:
        for item in group:
            typer.echo(item)
    else:
        run.answer(GROUP.encode(group), group.prefix)


@app.command()
def close(ctx: typer.Context, batch: BatchId) -> None:
    """Close a batch; it completes with its last item."""
    run = session(ctx)
    row = run.tracker.close(batch)
    run.answer(BATCH.encode(row), str(row.state))


@app.command()
def cancel(ctx: typer.Context, batch: BatchId) -> None:
    """Cancel a batch; one that has ended stays as it is."""
    run = session(ctx)
    row = run.tracker.cancel(batch)
    run.answer(BATCH.encode(row), str(row.state))


@app.command("list")
def list_batches(
    ctx: typer.Context,
    state: Annotated[State, typer.Argument(help="State of the batches to list.")] = State.OPEN,
    limit: PageSize = 100,
    cursor: Cursor = None,
    every: EveryPage = False,
) -> None:
    """List the batches of a state."""
    from fanin.cli.tables import batches_table

    run = session(ctx)
    if every:
        page = Batches(tuple(run.tracker.iter_batches(state)))
    else:
        page = run.tracker.list(state, cursor=cursor, limit=limit)
    run.answer(BATCHES.encode(page), batches_table(page.batches))
    run.more(page.cursor)
