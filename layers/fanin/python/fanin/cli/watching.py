"""The command ``fanin watch``: shows how far batches are, until they have ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import typer

from fanin.cli import parsing
from fanin.cli.exits import ExitCode
from fanin.cli.following import follow_all
from fanin.cli.listing import FactSheet
from fanin.cli.options import FailOnFailures
from fanin.cli.session import Session, session
from fanin.domain.batch import Batch, State
from fanin.domain.reports import Progress
from fanin.wire.batches import PROGRESS

app = typer.Typer()


@app.command()
def watch(
    ctx: typer.Context,
    *,
    batches: Annotated[
        list[int] | None,
        typer.Argument(parser=parsing.batch_id, metavar="BATCH...", help="Ids of the batches."),
    ] = None,
    user_key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Watch every live batch with this user key, also those that are opened meanwhile.",
        ),
    ] = None,
    every: Annotated[float, typer.Option(min=0.1, max=3600, help="Seconds between two requests.")] = 1.0,
    timeout: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Stop watching after this long, and exit with 1.")
    ] = None,
    fail_on_failures: FailOnFailures = False,
) -> None:
    """Watch batches until all of them have ended.

    Exits with 0 if every one is complete, otherwise with 1. Shows how many items are done, the rate
    over the last 30 seconds, the time left, and the age of the batch: a bar for each batch in a terminal,
    otherwise a line for each change, at most every 5 seconds. For batches of more than 16,384 items it shows
    a lower bound of the items done, which costs at most 67 reads a request.

    Watching changes nothing, so Ctrl-C does no harm.
    """
    run = session(ctx)
    if not batches and user_key is None:
        raise typer.BadParameter("nothing to watch is given; pass the id of a BATCH, or --user-key KEY")
    if math.isnan(every):
        raise typer.BadParameter("--every is not a number of seconds; write it like 1 or 0.5")
    patience = parsing.span(timeout).total_seconds() if timeout else None
    ids = list(dict.fromkeys(batches or ()))
    try:
        found = follow_all(run, ids, user_key=user_key, every=every, patience=patience)
    except KeyboardInterrupt:
        again = [*map(str, ids), *([] if user_key is None else ["--user-key", user_key])]
        run.remark(f"stopped watching; to go on: {run.command('watch', *again)}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if len(ids) == 1 and user_key is None:
        finish(run, found[0], fail_on_failures=fail_on_failures)
    else:
        _finish_all(run, found, fail_on_failures=fail_on_failures)


def finish(run: Session, progress: Progress, *, fail_on_failures: bool) -> None:
    """Print how a batch ended, and exit with 1 unless it is complete.

    Args:
        run: the session.
        progress: of the batch.
        fail_on_failures: also exit with 1 if items failed, or may have.
    """
    from fanin.cli.tables import progress_facts

    run.answer(PROGRESS.encode(progress), FactSheet(progress_facts(progress)))
    _exit([progress], fail_on_failures=fail_on_failures)


def _finish_all(run: Session, found: Sequence[Progress], *, fail_on_failures: bool) -> None:
    from fanin.cli.tables import batches_table

    shown = batches_table(
        [one.batch for one in found],
        {one.batch.batch_id: one for one in found},
        empty="no batch with this user key is open or closed",
    )
    run.answer({"batches": [PROGRESS.encode(one) for one in found]}, shown)
    _exit(found, fail_on_failures=fail_on_failures)


def _exit(found: Sequence[Progress], *, fail_on_failures: bool) -> None:
    for one in found:
        if not complete(one.batch) or (fail_on_failures and may_have_failed(one.batch)):
            raise typer.Exit(ExitCode.WRONG)


def may_have_failed(batch: Batch) -> bool:
    """Whether items failed or were held to the end, or it is not known that none did."""
    held = batch.state.terminal and (batch.held > 0 or batch.may_hold_more)
    return batch.failed > 0 or batch.failed_more or held


def complete(batch: Batch) -> bool:
    """Whether a batch is complete with nothing missing."""
    return batch.state is State.COMPLETE and not batch.partial
