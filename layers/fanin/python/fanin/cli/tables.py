"""Formats batches and receipts as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from fanin.cli.listing import Listing, facts
from fanin.domain.acks import Receipt
from fanin.domain.batch import Batch, Mode, OnFailure
from fanin.domain.failures import Keep
from fanin.domain.reports import Progress
from fanin.domain.targets import TargetReport
from fanin.domain.tolerance import Tolerance
from fanin.wire.times import encode_time

__all__ = [
    "batch_facts",
    "batches_table",
    "cost",
    "dollars",
    "done",
    "facts",
    "failed",
    "held",
    "progress_facts",
    "receipts_table",
    "sums",
    "table",
    "targets_table",
    "total_facts",
]


def table(*columns: str, right: Sequence[str] = ()) -> Listing:
    """An empty table; the columns named in ``right`` are aligned to the right."""
    return Listing(columns, right)


def batch_facts(batch: Batch) -> list[tuple[str, object]]:
    """Names and values that describe a batch, for ``facts``."""
    state = f"{batch.state}, partial" if batch.partial else str(batch.state)
    if batch.cause is not None:
        state += f", because of its {batch.cause}"
    return [
        ("batch", batch.batch_id),
        ("state", state),
        ("user key", batch.user_key),
        ("mode", batch.mode),
        ("items", f"{batch.items:,}"),
        ("limit", None if batch.limit is None else f"{batch.limit:,}"),
        ("opened", encode_time(batch.created_at)),
        ("opened by", batch.opened_by),
        ("closed", _time(batch.closed_at)),
        ("ended", _time(batch.ended_at)),
        ("deadline", _time(batch.deadline)),
        ("parent item", batch.parent_item),
        ("retry of", batch.retry_of),
        ("keeps", None if batch.keep is Keep.MESSAGE else f"{batch.keep} of failures"),
        ("on failure", None if batch.on_failure is OnFailure.DONE else batch.on_failure),
        ("tolerates", _tolerated(batch.tolerated_failures)),
        ("metadata", ", ".join(f"{key}={value}" for key, value in batch.metadata.items())),
    ]


def progress_facts(progress: Progress) -> list[tuple[str, object]]:
    """Names and values that describe a batch and its progress."""
    row = progress.batch
    among = f"{failed(row)} of these" if row.failed else ""
    counts = [("done", done(progress)), ("failed", among), ("held", held(row))]
    return [*batch_facts(row), *counts, *total_facts(row), ("cost", cost(progress))]


def cost(progress: Progress) -> str:
    """What the batch has cost so far; empty if the service does not estimate it."""
    if progress.cost is None:
        return ""
    about, least, most = (
        dollars(amount) for amount in (progress.cost.dollars, progress.cost.at_least, progress.cost.at_most)
    )
    return f"about {about}, from {least} to {most} ({progress.cost.region}): an estimate"


def dollars(amount: float) -> str:
    """An amount of money; small ones to a hundredth of a cent."""
    if 0 < amount < 0.0001:  # noqa: PLR2004
        return "< $0.0001"
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"


def total_facts(batch: Batch) -> list[tuple[str, object]]:
    """The totals of a batch, and those of the batches that it retries."""
    known = "" if batch.totals_exact else _inexact(batch)
    mine = [(f"total {name}", f"{number:,}{known}") for name, number in batch.totals.items()]
    before = [(f"{name} before", f"{number:,}") for name, number in batch.totals_before.items()]
    return [*mine, *before]


def sums(batch: Batch) -> str:
    """The totals in a line, such as ``3 rows, 950 cents``; empty if the answer does not know them."""
    estimated = batch.mode is Mode.ESTIMATED
    if not batch.totals_exact and not estimated:
        return ""
    brought = ", ".join(f"{number:,} {name}" for name, number in batch.totals.items())
    return f"{brought}{_inexact(batch)}" if brought and estimated else brought


def _inexact(batch: Batch) -> str:
    return ", repeats included" if batch.mode is Mode.ESTIMATED else " in finished parts; --exact sums up all"


def done(progress: Progress) -> str:
    """How many of how many items are done; bounds where they were not counted exactly."""
    items = progress.batch.items
    if progress.exact:
        share = f" ({progress.done_min / items:.1%})" if items else ""
        return f"{progress.done_min:,} of {items:,}{share}"
    return f"{progress.done_min:,} to {progress.done_max:,} of {items:,}"


def failed(batch: Batch) -> str:
    """How many items failed, as far as the answer knows; empty if none is known to have failed."""
    if not batch.failed:
        return ""
    return f"at least {batch.failed:,}" if batch.failed_more else f"{batch.failed:,}"


def held(batch: Batch) -> str:
    """How many items are held, as far as the answer knows; empty if none is known to be."""
    if not batch.held:
        return ""
    return f"at least {batch.held:,}" if batch.may_hold_more else f"{batch.held:,}"


def receipts_table(receipts: Sequence[Receipt]) -> Listing:
    """What an acknowledgement did: one row for each batch."""
    made = table(
        "batch",
        "state",
        "first",
        "duplicates",
        "ranged",
        "late",
        "held",
        right=("first", "duplicates", "ranged", "late", "held"),
    )
    for receipt in receipts:
        found = (receipt.first, len(receipt.duplicates), receipt.ranged)
        numbers = (*found, receipt.late, receipt.held)
        made.add_row(str(receipt.batch_id), str(receipt.state), *(f"{number:,}" for number in numbers))
    return made


def batches_table(batches: Sequence[Batch]) -> Listing:
    """Batches, one row each."""
    made = table(
        "batch",
        "state",
        "items",
        "failed",
        "held",
        "opened",
        "user key",
        "totals",
        right=("items", "failed", "held"),
    )
    for batch in batches:
        opened = f"{encode_time(batch.created_at)[:-5]}Z"  # to the second, which fits 80 columns
        items = f"{batch.items:,}"
        counts = (items, failed(batch), held(batch))
        made.add_row(str(batch.batch_id), str(batch.state), *counts, opened, batch.user_key, sums(batch))
    return made


def _tolerated(tolerance: Tolerance | None) -> str:
    if tolerance is None:
        return ""
    parts = [] if tolerance.count is None else [f"{tolerance.count:,} failures"]
    if tolerance.percent is not None:
        parts.append(f"{tolerance.percent:g}% of what is done, from {tolerance.sample:,} items on")
    return ", and ".join(parts)


def targets_table(targets: Sequence[TargetReport]) -> Listing:
    """Targets of a batch, one row each."""
    made = table("target", "type", "when", "to", "state", "attempts", "delivered", "last error")
    for one in targets:
        delivered, error = _time(one.delivered_at) or "", one.last_error or ""
        cells = (one.type, one.when, one.to, one.state, one.attempts, delivered, error)
        made.add_row(str(one.number), *map(str, cells))
    return made


def _time(ms: int | None) -> str | None:
    return None if ms is None else encode_time(ms)
