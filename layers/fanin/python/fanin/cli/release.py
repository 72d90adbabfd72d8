"""The command ``fanin release``: gives held items of a batch up."""

from __future__ import annotations

from typing import Annotated

import typer

from fanin.cli import parsing
from fanin.cli.options import BatchId
from fanin.cli.session import session
from fanin.wire.batches import RELEASED

app = typer.Typer()


@app.command()
def release(
    ctx: typer.Context,
    batch: BatchId,
    errors: Annotated[
        list[str] | None,
        typer.Option(
            "--error",
            metavar="TEXT",
            help="Only items that failed for this error, or one that begins like it; numbers, ids and quoted"
            " texts do not count. `fanin failures --by-error` lists them. May be repeated.",
        ),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", metavar="A..B", help="Only ordinals A to B-1; may be repeated."),
    ] = None,
) -> None:
    """Give held items up: mark them as failed, so that the batch can complete.

    Without options, every held item is released. `fanin failures BATCH` lists them.
    """
    chosen = [parsing.ordinals(text) for text in ranges or ()]
    run = session(ctx)
    released = run.tracker.release(batch, errors=errors or (), ranges=chosen)
    said = f"{released.released:,} released; batch {batch} is {released.batch.state}"
    run.answer(RELEASED.encode(released), said)
