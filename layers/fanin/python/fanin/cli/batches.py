"""Commands on whole batches: ``fanin open``, ``add``, ``close``, ``cancel``, ``list`` and ``expire``."""

from dataclasses import replace
from datetime import timedelta
from itertools import chain
from typing import Any

import typer

from fanin.cli import options
from fanin.cli.commands import argument, flag, option
from fanin.cli.parsing import Pair, moment_past, tolerated
from fanin.cli.session import Session, session
from fanin.domain.batch import LIVE, Batch, ChildFailures, CloseWhen, Mode, OnDeadline, OnFailure, State
from fanin.domain.failures import Keep
from fanin.domain.ids import MAX_COUNT, MAX_ITEMS, parse_batch_id
from fanin.domain.reports import Batches
from fanin.domain.targets import Target
from fanin.wire.batches import BATCH, BATCHES, EXPIRED, GROUP
from fanin.wire.typed import whole

app = typer.Typer()


@app.command("open")
def open_batch(
    ctx: typer.Context,
    *,
    user_key: str = options.USER_KEY,
    mode: Mode = option("Track each item in a tree, or only count.", default=Mode.EXACT),
    idle_ttl: timedelta | None = options.spans(
        "End the batch as orphaned after this long without activity, such as 15m or 2h."
    ),
    lifetime: timedelta | None = options.spans("How long the batch is kept at most, such as 30d."),
    deadline: Any = options.DEADLINE,
    on_deadline: OnDeadline = option("What to do at the deadline.", default=OnDeadline.TIME_OUT),
    limit: int | None = options.LIMIT,
    parent_item: str | None = option(
        "Item of another batch: done when this batch completes without failures, else failed."
    ),
    retry_of: int | None = option(
        "Batch whose failed items this batch retries.", parser=parse_batch_id, metavar="BATCH"
    ),
    stall_after: timedelta | None = options.STALL_AFTER,
    metadata: list[Pair] | None = options.METADATA,
    keep: Keep | None = options.KEEP,
    on_failure: OnFailure = options.ON_FAILURE,
    child_failures: ChildFailures = options.CHILD_FAILURES,
    tolerate_failures: str | None = options.TOLERATED_FAILURES,
    min_sample: int | None = options.MIN_SAMPLE,
    on_end: list[Target] | None = options.ON_END,
    total: list[str] | None = options.TOTAL_NAMES,
    results: bool = flag("Keep the results of items; `fanin results` writes them.", "--results"),
    max_items: int | None = option(
        "Most items that it takes in all, such as 10k.",
        parser=lambda text: whole(text, 1, MAX_ITEMS),
        metavar="N",
    ),
    milestones: Any = options.MILESTONES,
    key: str | None = option("Idempotency key: repeating the command with it returns the same batch."),
) -> None:
    """Open a batch, and print its id."""
    run = session(ctx)
    batch = run.tracker.open(
        user_key=user_key,
        mode=mode,
        idle_ttl=idle_ttl,
        lifetime=lifetime,
        deadline=deadline,
        on_deadline=on_deadline,
        limit=limit,
        parent_item=parent_item,
        retry_of=retry_of,
        stall_after=stall_after,
        metadata=dict(metadata or ()),
        keep=keep,
        on_failure=on_failure,
        child_failures=child_failures,
        tolerated_failures=tolerated(tolerate_failures, min_sample),
        on_end=on_end or (),
        totals=total or (),
        results=results,
        max_items=max_items,
        milestones=milestones or (),
        key=key,
    )
    run.answer(BATCH.encode(batch), str(batch.batch_id))


@app.command()
def add(
    ctx: typer.Context,
    batch: int = options.BATCH_ID,
    count: int = argument(
        "Number of items, such as 1000, 1_000, 1e6 or 10k.",
        parser=lambda text: whole(text, 1, MAX_COUNT),
        metavar="N",
    ),
    key: str | None = option("Idempotency key: repeating the command with it adds nothing more."),
    ids: bool = flag("Print all item ids, one a line.", "--ids"),
) -> None:
    """Add N items to an open batch, and print their group, BATCH:GROUP.

    The item ids are BATCH:GROUP:0 to BATCH:GROUP:N-1.
    """
    run = session(ctx)
    group = run.tracker.add(batch, count, key=key)
    if ids and not run.as_json:
        for item in group:
            typer.echo(item)
    else:
        run.answer(GROUP.encode(group), group.prefix)


@app.command()
def close(
    ctx: typer.Context,
    batch: int = options.BATCH_ID,
    when: CloseWhen = option(
        "When it takes no more: now, or once all that its own items add is done, too.", default=CloseWhen.NOW
    ),
) -> None:
    """Close a batch: it takes no more items, and completes when all of them are done."""
    run = session(ctx)
    row = run.tracker.close(batch, when=when)
    run.answer(BATCH.encode(row), "draining" if row.draining else str(row.state))


@app.command()
def cancel(ctx: typer.Context, batch: int = options.BATCH_ID) -> None:
    """Cancel a batch; a batch that has ended stays as it is."""
    run = session(ctx)
    row = run.tracker.cancel(batch)
    run.answer(BATCH.encode(row), str(row.state))
    if row.state is not State.CANCELLED:
        run.remark("it had ended before, and stays as it is")


