"""The command ``fanin release``: gives held items of a batch up."""

from __future__ import annotations

from typing import Annotated

import typer

from fanin.cli import parsing
from fanin.cli.options import BatchId
from fanin.cli.session import session
from fanin.domain.selection import OrdinalRange
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
        list[OrdinalRange] | None,
        typer.Option(
            "--range",
            parser=parsing.ordinals,
            metavar="A..B",
            help="Only items with ordinals A <= i < B; may be repeated.",
        ),
    ] = None,
) -> None:
    """Give held items up: mark them as failed, so that the batch can complete.

    Without options, every held item is released. `fanin failures BATCH` lists them.
    """
    run = session(ctx)
    released = run.tracker.release(batch, errors=errors or (), ranges=ranges or ())
    said = f"{released.released:,} released; batch {batch} is {released.batch.state}"
    run.answer(RELEASED.encode(released), said)
    if not released.released:
        run.remark(f"no held item matches; `fanin failures {batch} --by-error` lists the errors")
