"""The outcome of a run of the pipeline, and whether it adds up."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from examples.pipeline.vehicles import Vehicle
from fanin import names
from fanin.spark import Summary
from fanin.types import Progress, State, Verdict


@dataclass(frozen=True)
class Outcome:
    """Everything that the demo saw.

    Attributes:
        rows: flights of the sample.
        sent: summary of the fan-out job.
        consumers: what consumers did with flights → number of flights.
        acked: summary of the ack job.
        again: the same of its second run.
        progress: of the batch, at the end.
        verdict: of the batch, recomputed from its items up.
        events: those of the batch, from the bus.
        audited: summary of the audit job.
        reported: summary of the report job.
        repeated: the same of its second run.
        living: aircraft that answer.
        silent: aircraft that are in the directory and do not answer.
        scrapped: aircraft whose channel is gone. The registrar drops them from the directory when it finds
            out, so they failed, or they are not registered any more.
        unknown: aircraft that were never in the directory.
        asked: how often each aircraft handled a message.
    """

    rows: int
    sent: Summary
    consumers: Counter[str]
    acked: Summary
    again: Summary
    progress: Progress
    verdict: Verdict
    events: list[dict[str, Any]]
    audited: Summary
    reported: Summary
    repeated: Summary
    living: int
    silent: int
    scrapped: int
    unknown: int
    asked: Counter[Vehicle]

    @property
    def received(self) -> int:
        """Aircraft that answered, as the report says."""
        return sum(one["received"] for one in self.reported["asked"])

    def checks(self) -> Iterator[tuple[str, bool]]:
        """The promises, each with whether it was kept."""
        batch, left = self.progress.batch, self.consumers["left"]
        unreached = self.scrapped + self.unknown
        missing = self.reported["missing"]
        yield (
            f"every flight was sent as an item: {self.rows:,}",
            self.sent["ok"] and self.sent["rows"] == self.sent["sent"] == batch.items == self.rows,
        )
        yield (
            f"the ack job marked the {left:,} items that consumers had left to it",
            self.acked["ok"] and self.acked["distinct"] + self.acked["failed"] == left,
        )
        yield "its second run marked none", self.again["ok"] and self.again["first"] == 0
        yield (
            "the batch is complete, and all its items are done",
            batch.state is State.COMPLETE and self.progress.done_min == self.rows,
        )
        yield (
            "one event said so, once",
            [event["detail-type"] for event in self.events] == [names.DETAIL_TYPES["complete"]],
        )
        cancelled = self.consumers["failed"] + self.acked["failed"]
        yield (
            f"the event counts {cancelled:,} cancelled flights as failed",
            [event["detail"]["failed"] for event in self.events[:1]] == [cancelled],
        )
        yield (
            "recomputed from the items up, the answer is the same",
            not self.verdict.disagreements and self.verdict.pending == 0,
        )
        yield "the audit of all tables finds nothing wrong", self.audited["ok"] and self.audited["wrong"] == 0
        yield (
            f"each flight is in the report, or among its {sum(self.reported['rejects'].values()):,} rejects",
            self.reported["ok"] and self.reported["rows"] == self.rows,
        )
        yield (
            f"all {self.living} living aircraft answered, and each was asked once",
            self.received == self.living and set(self.asked.values()) == {1},
        )
        yield (
            f"the report names {self.silent} that did not answer, and {unreached} that nobody could ask",
            missing.get("silent", 0) == self.silent
            and missing.get("failed", 0) + missing.get("unregistered", 0) == unreached
            and missing.get("unregistered", 0) >= self.unknown,
        )
        yield (
            "the report made again is the same, with the same answers",
            all(self.reported[name] == self.repeated[name] for name in self.reported if name != "seconds"),
        )


def summary(outcome: Outcome, console: Console) -> bool:
    """Print the figures and the checks.

    Returns:
        Whether every check holds.
    """
    console.rule("figures")
    console.print(_figures(outcome))
    console.rule("checks")
    checks = list(outcome.checks())
    for what, holds in checks:
        console.print("[green]✓[/]" if holds else "[red]✗[/]", escape(what), highlight=False)
    console.rule()
    console.print(f"the report: [bold]{escape(outcome.reported['page'])}", highlight=False, soft_wrap=True)
    return all(holds for _, holds in checks)


def _figures(outcome: Outcome) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right")
    table.add_column()
    consumers, acked, reported = outcome.consumers, outcome.acked, outcome.reported
    for value, meaning in (
        (f"{outcome.rows:,}", f"flights fanned out, in {outcome.sent['requests']:,} requests to SQS"),
        (f"{consumers['done']:,}", "done and acknowledged by consumers, through the ack queue"),
        (f"{consumers['failed']:,}", "failed by consumers, since the flight was cancelled"),
        (f"{consumers['left']:,}", f"acknowledged by the ack job, in {acked['writes']:,} writes of words"),
        (f"{outcome.audited['batches']:,}", "batches audited, item by item"),
        (f"{reported['distance_m'] / 1000:,.0f} km", f"flown by {reported['vehicles']:,} aircraft"),
        (f"{outcome.received}", f"of {outcome.living + outcome.silent + outcome.scrapped} aircraft answered"),
    ):
        table.add_row(f"[bold]{value}", meaning)
    return table
