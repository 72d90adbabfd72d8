"""Commands on failed items: ``fanin redrive`` sends them again, ``fanin release`` gives up held ones."""

from collections.abc import Callable, Sequence

import typer

from fanin.cli.commands import flag, option
from fanin.cli.exits import ExitCode
from fanin.cli.listing import FactSheet
from fanin.cli.options import BATCH_ID, ERRORS, ORDINALS
from fanin.cli.session import Session, session
from fanin.domain.redrives import OrdinalRange, Redriving
from fanin.wire.batches import RELEASED
from fanin.wire.redrives import REDRIVING

app = typer.Typer()


@app.command()
def redrive(
    ctx: typer.Context,
    batch: int = BATCH_ID,
    *,
    errors: list[str] | None = ERRORS,
    ranges: list[OrdinalRange] | None = ORDINALS,
    queue: str | None = option("Send to this queue instead of the one a message came from.", metavar="URL"),
    dry_run: bool = flag("Only count.", "--dry-run"),
    no_wait: bool = flag("Return while the service goes on with a large redrive.", "--no-wait"),
) -> None:
    """Send the messages of failed items again, each failure once.

    Those of a batch that has ended get the items of a new batch, whose id is printed. Running
    the command again sends nothing twice. Failures whose message was not kept, or whose queue is gone, are
    counted and stay as they are; the exit code is then 1.
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
            progress=_progress(run),
        )
    except KeyboardInterrupt:
        run.remark("the service goes on; the same command with the same options shows how far it is")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    redrives = run.tracker.redrives(batch) if found.already else ()
    before = sorted({one.batch_id for one in redrives if one.batch_id not in (None, found.batch_id)})
    run.answer(REDRIVING.encode(found), _facts(found, before, dry_run=dry_run))
    if dry_run and not found.finished:
        run.remark("it has counted for as long as a dry run may; there are more failures")
    elif not (found.items or found.already or found.not_kept or found.refused):
        listed = f"no failure matches; `fanin failures {batch} --by-error` lists them"
        run.remark(listed if errors or ranges else "nothing has failed that could be sent again")
    if found.not_kept:
        nested = run.command("list", "--parent", str(batch))
        expire = run.command("expire", "--batch", str(batch))
        run.remark(
            "what has no message cannot be sent from here. If a nested batch failed it, redrive that one:"
            f" `{nested}`. Else send it as a new batch; `{expire}` then removes this one"
        )
    if (found.not_kept or found.refused) and not dry_run:
        raise typer.Exit(ExitCode.WRONG)


def _progress(run: Session) -> Callable[[Redriving], None]:
    """Says how far a redrive is, whenever that has changed."""
    said = ""

    def show(so_far: Redriving) -> None:
        nonlocal said
        parts = [f"{so_far.items:,} sent"]
        parts += [f"{so_far.already:,} redriven before"] if so_far.already else []
        left = so_far.not_kept + sum(so_far.refused.values())
        parts += [f"{left:,} not sent"] if left else []
        line = ", ".join(parts)
        if line != said and not run.as_json:
            run.remark(line)
        said = line

    return show


def _facts(found: Redriving, before: Sequence[int], *, dry_run: bool) -> FactSheet:
    sent = "to send" if dry_run else "sent"
    see = f", see batch {', '.join(map(str, before))}" if before else ""
    rows: list[tuple[str, object]] = [
        ("batch", None if found.batch_id is None else str(found.batch_id)),
        ("state", found.state),
        (sent, f"{found.items:,}"),
        ("redriven before", f"{found.already:,}{see}"),
    ]
    if found.not_kept:
        named = ", ".join(map(str, found.not_kept_items))
        more = " …" if found.not_kept > len(found.not_kept_items) else ""
        rows.append(("without message", f"{found.not_kept:,}: items {named}{more}"))
    rows += [("not sent", f"{count:,}: {why}") for why, count in found.refused.items()]
    return FactSheet(rows)


@app.command()
def release(
    ctx: typer.Context,
    batch: int = BATCH_ID,
    errors: list[str] | None = ERRORS,
    ranges: list[OrdinalRange] | None = ORDINALS,
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
