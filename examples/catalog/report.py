"""The results of a run of the demo: the event, the counts, and whether they agree."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from examples.catalog.mending import Mended, table
from examples.catalog.rows import Catalog
from fanin import names
from fanin.local import Stack
from fanin.types import Diagnosis, Progress, Severity, State, Verdict

SHOWN = 3  # number of the event's failures that are printed


@dataclass(frozen=True)
class Counts:
    """Counts of acknowledgements, from the metrics of the function that reads the ack queue.

    Attributes:
        first: items that an acknowledgement marked done.
        duplicate: acknowledgements of items that were done already.
        failed: items that failed.
    """

    first: int
    duplicate: int
    failed: int


def metrics(stack: Stack, function: str) -> Counts:
    """Sum the metrics that a function wrote to its log in CloudWatch's embedded metric format."""
    configuration = stack.client("lambda").get_function_configuration(FunctionName=function)
    pages = (
        stack.client("logs")
        .get_paginator("filter_log_events")
        .paginate(logGroupName=configuration["LoggingConfig"]["LogGroup"])
    )
    total: Counter[str] = Counter()
    for page in pages:
        for event in page["events"]:
            if '"CloudWatchMetrics"' in event["message"]:
                written = json.loads(event["message"])
                for name in (names.METRIC_FIRST, names.METRIC_DUPLICATE, names.METRIC_FAILED):
                    total[name] += int(sum(written.get(name, [])))
    return Counts(total[names.METRIC_FIRST], total[names.METRIC_DUPLICATE], total[names.METRIC_FAILED])


@dataclass(frozen=True)
class Outcome:
    """Everything that the demo measured.

    Attributes:
        catalog: what was sent.
        progress: progress of the batch at the end.
        verdict: the batch, recomputed from its items up.
        events: the events that the subscriber received.
        event_ms: milliseconds from the last acknowledgement to the arrival of the event.
        counts: counts of acknowledgements.
        writes: table → rows written by fanin; empty if nobody counted them.
        imported: rows in the table of the example.
        seconds: seconds from the first message to the event.
        asked: why the batch was not finished, asked while it ran; None if it was too fast for that.
        mended: what became of the failed rows.
        imported_at_last: rows in the table after the redrive.
    """

    catalog: Catalog
    progress: Progress
    verdict: Verdict
    events: list[dict[str, Any]]
    event_ms: int
    counts: Counts
    writes: Counter[str]
    imported: int
    seconds: float
    asked: Diagnosis | None
    mended: Mended
    imported_at_last: int

    def checks(self) -> Iterator[tuple[str, bool]]:
        """Each promise, and whether it holds."""
        items, spoilt, batch = len(self.catalog.rows), self.catalog.spoilt, self.progress.batch
        detail = self.events[0]["detail"]
        yield (
            f"the batch is complete, with {items:,} items",
            (batch.state is State.COMPLETE and batch.items == self.progress.done_min == items),
        )
        yield (
            "recomputed from the items up, the answer is the same",
            (not self.verdict.disagreements and self.verdict.pending == 0),
        )
        yield (
            "one event, once",
            (
                len(self.events) == 1
                and self.events[0]["detail-type"] == names.DETAIL_TYPES["complete"]
                and detail["id"].rpartition("/")[2] == f"{batch.batch_id}.complete"
            ),
        )
        yield (
            "every item was marked once: first + failed = items",
            (self.counts.first + self.counts.failed == items),
        )
        yield (
            f"{self.catalog.again:,} repeated messages were seen as duplicates",
            (
                self.counts.duplicate >= self.catalog.again  # SQS may repeat some on its own
            ),
        )
        yield (
            f"{spoilt} malformed rows failed, and the event lists them",
            (self.counts.failed == spoilt == detail["failed"]),
        )
        totals = self.catalog.totals(spoilt=False)
        yield (
            f"the totals are bytes={totals['bytes']:,} and hubs={totals['hubs']:,}, each row counted once",
            (batch.totals == detail["totals"] == totals and batch.totals_exact),
        )
        yield f"{items - spoilt:,} airports are in the table", self.imported == items - spoilt
        yield (
            "asked while it ran, fanin found no error",
            self.asked is None or all(one.severity is not Severity.ERROR for one in self.asked.findings),
        )
        yield from self.mended.checks(batch.batch_id, spoilt, self.catalog.totals(spoilt=True))
        yield f"after the redrive, {items:,} airports are in the table", self.imported_at_last == items


def report(outcome: Outcome, stack: Stack, console: Console) -> bool:
    """Print the event, the figures and the checks.

    Returns:
        Whether all checks hold.
    """
    event = outcome.events[0]
    console.rule(f"{event['detail-type']}, as the subscriber received it")
    failures = event["detail"]["failures"]
    shown = {**event, "detail": {**event["detail"], "failures": failures[:SHOWN]}}
    console.print_json(json.dumps(shown))
    if len(failures) > SHOWN:
        console.print(f"[dim]… and {len(failures) - SHOWN} more")
    if outcome.asked is not None:
        console.rule("fanin why, while it ran")
        for finding in outcome.asked.findings:
            console.print(f"[bold]{escape(finding.title)}[/]: {escape(finding.detail)}")
    console.rule("fanin failures --by-error")
    console.print(table(outcome.mended.errors))
    console.rule("figures")
    console.print(_figures(outcome, stack))
    console.rule("checks")
    checks = list(outcome.checks())
    for what, holds in checks:
        console.print("[green]✓[/]" if holds else "[red]✗[/]", escape(what))
    return all(holds for _, holds in checks)


def _figures(outcome: Outcome, stack: Stack) -> Table:
    items, writes = len(outcome.catalog.rows), outcome.writes
    shown = Table.grid(padding=(0, 2))
    shown.add_column(justify="right")
    shown.add_column()
    rows = [
        (f"{items:,}", f"items, {items + outcome.catalog.again:,} messages sent"),
        (f"{outcome.counts.first:,}", "first: marked done by this acknowledgement and none before"),
        (f"{outcome.counts.duplicate:,}", "duplicate: were done already"),
        (f"{outcome.counts.failed:,}", "failed for good"),
        (f"{outcome.progress.batch.totals['bytes']:,}", "bytes in the imported rows, each counted once"),
        (f"{outcome.event_ms:,} ms", "from the last acknowledgement to the event at the subscriber"),
        (f"{outcome.seconds:.1f} s", f"in all, {items / outcome.seconds:,.0f} items a second"),
    ]
    if writes:
        meaning = (
            f"rows written by fanin for an item: {writes[stack.words_table]:,} of words,"
            f" {writes[stack.batches_table]:,} of the batch, {writes[stack.parts_table]:,} notes"
        )
        rows.insert(-2, (f"{writes.total() / items:.3f}", meaning))
    for value, meaning in rows:
        shown.add_row(f"[bold]{value}", meaning)
    return shown
