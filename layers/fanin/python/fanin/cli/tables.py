"""Formats batches and receipts as text for people."""

from collections.abc import Mapping, Sequence

from fanin.cli.listing import Table, Value, number
from fanin.cli.times import age, now_ms, when
from fanin.domain.batch import Batch, ChildFailures, Mode, OnFailure, Trouble
from fanin.domain.failures import Keep
from fanin.domain.marks import Receipt
from fanin.domain.prices import dollars
from fanin.domain.reports import Estimate, Progress
from fanin.wire.typed import duration


def batch_facts(batch: Batch) -> list[tuple[str, object]]:
    """Names and values that describe a batch, for ``FactSheet``."""
    now = now_ms()
    state = f"{batch.state}, partial" if batch.partial else str(batch.state)
    if batch.draining:
        state += ", drains"
    if batch.cause is not None:
        state += f", because of its {batch.cause}"
    return [
        ("batch", str(batch.batch_id)),
        ("state", state),
        ("user key", batch.user_key),
        ("mode", batch.mode),
        ("items", batch.items),
        ("limit", batch.limit),
        ("most items", batch.max_items),
        ("opened", when(batch.created_at, now)),
        ("opened by", batch.opened_by),
        ("closed", when(batch.closed_at, now)),
        ("ended", when(batch.ended_at, now)),
        ("deadline", _deadline(batch, now)),
        *_activity(batch, now),
        ("parent item", batch.parent_item),
        ("retry of", None if batch.retry_of is None else str(batch.retry_of)),
        ("keeps", None if batch.keep is Keep.MESSAGE else f"{batch.keep} of failures"),
        ("on failure", None if batch.on_failure is OnFailure.DONE else batch.on_failure),
        ("failures of nested batches", None if batch.child_failures is ChildFailures.FAIL else "ignored"),
        ("tolerates", batch.tolerated_failures and batch.tolerated_failures.in_words),
        ("milestones", ", ".join(f"{percent}%" for percent in batch.milestones)),
        ("metadata", ", ".join(f"{key}={value}" for key, value in batch.metadata.items())),
    ]


def _deadline(batch: Batch, now: int) -> Value | None:
    """When it ends or ended by its deadline; nothing if it has ended before."""
    early = batch.ended_at is not None and batch.deadline is not None and batch.ended_at < batch.deadline
    return None if early else when(batch.deadline, now)


def _activity(batch: Batch, now: int) -> list[tuple[str, object]]:
    """When something last happened to a live batch, and when it will be orphaned if nothing more does."""
    if batch.state.terminal:
        return []
    # The row has the last activity rounded down to a step, so that an acknowledgement writes no index.
    late = batch.active_until(now) - batch.touched_at
    note = f", or up to {duration(late / 1000)} later" if late >= 1000 else ""  # noqa: PLR2004 - a second
    seen = when(batch.touched_at, now, note)
    last = min(batch.rounded(batch.touched_at) + batch.idle_ttl * 1000, batch.idle_at)
    return [
        ("last activity", seen),
        ("stall time", duration(batch.stall_after) if batch.stalls else None),
        ("will be orphaned", when(last, now, ", if nothing happens until then")),
    ]


def progress_facts(progress: Progress) -> list[tuple[str, object]]:
    """Names and values that describe a batch and its progress."""
    row, of_these = progress.batch, failed(progress.batch)
    return [
        *batch_facts(row),
        ("done", Value(done(progress), number(progress.done_min, or_more=not progress.exact).plain)),
        ("failed", Value(f"{of_these.shown} of these", of_these.plain) if row.failed else ""),
        ("held", held(row)),
        *total_facts(row),
        ("cost", progress.cost and _cost(progress.cost)),
    ]


def _cost(cost: Estimate) -> Value:
    about, least, most = map(dollars, (cost.dollars, cost.at_least, cost.at_most))
    said = f"about {about}, from {least} to {most} ({cost.region}): an estimate"
    return Value(said, f"{cost.dollars:.6f}")


def total_facts(batch: Batch) -> list[tuple[str, object]]:
    """The totals of a batch, and those of the batches that it retries."""
    known = "" if batch.totals_exact else _inexact(batch)
    mine = [(f"total {name}", Value(f"{found:,}{known}", str(found))) for name, found in batch.totals.items()]
    before = [(f"{name} before", found) for name, found in batch.totals_before.items()]
    return [*mine, *before]


