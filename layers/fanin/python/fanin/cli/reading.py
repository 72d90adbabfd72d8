"""Commands that read batches: ``fanin status``, ``missing``, ``failures`` and ``verify``."""

from __future__ import annotations

from typing import Annotated

import typer

from fanin.cli import parsing
from fanin.cli.exits import ExitCode
from fanin.cli.listing import FactSheet, Table
from fanin.cli.options import BatchId, Cursor, EveryPage, FailOnFailures, PageSize
from fanin.cli.session import session
from fanin.domain.reports import Errors, Failures, Missing
from fanin.wire.batches import KEYED_ITEM, PROGRESS, VERDICT
from fanin.wire.items import ERRORS, FAILED_ITEMS, FAILED_MESSAGE, MISSING
from fanin.wire.json_types import encode_time

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
    from fanin.cli.tables import progress_facts
    from fanin.cli.watching import may_have_failed

    run = session(ctx)
    progress = run.tracker.status(batch, exact=exact)
    run.say_stack()
    run.answer(PROGRESS.encode(progress), FactSheet(progress_facts(progress)))
    row = progress.batch
    if row.held and not row.state.terminal:
        run.remark(
            f"held items wait: `fanin redrive {batch}` sends them again, `fanin release {batch}` gives up"
        )
    if fail_on_failures and (row.failed or (row.state.terminal and may_have_failed(row))):
        raise typer.Exit(ExitCode.WRONG)


@app.command()
def item(
    ctx: typer.Context,
    batch: BatchId,
    key: Annotated[str, typer.Option(metavar="KEY", help="The key that the item was added with.")],
) -> None:
    """Show the item of a key: its id, and whether it is done."""
    run = session(ctx)
    found = run.tracker.find_key(batch, key)
    state = "done" if found.done else "not done"
    run.answer(
        KEYED_ITEM.encode(found), FactSheet([("key", found.key), ("item", found.item), ("state", state)])
    )


@app.command()
def missing(
    ctx: typer.Context,
    batch: BatchId,
    limit: PageSize = 100,
    cursor: Cursor = None,
    every: EveryPage = False,
) -> None:
    """List the items that are not done, as ranges.

    Pass the text of a range to `fanin ack --range` or `fanin fail --range`. Its group is that of `fanin add`,
    if that was called once; else it is the group of all items of the batch.
    """
    run = session(ctx)
    if every:
        page = Missing(tuple(run.tracker.iter_missing(batch)))
    else:
        page = run.tracker.missing(batch, cursor=cursor, limit=limit)
    keyed = any(found.keys for found in page.ranges)
    columns = ("ordinals", "items", "range", *(("keys",) if keyed else ()))
    shown = Table(*columns, right=("ordinals", "items"), empty="nothing is missing")
    for found in page.ranges:
        count = found.stop - found.start
        items = found.items
        keys = (", ".join(found.keys),) if keyed else ()
        span = f"{found.group}:{items.start}..{items.stop}"
        shown.add_row(f"{found.start}..{found.stop}", count, span, *keys)
    run.answer(MISSING.encode(page), shown)
    run.more(page.cursor)


@app.command()
def failures(
    ctx: typer.Context,
    *,
    batch: BatchId,
    limit: PageSize = 100,
    cursor: Cursor = None,
    every: EveryPage = False,
    by_error: Annotated[
        bool, typer.Option("--by-error", help="Count the failures by error; reads all of them.")
    ] = False,
    message: Annotated[
        str | None,
        typer.Option(metavar="ITEM", help="Print the message of this failed item, by its id or its ordinal."),
    ] = None,
) -> None:
    """List the items that failed or are held, and why.

    --by-error counts what the reasons have in common. --message prints the body of one failed item's message;
    with --json also its attributes.
    """
    run = session(ctx)
    if message is not None:
        found = run.tracker.ledger.failure(batch, parsing.ordinal(message, batch))
        if found.message is None:
            run.remark(
                f"the message of {found.failure.item} was not kept; its reason: {found.failure.reason}"
            )
            raise typer.Exit(ExitCode.WRONG)
        run.answer(FAILED_MESSAGE.encode(found), found.message.body)
        return
    if by_error:
        errors = Errors(run.tracker.errors(batch))
        counted = Table(
            "failed", "kept", "last", "error", "example", right=("failed", "kept"), empty="nothing failed"
        )
        for group in errors.errors:
            last = encode_time(group.last_failed_at)
            counted.add_row(group.failed, group.kept, last, group.error, group.example)
        run.answer(ERRORS.encode(errors), counted)
        return
    if every:
        page = Failures(tuple(run.tracker.iter_failures(batch)))
    else:
        page = run.tracker.failures(batch, cursor=cursor, limit=limit)
    keyed = any(failure.key for failure in page.failures)
    named = "key" if keyed else "item"
    shown = Table("ordinal", named, "state", "kept", "reason", right=("ordinal",), empty="nothing failed")
    for failure in page.failures:
        state = "held" if failure.held else "redriven" if failure.redriven else "failed"
        kept = "message" if failure.kept else ""
        name = (failure.key if keyed else "") or failure.item
        shown.add_row(str(failure.ordinal), name, state, kept, failure.reason)
    run.answer(FAILED_ITEMS.encode(page), shown)
    run.more(page.cursor)


@app.command()
def verify(
    ctx: typer.Context,
    batch: BatchId,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what disagrees.")] = False,
) -> None:
    """Recompute a batch from its items up, and say what disagrees; it writes nothing without --repair.

    Exits with 1 if anything disagreed.
    """
    from fanin.cli.tables import batch_facts, total_facts

    run = session(ctx)
    verdict = run.tracker.verify(batch, repair=repair)
    found = verdict.disagreements
    run.answer(
        VERDICT.encode(verdict),
        FactSheet(
            [*batch_facts(verdict.batch), ("pending", f"{verdict.pending:,}"), *total_facts(verdict.batch)]
        ),
        *found,
        "repaired" if verdict.repaired else "left as it is; --repair mends it" if found else "all agrees",
    )
    if found:
        raise typer.Exit(ExitCode.WRONG)
