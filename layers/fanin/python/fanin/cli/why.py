"""The command ``fanin why``: why a batch is not finished."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from fanin.cli.options import BatchId
from fanin.cli.session import session
from fanin.domain.diagnosis import Diagnosis
from fanin.wire.items import DIAGNOSIS

app = typer.Typer()


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
