"""Commands that read batches: ``fanin status``, ``missing``, ``failures`` and ``verify``."""

from __future__ import annotations

from typing import Annotated

import typer

from fanin.cli.exits import ExitCode
from fanin.cli.options import BatchId, Cursor, EveryPage, FailOnFailures, PageSize
from fanin.cli.session import session
from fanin.domain.reports import Failures, Missing
from fanin.wire.batches import PROGRESS, VERDICT
from fanin.wire.items import FAILED_ITEMS, MISSING

app = typer.Typer()


@app.command()
def status(
    ctx: typer.Context,
    batch: BatchId,
    exact: Annotated[
        bool, typer.Option("--exact", help="Count exactly, however many reads that takes.")
    ] = False,
    fail_on_failures: FailOnFailures = False,
) -> None:
    """Show a batch and its progress."""
    from fanin.cli.tables import facts, progress_facts

    run = session(ctx)
    progress = run.tracker.status(batch, exact=exact)
    run.answer(PROGRESS.encode(progress), facts(progress_facts(progress)))
    if fail_on_failures and progress.batch.failed:
        raise typer.Exit(ExitCode.WRONG)


@app.command()
def missing(
    ctx: typer.Context,
    batch: BatchId,
    limit: PageSize = 100,
    cursor: Cursor = None,
    every: EveryPage = False,
) -> None:
    """List the items that are not done, as ranges.

    Pass the text of a range to ack --range, or send the items of its group again.
    """
    from fanin.cli.tables import table

    run = session(ctx)
    if every:
        page = Missing(tuple(run.tracker.iter_missing(batch)))
    else:
        page = run.tracker.missing(batch, cursor=cursor, limit=limit)
    shown = table("ordinals", "items", "range", right=("ordinals", "items"))
    for found in page.ranges:
        count = found.stop - found.start
        shown.add_row(f"{found.start}..{found.stop}", f"{count:,}", f"{found.group}:0..{count}")
    run.answer(MISSING.encode(page), shown if page.ranges else "nothing is missing")
    run.more(page.cursor)


@app.command()
def failures(
    ctx: typer.Context,
    batch: BatchId,
    limit: PageSize = 100,
    cursor: Cursor = None,
    every: EveryPage = False,
) -> None:
    """List the items that failed, and why."""
    from fanin.cli.tables import table

    run = session(ctx)
    if every:
        page = Failures(tuple(run.tracker.iter_failures(batch)))
    else:
        page = run.tracker.failures(batch, cursor=cursor, limit=limit)
    shown = table("ordinal", "item", "reason", right=("ordinal",))
    for failure in page.failures:
        shown.add_row(str(failure.ordinal), failure.item, failure.reason)
    run.answer(FAILED_ITEMS.encode(page), shown if page.failures else "nothing failed")
    run.more(page.cursor)


@app.command()
def verify(
    ctx: typer.Context,
    batch: BatchId,
    repair: Annotated[bool, typer.Option(help="Repair what disagrees.")] = True,
) -> None:
    """Recompute a batch from its items up, and repair what disagrees.

    Exits with 1 if anything disagreed.
    """
    from fanin.cli.tables import batch_facts, facts

    run = session(ctx)
    verdict = run.tracker.verify(batch, repair=repair)
    found = verdict.disagreements
    run.answer(
        VERDICT.encode(verdict),
        facts([*batch_facts(verdict.batch), ("pending", f"{verdict.pending:,}")]),
        *found,
        "repaired" if verdict.repaired else "left as it is" if found else "all agrees",
    )
    if found:
        raise typer.Exit(ExitCode.WRONG)
