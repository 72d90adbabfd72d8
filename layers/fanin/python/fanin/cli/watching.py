"""The command ``fanin watch``: shows the progress of a batch until it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from fanin.cli import parsing
from fanin.cli.exits import ExitCode
from fanin.cli.options import BatchId, FailOnFailures
from fanin.cli.pace import Pace
from fanin.cli.session import Session, session
from fanin.domain.batch import Batch, Mode, State
from fanin.domain.reports import Progress
from fanin.wire.batches import PROGRESS

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer()

Draw: TypeAlias = Callable[[Progress, Pace], None]
"""Displays the current progress of a batch."""

_COUNTED_ITEMS: Final = 16_384
"""Batches with up to this many items are counted exactly, which reads 260 words at most."""
_LINE_SECONDS: Final = 5.0
"""Seconds between two lines of progress where stderr is not a terminal."""


@app.command()
def watch(
    ctx: typer.Context,
    batch: BatchId,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two requests.")] = 1.0,
    timeout: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Stop watching after this long, and exit with 1.")
    ] = None,
    fail_on_failures: FailOnFailures = False,
) -> None:
    """Watch a batch until it has ended.

    Exits with 0 if the batch is complete, otherwise with 1. Shows how many items are done, the rate
    over the last 30 seconds, and the time left. For batches of more than 16,384 items it shows a
    lower bound of the items done, which costs at most 67 reads a request.
    """
    run = session(ctx)
    patience = parsing.span(timeout).total_seconds() if timeout else None
    finish(run, follow(run, batch, every=every, patience=patience), fail_on_failures=fail_on_failures)


def finish(run: Session, progress: Progress, *, fail_on_failures: bool) -> None:
    """Print how a batch ended, and exit with 1 unless it is complete.

    Args:
        run: the session.
        progress: of the batch.
        fail_on_failures: also exit with 1 if items failed, or may have.
    """
    from fanin.cli.tables import facts, progress_facts

    run.answer(PROGRESS.encode(progress), facts(progress_facts(progress)))
    if not complete(progress.batch) or (fail_on_failures and may_have_failed(progress.batch)):
        raise typer.Exit(ExitCode.WRONG)


def may_have_failed(batch: Batch) -> bool:
    """Whether items failed or were held to the end, or it is not known that none did."""
    held = batch.state.terminal and (batch.held > 0 or batch.may_hold_more)
    return batch.failed > 0 or batch.failed_more or held


def complete(batch: Batch) -> bool:
    """Whether a batch is complete with nothing missing."""
    return batch.state is State.COMPLETE and not batch.partial


def follow(run: Session, batch_id: int, *, every: float = 1.0, patience: float | None = None) -> Progress:
    """Show the progress of a batch on stderr until it has ended.

    Args:
        run: the session.
        batch_id: which batch.
        every: seconds between two requests.
        patience: seconds after which to return although the batch has not ended; None waits for ever.

    Returns:
        The last progress seen.
    """
    pace, started = Pace(), time.monotonic()
    with_terminal = run.stderr.is_terminal and not run.as_json
    draw, end = _bar(run.stderr) if with_terminal else _lines(run)
    try:
        while True:
            progress = run.tracker.status(batch_id)
            few = not progress.exact and progress.batch.items <= _COUNTED_ITEMS
            row = progress.batch
            inexact = row.failed_more or (row.totals and not row.totals_exact and row.mode is Mode.EXACT)
            if few or (row.state.terminal and inexact):
                progress = run.tracker.status(batch_id, exact=True)
            now = time.monotonic()
            pace.record(now, progress.done_min)
            draw(progress, pace)
            if progress.batch.state.terminal:
                return progress
            if patience is not None and now - started >= patience:
                run.remark(f"batch {batch_id} is still {progress.batch.state}")
                return progress
            time.sleep(every)
    finally:
        end()


def describe(progress: Progress, pace: Pace) -> str:
    """Progress in words: what is done, what failed, at which rate, and how much time is left."""
    from fanin.cli.tables import failed, held, sums

    items, row = progress.batch.items, progress.batch
    parts = [f"{progress.done_min:,} of {items:,}"]
    if row.failed:
        # A failed item counts as done, which is not what people mean by the word.
        known = not row.failed_more and row.failed <= progress.done_min
        parts = [f"{parts[0]}: {progress.done_min - row.failed:,} done"] if known else parts
        parts.append(f"{failed(row)} failed")
    if progress.batch.held:
        parts.append(f"{held(progress.batch)} held")
    if brought := sums(progress.batch):
        parts.append(brought)
    parts.append(str(progress.batch.state))
    if progress.batch.state.terminal:
        return ", ".join(parts)
    if pace.rate is not None:
        parts.append(f"{pace.rate:,.0f}/s")
    left = pace.seconds_left(items - progress.done_min)
    if left is not None and progress.batch.state is State.CLOSED:
        parts.append(f"{_clock(left)} left")
    return ", ".join(parts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _bar(console: Console) -> tuple[Draw, Callable[[], None]]:
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bars

    bars = Bars(BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"), console=console)
    task = bars.add_task("", total=None)
    bars.start()

    def draw(progress: Progress, pace: Pace) -> None:
        bars.update(
            task,
            total=progress.batch.items,
            completed=progress.done_min,
            description=describe(progress, pace),
            refresh=True,
        )

    return draw, bars.stop


def _lines(run: Session) -> tuple[Draw, Callable[[], None]]:
    last, said = float("-inf"), ""

    def draw(progress: Progress, pace: Pace) -> None:
        nonlocal last, said
        now, line = time.monotonic(), describe(progress, pace)
        if run.as_json or line == said:
            return
        if progress.batch.state.terminal or now - last >= _LINE_SECONDS:
            last, said = now, line
            run.remark(line)

    return draw, lambda: None
