"""The command ``fanin release``: gives up the held items of a batch."""

from __future__ import annotations

import typer

from fanin.cli.options import BatchId, OfErrors, OfOrdinals
from fanin.cli.session import session
from fanin.wire.batches import RELEASED

app = typer.Typer()


@app.command()
def release(
    ctx: typer.Context,
    batch: BatchId,
    errors: OfErrors = None,
    ranges: OfOrdinals = None,
) -> None:
    """Give up held items: mark them as failed, so that the batch can complete.

    Without options, every held item is released. `fanin failures BATCH` lists them.
    """
    run = session(ctx)
    released = run.tracker.release(batch, errors=errors or (), ranges=ranges or ())
    said = f"{released.released:,} released; batch {batch} is {released.batch.state}"
    run.answer(RELEASED.encode(released), said)
    if not released.released:
        run.remark(f"no held item matches; `fanin failures {batch} --by-error` lists the errors")