def sums(batch: Batch) -> str:
    """The totals in a line, such as ``3 rows, 950 cents``; empty if the answer does not know them."""
    estimated = batch.mode is Mode.ESTIMATED
    if not batch.totals_exact and not estimated:
        return ""
    brought = ", ".join(f"{found:,} {name}" for name, found in batch.totals.items())
    return f"{brought}{_inexact(batch)}" if brought and estimated else brought


def outcome(batch: Batch, failing: str) -> list[str]:
    """What became of items, in words: how many failed and are held, and the totals, where there are any."""
    parts = [f"{failed(batch).shown} {failing}"] if batch.failed else []
    parts += [f"{held(batch).shown} held"] if batch.held else []
    return [*parts, *filter(None, [sums(batch)])]


def _inexact(batch: Batch) -> str:
    return ", repeats included" if batch.mode is Mode.ESTIMATED else " in finished parts; --exact sums up all"


def done(progress: Progress) -> str:
    """How many of how many items are done; bounds where they were not counted exactly."""
    items = progress.batch.items
    if progress.exact:
        share = f" ({progress.done_min / items:.1%})" if items else ""
        return f"{progress.done_min:,} of {items:,}{share}"
    return f"{progress.done_min:,} to {progress.done_max:,} of {items:,}"


def failed(batch: Batch) -> Value:
    """How many items failed, as far as the answer knows; nothing for people if none is known to have."""
    return _known(batch.failed, batch.failed_more)


def held(batch: Batch) -> Value:
    """How many items are held, as far as the answer knows; nothing for people if none is known to be."""
    return _known(batch.held, batch.may_hold_more)


def _known(count: int, more: bool) -> Value:
    found = number(count, or_more=more)
    return found if count else Value("", found.plain)


def receipts_table(receipts: Sequence[Receipt]) -> Table:
    """What an acknowledgement did: one row for each batch."""
    counts = ("first", "duplicates", "ranged", "late", "held")
    made = Table("batch", "state", *counts, right=counts)
    for receipt in receipts:
        found = (receipt.first, len(receipt.duplicates), receipt.ranged, receipt.late, receipt.held)
        made.add_row(str(receipt.batch_id), receipt.state, *found)
    return made


def batches_table(
    batches: Sequence[Batch], reached: Mapping[int, Progress] | None = None, *, empty: str = "no batch"
) -> Table:
    """Batches, one row each.

    Args:
        batches: what to list, in this order.
        reached: how far a batch is, by its id, where its row does not say it.
        empty: what to say where there is none.
    """
    now = now_ms()
    counts = ("items", "done", "failed", "held")
    columns = ("batch", "state", *counts, "opened", "user key", "totals")
    made = Table(*columns, right=(*counts, "opened"), empty=empty)
    for batch in batches:
        progress = (reached or {}).get(batch.batch_id)
        row = progress.batch if progress else batch
        counted = (row.items, _share(row, progress), failed(row), held(row))
        opened = age(row.created_at, now)
        made.add_row(str(row.batch_id), _state(row), *counted, opened, row.user_key, sums(row))
    return made


def _state(row: Batch) -> Value:
    """The state; for people also a trouble that no other column shows."""
    also = {
        Trouble.STALLED: ", stalled",
        Trouble.DEAD_LETTERS: ", dead letters",
        Trouble.TARGETS: ", target fails",
    }
    return Value(str(row.state) + (also.get(row.attention, "") if row.attention else ""), str(row.state))


def _share(row: Batch, progress: Progress | None) -> Value | None:
    """How many items are done: for people the share; None if that is not known."""
    if progress is not None:
        reached, more = progress.done_min, not progress.exact
    elif row.all_done:
        reached, more = row.items, False
    elif row.mode is Mode.ESTIMATED:
        reached, more = min(row.acked, row.items), False
    else:
        return None
    share = f"{int(100 * reached / row.items)}%" if row.items else ""
    return Value(f"{share}+" if more and share else share, number(reached, or_more=more).plain)