@app.command()
def change(
    ctx: typer.Context,
    batch: int = options.BATCH_ID,
    *,
    deadline: Any = options.DEADLINE,
    tolerate_failures: str | None = options.TOLERATED_FAILURES,
    min_sample: int | None = options.MIN_SAMPLE,
    stall_after: timedelta | None = options.STALL_AFTER,
    milestones: Any = options.MILESTONES,
) -> None:
    """Change the deadline, the tolerated failures, the stall time or the milestones of a live batch.

    What is left out stays. A batch that exceeds its new tolerance is cancelled at once.
    """
    run = session(ctx)
    row = run.tracker.change(
        batch,
        deadline=deadline,
        tolerated_failures=tolerated(tolerate_failures, min_sample),
        stall_after=stall_after,
        milestones=milestones,
    )
    run.answer(BATCH.encode(row), str(row.state))


@app.command("list")
def list_batches(
    ctx: typer.Context,
    *,
    state: State | None = argument(
        "State of the batches to list.",
        default=None,
        show_default="open and closed; with --user-key or --parent, every state",
    ),
    user_key: str | None = option(
        "List batches that were opened with this user key, newest first.", metavar="KEY"
    ),
    parent: int | None = option(
        "List the batches that are nested in this one, those with failures first.",
        parser=parse_batch_id,
        metavar="BATCH",
    ),
    limit: int = options.PAGE_SIZE,
    cursor: str | None = options.CURSOR,
    every: bool = options.EVERY_PAGE,
    progress: bool = flag("Ask how far each live batch is: a request for each.", "--progress"),
) -> None:
    """List the live batches, or those in a state, with a user key or a parent, the newest first.

    The service keeps no order among the batches of a state: a page of them is sorted by itself, and with
    --all the whole list. How many items are done is known of batches that are complete; --progress asks for
    the others.
    """
    from fanin.cli.tables import batches_table
    from fanin.cli.watching import progress_of

    run = session(ctx)
    run.say_stack()
    live = state is None and user_key is None and parent is None
    if every:
        states = LIVE if live else (state,)
        found = (run.tracker.iter_batches(one, user_key=user_key, parent=parent) for one in states)
        page = Batches(tuple(chain.from_iterable(found)))
    elif live:
        page = _live(run, cursor, limit)
    else:
        page = run.tracker.list(state, user_key=user_key, parent=parent, cursor=cursor, limit=limit)
    newest = sorted(page.batches, key=lambda batch: (batch.created_at, batch.batch_id), reverse=True)
    if parent is not None:
        newest.sort(key=lambda batch: not batch.failed and batch.attention is None)
    reached = progress_of(run, [b.batch_id for b in newest if not b.state.terminal]) if progress else {}
    named = " with this user key" if user_key else " is nested in this one" if parent else ""
    empty = f"no batch{named}" + (
        " is open or closed" if live else f" {'and ' if named else ''}is {state}" if state else ""
    )
    shown = batches_table(newest, reached, empty=empty)
    run.answer(BATCHES.encode(replace(page, batches=tuple(newest))), shown, cursor=page.cursor)


def _live(run: Session, cursor: str | None, limit: int) -> Batches:
    """A page of the open batches, then of the closed ones; its cursor says of which."""
    name, _, after = (cursor or f"{State.OPEN}:").partition(":")
    if name not in LIVE:
        raise typer.BadParameter("the cursor is not from this list; give the STATE that it is of")
    found: list[Batch] = []
    for state in LIVE[LIVE.index(State(name)) :]:
        page = run.tracker.list(state, cursor=after or None, limit=limit - len(found))
        found += page.batches
        if page.cursor is not None:
            return Batches(tuple(found), f"{state}:{page.cursor}")
        after = ""
        if len(found) == limit and state is State.OPEN:
            return Batches(tuple(found), f"{State.CLOSED}:")
    return Batches(tuple(found))


@app.command()
def expire(
    ctx: typer.Context,
    state: State | None = argument("State of the batches to expire.", default=None),
    idle_since: str | None = option(
        "Only batches without activity since then: a duration ago (7d, 2h), or a time in RFC 3339.",
        metavar="TIME",
    ),
    batch: int | None = option("Remove this batch, which has ended.", parser=parse_batch_id, metavar="BATCH"),
    yes: bool = options.YES,
) -> None:
    """Clean up: end idle live batches as orphaned, and remove ended ones.

    Give a STATE and --idle-since, or one --batch. A batch that was removed can no longer be read; so the
    command asks before.
    """
    run = session(ctx)
    if batch is not None and state is None and idle_since is None:
        run.confirm(f"Remove batch {batch}, its failures and their messages?", yes=yes)
        expired = run.tracker.remove(batch)
    elif batch is None and state is not None and idle_since is not None:
        what = "Remove" if state.terminal else "End"
        run.confirm(f"{what} all batches that are {state} and idle since {idle_since}?", yes=yes)
        expired = run.tracker.expire(state, idle_since=moment_past(idle_since))
    else:
        raise typer.BadParameter("give a STATE and --idle-since TIME, or else --batch BATCH alone")
    run.answer(EXPIRED.encode(expired), f"batches: {expired.batches}, items: {expired.items}")
