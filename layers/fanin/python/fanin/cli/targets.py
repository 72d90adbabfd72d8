"""The command ``fanin targets``: who is called back at the end of a batch, and how far each is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from fanin.cli.exits import ExitCode
from fanin.cli.listing import Table
from fanin.cli.options import BatchId
from fanin.cli.session import session
from fanin.domain.limits import counted
from fanin.domain.targets import TargetReport, TargetReports, TargetState
from fanin.wire.batches import TARGET_REPORTS
from fanin.wire.json_types import encode_time

app = typer.Typer()


@app.command()
def targets(
    ctx: typer.Context,
    batch: BatchId,
    redeliver: Annotated[
        bool,
        typer.Option(
            "--redeliver",
            help="Tell those at once that were not told yet; the batch must have ended.",
        ),
    ] = False,
) -> None:
    """Show who is called back at the end of a batch. Exits with 1 if a target is parked."""
    run = session(ctx)
    found = run.tracker.redeliver(batch) if redeliver else run.tracker.targets(batch)
    run.answer(TARGET_REPORTS.encode(TargetReports(found)), _table(found))
    untold = sum(not target.state.settled for target in found)
    if redeliver and untold:
        again = run.command("targets", str(batch))
        run.remark(f"{counted(untold, 'target')} told again; the states are those before. To see: {again}")
    if any(target.state is TargetState.PARKED for target in found) and not redeliver:
        raise typer.Exit(ExitCode.WRONG)


def _table(targets: Sequence[TargetReport]) -> Table:
    columns = ("target", "type", "when", "to", "state", "attempts", "delivered", "last error", "next")
    made = Table(*columns, empty="nobody is called back: the batch was opened without --on-end")
    for one in targets:
        delivered = "" if one.delivered_at is None else encode_time(one.delivered_at)
        later = "" if one.next_at is None else f"by {encode_time(one.next_at)}"
        cells = (one.type, one.when, one.to, one.state, one.attempts, delivered, one.last_error or "", later)
        made.add_row(str(one.number), *map(str, cells))
    return made
