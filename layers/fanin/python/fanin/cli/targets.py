"""The command ``fanin targets``: who is called back at the end of a batch, and how far each is."""

from __future__ import annotations

from typing import Annotated

import typer

from fanin.cli.exits import ExitCode
from fanin.cli.options import BatchId
from fanin.cli.session import session
from fanin.domain.targets import TargetReports, TargetState
from fanin.wire.targets import TARGET_REPORTS

app = typer.Typer()


@app.command()
def targets(
    ctx: typer.Context,
    batch: BatchId,
    redeliver: Annotated[
        bool,
        typer.Option(
            "--redeliver",
            help="Retry targets that are parked or were never tried; the batch must have ended.",
        ),
    ] = False,
) -> None:
    """Show who is called back at the end of a batch. The exit code is 1 if a target is parked."""
    from fanin.cli.tables import targets_table

    run = session(ctx)
    found = run.tracker.redeliver(batch) if redeliver else run.tracker.targets(batch)
    run.answer(TARGET_REPORTS.encode(TargetReports(found)), targets_table(found))
    if any(target.state is TargetState.PARKED for target in found) and not redeliver:
        raise typer.Exit(ExitCode.WRONG)
