"""Commands that read: ``fanin status``, ``missing``, ``failures``, ``attention``, ``why`` and so on."""

import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

import typer

from fanin.cli import options, parsing
from fanin.cli.commands import flag, option
from fanin.cli.exits import ExitCode
from fanin.cli.listing import FactSheet, Table
from fanin.cli.session import session
from fanin.domain.diagnosis import Diagnosis
from fanin.domain.limits import counted
from fanin.domain.reports import Errors, Failures, Missing
from fanin.domain.targets import TargetReports, TargetState
from fanin.wire.batches import ATTENTION, KEYED_ITEM, PROGRESS, TARGET_REPORTS, VERDICT
from fanin.wire.items import DIAGNOSIS, ERRORS, FAILED_ITEMS, FAILED_MESSAGE, ITEM_RESULT, MISSING
from fanin.wire.json_types import encode_time

app = typer.Typer()


@app.command()
def status(
    ctx: typer.Context,
    batch: int = options.BATCH_ID,
    exact: bool = flag("Count exactly, however many reads that takes.", "--exact"),
    fail_on_failures: bool = options.FAIL_ON_FAILURES,
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
    batch: int = options.BATCH_ID,
    key: str = option("The key that the item was added with.", default=..., metavar="KEY"),
) -> None:
    """Show the item of a key: its id, and whether it is done."""
    run = session(ctx)
    found = run.tracker.find_key(batch, key)
    state = "done" if found.done else "not done"
    facts = FactSheet([("key", found.key), ("item", found.item), ("state", state)])
    run.answer(KEYED_ITEM.encode(found), facts)


@app.command()
def missing(
    ctx: typer.Context,
    batch: int = options.BATCH_ID,
    limit: int = options.PAGE_SIZE,
    cursor: str | None = options.CURSOR,
    every: bool = options.EVERY_PAGE,
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
        keys = (", ".join(found.keys),) if keyed else ()
        span = f"{found.group}:{found.items.start}..{found.items.stop}"
        shown.add_row(f"{found.start}..{found.stop}", found.stop - found.start, span, *keys)
    run.answer(MISSING.encode(page), shown, cursor=page.cursor)


@app.command()
def failures(
    ctx: typer.Context,
    *,
    batch: int = options.BATCH_ID,
    limit: int = options.PAGE_SIZE,
    cursor: str | None = options.CURSOR,
    every: bool = options.EVERY_PAGE,
    by_error: bool = flag("Count the failures by error; reads all of them.", "--by-error"),
    message: str | None = option(
        "Print the message of this failed item, by its id or its ordinal.", metavar="ITEM"
    ),
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
    run.answer(FAILED_ITEMS.encode(page), shown, cursor=page.cursor)


@app.command()
def verify(
    ctx: typer.Context,
    batch: int = options.BATCH_ID,
    repair: bool = flag("Repair what disagrees.", "--repair"),
) -> None:
    """Recompute a batch from its items up, and say what disagrees; it writes nothing without --repair.

    Exits with 1 if anything disagreed.
    """
    from fanin.cli.tables import batch_facts, total_facts

    run = session(ctx)
    verdict = run.tracker.verify(batch, repair=repair)
    found = verdict.disagreements
    pending = ("pending", f"{verdict.pending:,}")
    facts = FactSheet([*batch_facts(verdict.batch), pending, *total_facts(verdict.batch)])
    end = "repaired" if verdict.repaired else "left as it is; --repair mends it" if found else "all agrees"
    run.answer(VERDICT.encode(verdict), facts, *found, end)
    if found:
        raise typer.Exit(ExitCode.WRONG)


class Form(StrEnum):
    """How results are written."""

    JSONL = "jsonl"
    CSV = "csv"


@app.command()
def results(
    ctx: typer.Context,
    batch: int = options.BATCH_ID,
    form: Form = option("JSON lines, or CSV with the JSON in a column.", "--format", default=Form.JSONL),
) -> None:
    """Write the results of all items that are done, in their order.

    The batch was opened with --results. While it runs, these are the results so far. Items that failed have
    none; `fanin failures` lists them.
    """
    found = map(ITEM_RESULT.encode, session(ctx).tracker.iter_results(batch))
    if form is Form.JSONL:
        for one in found:
            sys.stdout.write(json.dumps(one, ensure_ascii=False) + "\n")
        return
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(ITEM_RESULT.fields)
    for one in found:
        one["result"] = json.dumps(one["result"], ensure_ascii=False)
        table.writerow([one.get(name, "") for name in ITEM_RESULT.fields])


@app.command()
def targets(
    ctx: typer.Context,
    batch: int = options.BATCH_ID,
    redeliver: bool = flag(
        "Tell those at once that were not told yet; the batch must have ended.", "--redeliver"
    ),
) -> None:
    """Show who is called back at the end of a batch. Exits with 1 if a target is parked."""
    run = session(ctx)
    found = run.tracker.redeliver(batch) if redeliver else run.tracker.targets(batch)
    columns = ("target", "type", "when", "to", "state", "attempts", "delivered", "last error", "next")
    shown = Table(*columns, empty="nobody is called back: the batch was opened without --on-end")
    for one in found:
        delivered = "" if one.delivered_at is None else encode_time(one.delivered_at)
        later = "" if one.next_at is None else f"by {encode_time(one.next_at)}"
        cells = (one.type, one.when, one.to, one.state, one.attempts, delivered, one.last_error or "", later)
        shown.add_row(str(one.number), *map(str, cells))
    run.answer(TARGET_REPORTS.encode(TargetReports(found)), shown)
    untold = sum(not target.state.settled for target in found)
    if redeliver and untold:
        again = run.command("targets", str(batch))
        run.remark(f"{counted(untold, 'target')} told again; the states are those before. To see: {again}")
    if any(target.state is TargetState.PARKED for target in found) and not redeliver:
        raise typer.Exit(ExitCode.WRONG)


@app.command()
def attention(
    ctx: typer.Context,
    limit: int = options.PAGE_SIZE,
    cursor: str | None = options.CURSOR,
    every: bool = options.EVERY_PAGE,
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
        plus = {name: "+" if name in page.at_least else "" for name in page.counts}
        run.remark(
            ", ".join(f"{name.replace('_', ' ')}: {n:,}{plus[name]}" for name, n in page.counts.items())
        )
    run.more(page.cursor)
    if page.batches:
        raise typer.Exit(ExitCode.WRONG)


@app.command()
def why(ctx: typer.Context, batch: int = options.BATCH_ID) -> None:
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
