"""The command watch: a live look at a batch until it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from fanin.cli import parsing
from fanin.cli.exits import ExitCode
from fanin.cli.options import BatchId
from fanin.cli.pace import Pace
from fanin.cli.session import Session, session
from fanin.domain.batch import Batch, State
from fanin.domain.reports import Progress
from fanin.wire.batches import PROGRESS

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer()

Draw: TypeAlias = Callable[[Progress, Pace], None]
"""Shows one look at a batch."""

_COUNTED: Final = 16_384
"""Batches of up to so many items are counted exactly: 260 words at most."""
_REMARKS: Final = 5.0
"""Seconds between lines where there is no terminal to draw on."""


@app.command()
def watch(
    ctx: typer.Context,
    batch: BatchId,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
    timeout: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Stop watching after so long, and exit with 1.")
    ] = None,
) -> None:
    """Watch a batch until it has ended.

    Exits with 0 if it is complete, else with 1. Shows what is done, the rate over the last 30
    seconds and the time left. Batches of more than 16,384 items are shown by the lower bound of
    what is done, which costs at most 66 reads a look.
    """
    run = session(ctx)
    patience = parsing.span(timeout).total_seconds() if timeout else None
    finish(run, follow(run, batch, every=every, patience=patience))


def finish(run: Session, progress: Progress) -> None:
    """Print how a batch ended, and exit accordingly."""
    from fanin.cli.tables import facts, progress_facts

    run.answer(PROGRESS.encode(progress), facts(progress_facts(progress)))
    if not complete(progress.batch):
        raise typer.Exit(ExitCode.WRONG)


def complete(batch: Batch) -> bool:
    """Whether a batch ended as it should: with nothing missing."""
    return batch.state is State.COMPLETE and not batch.partial


def follow(run: Session, batch_id: int, *, every: float = 1.0, patience: float | None = None) -> Progress:
    """Show a batch's progress on stderr until it has ended, or patience has."""
    pace, begun = Pace(), time.monotonic()
    with_terminal = run.aside.is_terminal and not run.as_json
    draw, end = _bar(run.aside) if with_terminal else _lines(run)
    try:
        while True:
            progress = run.tracker.status(batch_id)
            if not progress.exact and progress.batch.items <= _COUNTED:
                progress = run.tracker.status(batch_id, exact=True)
            now = time.monotonic()
            pace.saw(now, progress.done_min)
            draw(progress, pace)
            if progress.batch.state.terminal:
                return progress
            if patience is not None and now - begun >= patience:
                run.remark(f"batch {batch_id} is still {progress.batch.state}")
                return progress
            time.sleep(every)
    finally:
        end()


def describe(progress: Progress, pace: Pace) -> str:
    """Progress in words: what is done, how fast, and how long it will take."""
    items = progress.batch.items
    parts = [f"{progress.done_min:,} of {items:,}", str(progress.batch.state)]
    if progress.batch.state.terminal:
        return ", ".join(parts)
    if pace.rate is not None:
        parts.append(f"{pace.rate:,.0f}/s")
    left = pace.left(items - progress.done_min)
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
    last = float("-inf")

    def draw(progress: Progress, pace: Pace) -> None:
        nonlocal last
        now = time.monotonic()
        if not run.as_json and (progress.batch.state.terminal or now - last >= _REMARKS):
            last = now
            run.remark(describe(progress, pace))

    return draw, lambda: None
