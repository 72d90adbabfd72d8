"""What needs a person, ``fanin attention``, and why a batch is not finished, ``fanin why``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import typer

from fanin.cli.exits import ExitCode
from fanin.cli.listing import Table
from fanin.cli.options import BatchId, Cursor, EveryPage, PageSize
from fanin.cli.session import session
from fanin.domain.diagnosis import Diagnosis
from fanin.wire.batches import ATTENTION
from fanin.wire.items import DIAGNOSIS

app = typer.Typer()


@app.command()
def attention(
    ctx: typer.Context, limit: PageSize = 100, cursor: Cursor = None, every: EveryPage = False
) -> None:
    """List the batches that a person should look at, the most urgent first, each with the command that helps.

    Live batches come before ended ones. Failures that were redriven are not listed. Exits with 1 if there is
    any.
    """
    run = session(ctx)
    page = run.tracker.attention(cursor=cursor, limit=limit)
    while every and page.cursor is not None:
        more = run.tracker.attention(cursor=page.cursor, limit=limit)
        page = replace(more, batches=(*page.batches, *more.batches))
    shown = Table("batch", "what", "user key", "do", empty="nothing needs attention")
    for one in page.batches:
        command, *options = one.action.split()
        named = str(one.batch.batch_id)
        shown.add_row(named, one.reason, one.batch.user_key, run.command(command, named, *options))
    run.answer(ATTENTION.encode(page), shown)
    if page.counts and not run.as_json:
        run.remark(
            ", ".join(
                f"{one.replace('_', ' ')}: {n:,}{'+' if one in page.at_least else ''}"
                for one, n in page.counts.items()
            )
        )
    run.more(page.cursor)
    if page.batches:
        raise typer.Exit(ExitCode.WRONG)


@app.command()
def why(ctx: typer.Context, batch: BatchId) -> None:
    """Say why a batch is not finished, the most likely reason first.

    It looks at the batch, its missing items and their queues, and changes nothing.
    """
    run = session(ctx)
    diagnosis = run.tracker.why(batch)
    run.answer(DIAGNOSIS.encode(diagnosis), *_lines(diagnosis))


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    batch = diagnosis.batch
    done = f"{diagnosis.done_min:,}"
    if diagnosis.done_max != diagnosis.done_min:
        done += f" to {diagnosis.done_max:,}"
    yield f"batch {batch.batch_id} is {batch.state}: {done} of {batch.items:,} items are done"
    for finding in diagnosis.findings:
        yield ""
        yield f"{finding.severity}: {finding.title} ({finding.code})"
        yield f"  {finding.detail}"
        yield f"  → {finding.advice}"
    if diagnosis.missing:
        yield ""
        yield "missing items, by ordinal (A..B are those from A on, before B):"
    for one in diagnosis.missing:
        yield f"  {one.range.start}..{one.range.stop}  {one.known}: {one.detail}"
    if diagnosis.missing_more:
        yield f"  there may be more: fanin missing {batch.batch_id}"
