"""Measures every figure, prints them as one table, and exits with 1 if one misses its bound."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context

from rich.console import Console
from rich.table import Table

from bench import (
    bill,
    buffers,
    compare,
    dynamodb,
    failures,
    frames,
    growing,
    imports,
    milestones,
    parsing,
    ranges,
    reading,
    redrive,
    results,
    scatters,
    single,
    spark_audit,
    spark_cluster,
    spark_coalesce,
    spark_fan_out,
    spark_ids,
    spark_writes,
    totals,
    writers,
)
from bench.figures import Figure, number, worst

Measurement = Callable[[], list[Figure]]

COUNTED: dict[str, list[Measurement]] = {
    # Those that take long come first, so that none of them is the last.
    "spark": [spark_writes.counts],
    "bill": [
        bill.queued_scattered,
        bill.queued_neighbours,
        bill.one_at_a_time,
        bill.in_tens,
        bill.directly,
        bill.planned,
    ],
    "single": [single.in_random_order, single.in_order, single.across_words],
    "writers": [writers.interleaved, writers.threads, dynamodb.emulated],
    "growing": [growing.drained, growing.keys],
    "milestones": [milestones.in_random_order, milestones.in_order],
    "totals": [totals.one_at_a_time, totals.ranges],
    "ranges": [ranges.adding, ranges.whole_batches, ranges.any_range, ranges.overlapping],
    "reading": [
        reading.closing,
        reading.bounds,
        reading.holding,
        reading.pictures,
        reading.missing,
        reading.diagnosis,
    ],
    "patterns": [buffers.one_at_a_time, buffers.in_tens, frames.envelopes],
    "failures": [failures.kept],
    "scatters": [scatters.all_replies, scatters.quorum, scatters.large_topic],
    "redrive": [redrive.redriven],
    "results": [results.stored],
    "compare": [compare.expressions, compare.alternatives],
    "imports": [imports.size],
}
TIMED: dict[str, list[Measurement]] = {
    "parsing": [parsing.parsing],
    "import-times": [imports.seconds],
    "spark-speed": [spark_coalesce.ratios, spark_ids.ratios, spark_fan_out.rows_a_second],
    "spark-audit": [spark_audit.linear],
}
GROUPS = [*COUNTED, *TIMED]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "groups",
        nargs="*",
        metavar="group",
        help=f"groups to measure, by default all: {', '.join(GROUPS)}; counted is all that needs no clock",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    full = "spark-speed with 2^27 acknowledgements instead of 2^25, spark-audit with 10^7 words"
    parser.add_argument("--full", action="store_true", help=full)
    options = parser.parse_args()
    if options.full:
        TIMED["spark-speed"][0] = partial(spark_coalesce.ratios, spark_cluster.FULL)
        TIMED["spark-speed"][1] = partial(spark_ids.ratios, spark_cluster.FULL)
        TIMED["spark-audit"][0] = partial(spark_audit.linear, spark_audit.FULL)
    groups = [group for name in options.groups for group in (COUNTED if name == "counted" else [name])]
    if unknown := set(groups) - set(GROUPS):
        parser.error(f"unknown group: {', '.join(sorted(unknown))}; choose from {', '.join(GROUPS)}")
    with Console(stderr=True).status("measuring; what is counted takes about two minutes"):
        figures = measure(groups or GROUPS)
    if options.json:
        print(json.dumps({**machine(), "figures": [figure.as_json() for figure in figures]}, indent=2))
    else:
        show(figures)
    return 0 if all(figure.ok for figure in figures) else 1


def measure(groups: Iterable[str]) -> list[Figure]:
    """Measure groups of figures: first the counted ones, in parallel, then the timed ones, one by one.

    Each timed measurement has a process, and so a JVM, of its own: it finds no caches that another one
    filled.

    Returns:
        One figure for each name; of several measurements of a figure, the worst.
    """
    chosen = set(groups)
    with ProcessPoolExecutor() as pool:
        running = [pool.submit(m) for group, ms in COUNTED.items() if group in chosen for m in ms]
        figures = [figure for answer in running for figure in answer.result()]
    timed = [measurement for group, ms in TIMED.items() if group in chosen for measurement in ms]
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        figures += [figure for measurement in timed for figure in pool.submit(measurement).result()]
    by_name: dict[str, list[Figure]] = {}
    for figure in figures:
        by_name.setdefault(figure.name, []).append(figure)
    return [worst(same) for same in by_name.values()]


def machine() -> dict[str, str | int | None]:
    """When and on which machine this was measured; only the timed figures depend on the machine."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }


def show(figures: Collection[Figure]) -> None:
    here = machine()
    table = Table(
        title="fanin: rows read and written, on the in-memory store unless the figure says otherwise",
        caption=f"{here['measured_at']}, Python {here['python']}, {here['machine']}, {here['cores']} cores",
    )
    table.add_column("figure", overflow="fold")
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("must be", justify="right", no_wrap=True)
    table.add_column("ok", no_wrap=True)
    table.add_column("note", overflow="fold", style="dim")
    for figure in figures:
        table.add_row(figure.name, number(figure.measured), figure.must_be, _verdict(figure), figure.note)
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    for figure in figures:
        if not figure.ok:
            console.print(
                f"missed: {figure.name}: {number(figure.measured)}, must be {figure.must_be}",
                markup=False,
                highlight=False,
            )


def _verdict(figure: Figure) -> str:
    if not figure.bounded:
        return ""
    return "[green]yes[/]" if figure.ok else "[bold red]NO[/]"


if __name__ == "__main__":
    sys.exit(main())
