"""The command ``fanin redrive``: sends failed items again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from fanin.cli.exits import ExitCode
from fanin.cli.options import BatchId, OfErrors, OfOrdinals
from fanin.cli.session import Session, session
from fanin.domain.redrives import Redriving
from fanin.wire.redrives import REDRIVING

if TYPE_CHECKING:
    from rich.table import Table

app = typer.Typer()


@app.command()
def redrive(
    ctx: typer.Context,
    batch: BatchId,
    *,
    errors: OfErrors = None,
    ranges: OfOrdinals = None,
    queue: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Send to this queue instead of the one a message came from."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Return while the service goes on with a large redrive.")
    ] = False,
) -> None:
    """Send the messages of failed items again, each failure once.

    Those of a batch that has ended get the items of a new batch, whose id is printed. Running
    the command again sends nothing twice. Failures whose message was not kept, or whose queue is gone, are
    counted and stay as they are.
    """
    run = session(ctx)
    try:
        found = run.tracker.redrive(
            batch,
            errors=errors or (),
            ranges=ranges or (),
            queue_url=queue,
            dry_run=dry_run,
            wait=not no_wait,
            progress=lambda so_far: _show(run, so_far),
        )
    except KeyboardInterrupt:
        run.remark(f"the service goes on; the same command shows how far it is: fanin redrive {batch}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    before = (
        sorted({one.batch_id for one in run.tracker.redrives(batch) if one.batch_id}) if found.already else []
    )
    run.answer(REDRIVING.encode(found), _facts(found, before, dry_run=dry_run))
    if not (found.items or found.already or found.not_kept or found.refused):
        run.remark(f"no failure matches; `fanin failures {batch} --by-error` lists them")


def _show(run: Session, so_far: Redriving) -> None:
    if not run.as_json:
        run.remark(f"sent: {so_far.items:,}")


def _facts(found: Redriving, before: Sequence[int], *, dry_run: bool) -> Table:
    from fanin.cli.tables import facts

    sent = "to send" if dry_run else "sent"
    rows: list[tuple[str, object]] = [
        ("batch", found.batch_id),
        ("state", found.state),
        (sent, f"{found.items:,}"),
        ("redriven before", f"{found.already:,}{_where(before, found)}"),
    ]
    if found.not_kept:
        named = ", ".join(map(str, found.not_kept_items))
        more = " …" if found.not_kept > len(found.not_kept_items) else ""
        rows.append(("without message", f"{found.not_kept:,}: items {named}{more}"))
    rows += [("not sent", f"{count:,}: {why}") for why, count in found.refused.items()]
    return facts(rows)


def _where(before: Sequence[int], found: Redriving) -> str:
    others = [batch for batch in before if batch != found.batch_id]
    return f", see batch {', '.join(map(str, others))}" if others else ""
