"""Watches batches until they have ended: a bar for each in a terminal, a line for each change in a pipe."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

import typer

from fanin.cli.commands import argument, option
from fanin.cli.exits import ExitCode
from fanin.cli.listing import FactSheet
from fanin.cli.options import FAIL_ON_FAILURES, spans
from fanin.cli.session import Session, session
from fanin.cli.times import Pace, clock, now_ms
from fanin.domain.batch import LIVE, Batch, Mode, State
from fanin.domain.ids import parse_batch_id
from fanin.domain.reports import Progress
from fanin.wire.batches import PROGRESS

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer()
_COUNTED_ITEMS: Final = 16_384
"""Batches with up to this many items are counted exactly, which reads 260 words at most."""
_LINE_SECONDS: Final = 5.0
"""Least seconds between two lines about a batch in a pipe, unless its state or its failures change."""
_CALLS: Final = 8
"""Batches that are asked about at a time."""


@dataclass
class Followed:
    """A batch that is followed.

    Attributes:
        batch_id: which.
        progress: as it was last.
        pace: how fast it moves.
    """

    batch_id: int
    progress: Progress
    pace: Pace = field(default_factory=Pace)

    @property
    def live(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return not self.progress.batch.state.terminal


Draw: TypeAlias = Callable[[Sequence[Followed]], None]
"""Shows how far batches are."""


def follow_all(
    run: Session,
    batch_ids: Iterable[int],
    *,
    user_key: str | None = None,
    every: float = 1.0,
    patience: float | None = None,
) -> list[Progress]:
    """Show on stderr how far batches are, until all of them have ended.

    Args:
        run: the session.
        batch_ids: which batches.
        user_key: also all live batches with this user key, and those that are opened meanwhile.
        every: seconds between two requests about a batch.
        patience: seconds after which to return although batches have not ended; None waits for ever.

    Returns:
        The last progress of each, in the order in which they came.
    """
    ids = dict.fromkeys(batch_ids)
    followed: dict[int, Followed] = {}
    started = time.monotonic()
    with _drawing(run, several=len(ids) > 1 or user_key is not None) as draw:
        while True:
            ids |= dict.fromkeys(_live(run, user_key))
            asked = [one for one in ids if one not in followed or followed[one].live]
            for batch_id, progress in progress_of(run, asked).items():
                one = followed.setdefault(batch_id, Followed(batch_id, progress))
                one.progress = progress
                one.pace.record(time.monotonic(), progress.done_min)
            draw([*followed.values()])
            left = [one for one in followed.values() if one.live]
            if not left and any(found not in followed for found in _live(run, user_key)):
                continue  # opened after the key was asked for, and before the last of the others ended
            if not left or (patience is not None and time.monotonic() - started >= patience):
                break
            rest = math.inf if patience is None else started + patience - time.monotonic()
            time.sleep(max(0.0, min(every, rest)))
    for one in left:
        run.remark(f"batch {one.batch_id} is still {one.progress.batch.state}")
    return [one.progress for one in followed.values()]


def _live(run: Session, user_key: str | None) -> Iterator[int]:
    if user_key is not None:
        for state in LIVE:
            for batch in run.tracker.iter_batches(state, user_key=user_key):
                yield batch.batch_id


def progress_of(run: Session, batch_ids: Sequence[int]) -> dict[int, Progress]:
    """How far batches are, by their ids; asks about several at a time."""
    if len(batch_ids) < 2:  # noqa: PLR2004 - one needs no threads
        return {batch_id: _progress(run, batch_id) for batch_id in batch_ids}
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_CALLS) as pool:
        return dict(zip(batch_ids, pool.map(lambda one: _progress(run, one), batch_ids), strict=True))


def _progress(run: Session, batch_id: int) -> Progress:
    progress = run.tracker.status(batch_id)
    row = progress.batch
    few = not progress.exact and row.items <= _COUNTED_ITEMS
    inexact = row.failed_more or (row.totals and not row.totals_exact and row.mode is Mode.EXACT)
    return run.tracker.status(batch_id, exact=True) if few or (row.state.terminal and inexact) else progress


def describe(progress: Progress, pace: Pace) -> str:
    """Progress in words: what is done, what failed, at which rate, and how much time is left."""
    from fanin.cli.tables import outcome

    items, row = progress.batch.items, progress.batch
    parts = [f"{progress.done_min:,} of {items:,}", *outcome(row, "of these failed"), str(row.state)]
    if pace.rate is not None and not row.state.terminal:
        parts.append(f"{pace.rate:,.0f}/s")
    left = pace.seconds_left(items - progress.done_min)
    if left is not None and row.state is State.CLOSED:
        parts.append(f"{clock(left)} left")
    return ", ".join(parts)


def elapsed(progress: Progress, now: int) -> str:
    """How long a batch has lived, in words.

    Args:
        progress: of the batch.
        now: the time, in milliseconds since 1970.
    """
    row = progress.batch
    return f"{clock(max(0, (row.ended_at or now) - row.created_at) / 1000)} elapsed"


def _drawing(run: Session, *, several: bool) -> AbstractContextManager[Draw]:
    if run.as_json:
        return nullcontext(lambda _: None)
    return _bars(run.stderr, several=several) if run.draws else nullcontext(_lines(run, several=several))


@contextmanager
def _bars(console: Console, *, several: bool) -> Iterator[Draw]:
    from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bars

    named = [TextColumn("{task.fields[name]}")] if several else []
    # A narrow terminal needs the room for the words.
    bar = [BarColumn()] if console.width >= 60 else []  # noqa: PLR2004 - columns of the screen
    bars = Bars(*named, *bar, TaskProgressColumn(), TextColumn("{task.description}"), console=console)
    tasks: dict[int, TaskID] = {}

    def draw(batches: Sequence[Followed]) -> None:
        for one in batches:
            if one.batch_id not in tasks:
                tasks[one.batch_id] = bars.add_task("", total=None, name=str(one.batch_id))
            bars.update(
                tasks[one.batch_id],
                total=one.progress.batch.items,
                completed=one.progress.done_min,
                description=f"{describe(one.progress, one.pace)}, {elapsed(one.progress, now_ms())}",
            )
        bars.refresh()

    with bars:
        yield draw


def _lines(run: Session, *, several: bool) -> Draw:
    said: dict[int, tuple[object, ...]] = {}
    at: dict[int, float] = {}

    def draw(batches: Sequence[Followed]) -> None:
        now = time.monotonic()
        for one in batches:
            row, before = one.progress.batch, said.get(one.batch_id, ())
            found = (row.state, row.failed, row.held, row.items, one.progress.done_min)
            soon = found[:3] == before[:3] and now - at[one.batch_id] < _LINE_SECONDS
            if found == before or soon:
                continue
            said[one.batch_id], at[one.batch_id] = found, now
            name = f"{one.batch_id}: " if several else ""
            run.remark(f"{name}{describe(one.progress, one.pace)}, {elapsed(one.progress, now_ms())}")

    return draw


@app.command()
def watch(
    ctx: typer.Context,
    *,
    batches: list[int] | None = argument(
        "Ids of the batches.", default=None, parser=parse_batch_id, metavar="BATCH..."
    ),
    user_key: str | None = option(
        "Watch every live batch with this user key, also those that are opened meanwhile.", metavar="KEY"
    ),
    every: float = option("Seconds between two requests.", default=1.0, min=0.1, max=3600),
    timeout: timedelta | None = spans("Stop watching after this long, and exit with 1."),
    fail_on_failures: bool = FAIL_ON_FAILURES,
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
    patience = None if timeout is None else timeout.total_seconds()
    ids = list(dict.fromkeys(batches or ()))
    try:
        found = follow_all(run, ids, user_key=user_key, every=every, patience=patience)
    except KeyboardInterrupt:
        again = [*map(str, ids), *([] if user_key is None else ["--user-key", user_key])]
        run.remark(f"stopped watching; to go on: {run.command('watch', *again)}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _finish(run, found, alone=len(ids) == 1 and user_key is None)
    for one in found:
        if not complete(one.batch) or (fail_on_failures and may_have_failed(one.batch)):
            raise typer.Exit(ExitCode.WRONG)


def _finish(run: Session, found: Sequence[Progress], *, alone: bool) -> None:
    """Print how batches ended: one that was asked for alone with all that is known of it."""
    from fanin.cli.tables import batches_table, progress_facts

    documents = [PROGRESS.encode(one) for one in found]
    if alone:
        run.answer(documents[0], FactSheet(progress_facts(found[0])))
        return
    reached = {one.batch.batch_id: one for one in found}
    empty = "no batch with this user key is open or closed"
    run.answer({"batches": documents}, batches_table([one.batch for one in found], reached, empty=empty))


def may_have_failed(batch: Batch) -> bool:
    """Whether items failed or were held to the end, or it is not known that none did."""
    held = batch.state.terminal and (batch.held > 0 or batch.may_hold_more)
    return batch.failed > 0 or batch.failed_more or held


def complete(batch: Batch) -> bool:
    """Whether a batch is complete with nothing missing."""
    return batch.state is State.COMPLETE and not batch.partial
