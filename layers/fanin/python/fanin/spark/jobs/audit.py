"""The audit job: checks what the tables say about every batch."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fanin.errors import InvalidRequest
from fanin.spark.audit import export, rows
from fanin.spark.audit.findings import MOVING
from fanin.spark.audit.scan import scan
from fanin.spark.audit.verdicts import Snapshot, audit
from fanin.spark.audit.verifying import verify
from fanin.spark.jobs.running import Job, Summary
from fanin.spark.runtime.datasets import check_apart, check_replaceable, replace_dataset
from fanin.spark.runtime.progress import say
from fanin.spark.runtime.service import Service

ABOUT: Final = """\
Audit all batches: how far each has come, what is missing, and what contradicts its stored state.

Reads exports of both tables (DynamoDB JSON), or the tables themselves with --scan, and writes Parquet below
--output: batches, missing, findings; with --repair or --confirm also verified. What an active batch shows for
a moment is in flux, and not wrong. Exports need no stack, unless there is --repair or --confirm."""

_SNAPSHOT: Final = ("batches", "words")
"""Datasets of what it read, below ``--snapshot``."""
_RESULTS: Final = ("findings", "batches", "missing", "verified")
"""Datasets of what it found, below ``--output``."""
SETTINGS: Final = {"spark.sql.adaptive.forceOptimizeSkewedJoin": "true"}
"""The words of a batch are joined with its row, and then grouped. Where the batches are too many to be
broadcast, Spark would do both in one task for each batch, also for one that has most of the words."""
_MOST_NAMED: Final = 5
"""Batches with findings that are named on stderr."""
_SEGMENTS: Final = 16
_MOST_SEGMENTS: Final = 1_000_000


@dataclass(frozen=True)
class _Source:
    """One table as an input.

    Attributes:
        lines: its rows.
        at: time of the snapshot, milliseconds since the epoch; None for a scan.
        check: takes the rows that were read, and raises if some were lost on the way.
    """

    lines: DataFrame
    at: int | None
    check: Callable[[DataFrame], None]


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--batches-export",
        metavar="FOLDER",
        help="full export of the batches table: s3://bucket/AWSDynamoDB/<id>",
    )
    add("--words-export", metavar="FOLDER", help="full export of the words table, made at about that time")
    add(
        "--scan",
        action="store_true",
        help="instead of exports: read the tables of the stack that the environment names",
    )
    add(
        "--segments",
        type=_segments,
        metavar="N",
        default=_SEGMENTS,
        help="parallel readers of a scan, and tasks of --repair and --confirm (default: %(default)s)",
    )
    add("--eventually", action="store_true", help="scan with eventually consistent reads, at half the price")
    add(
        "--output",
        required=True,
        metavar="FOLDER",
        help="folder for all datasets and summary.json; an earlier audit there is replaced",
    )
    add(
        "--snapshot",
        metavar="FOLDER",
        help="folder for the rows that were read, as large as the tables; those of an earlier audit are"
        " replaced (default: snapshot in --output)",
    )
    then = parser.add_mutually_exclusive_group()
    then.add_argument(
        "--repair",
        action="store_true",
        help="have the service verify the batches with findings that it can judge, and repair them",
    )
    then.add_argument(
        "--confirm",
        action="store_true",
        help="have the service verify these batches on the tables as they are now, and change nothing",
    )


def _segments(text: str) -> int:
    """The value of ``--segments``.

    Raises:
        ArgumentTypeError: it is not a number from 1 to 1,000,000, which is the most that DynamoDB takes.
    """
    if text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST_SEGMENTS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_MOST_SEGMENTS:,}")


def _check(options: argparse.Namespace) -> None:
    """Refuse arguments that do not say what to audit.

    Raises:
        InvalidRequest: there is no source, half of one, or more than one.
    """
    exports = (options.batches_export, options.words_export)
    if any(exports) if options.scan else not all(exports):
        raise InvalidRequest("say what to audit: pass --scan, or both --batches-export and --words-export")


def run(spark: SparkSession, options: argparse.Namespace) -> Summary:
    """Read, measure and write; then let ``verify`` judge what it can, and sum up.

    Raises:
        InvalidRequest: something else is where it would write.
        NotConfigured: the environment names no tables.
        ExportDamaged: an export is not complete.
    """
    began = time.time_ns() // 1_000_000
    folder = options.output.rstrip("/")
    snapshot = (options.snapshot or f"{folder}/snapshot").rstrip("/")
    results = [f"{folder}/{name}" for name in _RESULTS]
    for read in (f"{snapshot}/{name}" for name in _SNAPSHOT):
        check_apart(spark, "the rows that are read", read, results)
        check_replaceable(spark, read)
    for result in results:
        check_replaceable(spark, result)
    _say("reads the tables" if options.scan else "reads the exports")
    batches_from, words_from = _sources(spark, options)
    batches = _staged(batches_from, rows.batches, f"{snapshot}/batches")
    words = _staged(words_from, rows.words, f"{snapshot}/words")
    ended = time.time_ns() // 1_000_000
    read_words = words.count()
    _say(f"judges {batches.count():,} batches with {read_words:,} words")
    moments = [source.at for source in (batches_from, words_from) if source.at is not None]
    found = audit(Snapshot(batches, words, min(moments, default=began), max(moments, default=ended)))
    with found.kept():
        findings = replace_dataset(found.findings(), f"{folder}/findings")
        audited = replace_dataset(found.batches(findings), f"{folder}/batches")
        missing = replace_dataset(found.missing(audited), f"{folder}/missing")
    summary = _summary(audited, findings, missing) | {"words": read_words}
    if not summary["batches"] and not read_words:
        summary["warning"] = "there was no batch and no word; look whether these are the tables you mean"
    if not summary["ok"]:
        _name_worst(audited, summary["wrong"], f"{folder}/findings")
    if options.repair or options.confirm:
        return summary | _verified(findings, options, f"{folder}/verified")
    return summary


def _sources(spark: SparkSession, options: argparse.Namespace) -> tuple[_Source, _Source]:
    if options.scan:
        service = Service.from_env()
        settings = service.settings()
        tables = (settings.batches_table, settings.words_table)
        how: dict[str, Any] = {"segments": options.segments, "consistent": not options.eventually}
        first, second = (scan(spark, service, table, **how) for table in tables)
        return _Source(first, None, _no_check), _Source(second, None, _no_check)
    first_export, second_export = (
        export.read(spark, folder) for folder in (options.batches_export, options.words_export)
    )
    return tuple(  # type: ignore[return-value]
        _Source(one.lines(spark), one.at, one.check) for one in (first_export, second_export)
    )


def _no_check(_: DataFrame) -> None:
    """A scan has no manifest to compare with."""


def _staged(source: _Source, typed: Callable[[DataFrame], DataFrame], folder: str) -> DataFrame:
    """Type rows and write them, since a second scan may find others; then check that none were lost."""
    staged = replace_dataset(typed(source.lines), folder)
    source.check(staged)
    return staged


def _summary(batches: DataFrame, findings: DataFrame, missing: DataFrame) -> Summary:
    verdicts = batches.groupBy("verdict").agg(F.count("*"), F.sum("items"), F.sum("done")).collect()
    kinds = findings.groupBy("kind").agg(F.count_if("wrong"), F.count_if("in_flux"), F.count("*")).collect()
    wrong = sum(row[1] for row in kinds)
    return {
        "ok": wrong == 0,
        "batches": sum(row[1] for row in verdicts),
        "items": sum(row[2] for row in verdicts),
        "done": sum(row[3] for row in verdicts),
        "missing_ranges": missing.count(),
        "verdicts": {row[0]: row[1] for row in verdicts},
        "findings": {row[0]: row[3] for row in kinds},
        "wrong": wrong,
        "in_flux": sum(row[2] for row in kinds),
    }


def _name_worst(batches: DataFrame, wrong: int, folder: str) -> None:
    """Name the batches with the most findings on stderr, and say where all findings are."""
    worst = batches.where("wrong > 0").orderBy(F.desc("wrong"), "batch_id").limit(_MOST_NAMED + 1).collect()
    _say(f"{wrong:,} {'finding is' if wrong == 1 else 'findings are'} wrong. Look at {folder}")
    for row in worst[:_MOST_NAMED]:
        key = f" ({row['user_key']})" if row["user_key"] else ""
        _say(f"batch {row['batch_id']}{key} is {row['state']}: {row['verdict']}, {row['wrong']} wrong")
    if len(worst) > _MOST_NAMED:
        _say("more batches are in the dataset batches, beside it")


def _say(line: str) -> None:
    say(f"audit: {line}", sys.stderr)


def _verified(findings: DataFrame, options: argparse.Namespace, folder: str) -> Summary:
    """Let the ledger judge what it can, as of now; for the rest the snapshot counts."""
    moving = F.col("kind").isin([kind.value for kind in MOVING])
    doubted = findings.where(moving).select("batch_id").distinct()
    tasks = options.segments
    looked = replace_dataset(verify(doubted, Service.from_env(), repair=options.repair, tasks=tasks), folder)
    left = "(found > 0 and not repaired) or error not in ('batch-gone', 'batch-not-found')"
    judged = looked.agg(
        F.count("*").alias("verified"),
        F.count_if("repaired").alias("repaired"),
        F.count_if(F.expr(left)).alias("unrepaired"),
    ).collect()[0]
    others = findings.where(~moving & F.col("wrong")).count()
    return {**judged.asDict(), "ok": others == 0 and judged["unrepaired"] == 0}


def _needs(options: argparse.Namespace) -> Mapping[str, str]:
    """Exports are read from S3 alone."""
    if options.scan or options.repair or options.confirm:
        return Service.from_env().endpoints("dynamodb")
    return {}


JOB: Final = Job("audit", ABOUT, _arguments, run, SETTINGS, output="output", check=_check, needs=_needs)

if __name__ == "__main__":
    sys.exit(JOB.main())
