"""The audit of all batches: read, judged, written, and verified where that is asked for."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fanin.domain.limits import shown
from fanin.domain.paging import pages
from fanin.errors import FaninError, InvalidRequest
from fanin.spark.auditing import tables
from fanin.spark.auditing.findings import MOVING, Audit
from fanin.spark.runtime.arrow import ArrowBatches, ddl, for_each
from fanin.spark.runtime.datasets import check_apart, check_replaceable, replace_dataset
from fanin.spark.runtime.places import path_of
from fanin.spark.runtime.progress import say
from fanin.spark.runtime.results import Result
from fanin.spark.runtime.service import Service
from fanin.spark.runtime.session import classic, session
from fanin.spark.runtime.values import whole

_MOST_NAMED: Final = 5  # batches with findings that are named on stderr
SEGMENTS: Final = 16
MOST_SEGMENTS: Final = 1_000_000  # the most that DynamoDB takes
_VERIFYING: Final = ("confirm", "repair")


@dataclass(frozen=True)
class Audited(Result):
    """What an audit found; its datasets are below ``output``.

    Attributes:
        ok: whether nothing is wrong; after ``verify``, whether nothing is wrong any more.
        batches: that were read, without those that have expired.
        items: of these batches.
        done: of these items.
        missing_ranges: ranges of items that are not done.
        verdicts: batches by verdict.
        findings: by kind.
        wrong: findings that contradict what is stored.
        in_flux: findings that an active batch shows for a moment.
        words: that were read.
        verified: batches that the service has verified; None if that was not asked for.
        repaired: of these, those that it has repaired.
        unrepaired: those that are not as they should be.
        rejects: none; an audit leaves out no rows.
    """

    detail = None

    ok: bool
    batches: int
    items: int
    done: int
    missing_ranges: int
    verdicts: dict[str, int]
    findings: dict[str, int]
    wrong: int
    in_flux: int
    words: int
    verified: int | None = None
    repaired: int | None = None
    unrepaired: int | None = None
    rejects: dict[str, int] = field(default_factory=dict)

    @property
    def warning(self) -> str | None:
        """What looks like a mistake; None if nothing does."""
        if self.batches or self.words:
            return None
        return "there was no batch and no word; look whether these are the tables you mean"

    def summary(self) -> dict[str, Any]:
        """The summary of the job, ready for JSON."""
        told = {**super().summary(), "rejects": None, "warning": self.warning}
        return {name: value for name, value in told.items() if value is not None}


def audit(
    service: Service | None = None,
    *,
    output: str | PathLike[str],
    batches_export: str | PathLike[str] | None = None,
    words_export: str | PathLike[str] | None = None,
    eventually: bool = False,
    segments: int = SEGMENTS,
    snapshot: str | PathLike[str] | None = None,
    verify: str | None = None,
    progress: bool = False,
) -> Audited:
    """Say how far each batch has come, what is missing, and what contradicts its stored state.

    Reads exports of both tables, which need no stack; without them, the tables themselves.

    Example:
        >>> found = audit(output="s3://lake/audit")  # doctest: +SKIP
        >>> found.ok, found.verdicts, found.findings  # doctest: +SKIP

    Args:
        service: the stack; by default the one that the environment names, if it is needed.
        output: a folder for ``batches``, ``missing``, ``findings`` and ``verified``; those of an earlier
            audit there are replaced.
        batches_export: full export of the table of batches.
        words_export: full export of the table of words, made at about that time.
        eventually: whether to read tables with eventually consistent reads, at half the price.
        segments: parallel readers of tables, and tasks of ``verify``.
        snapshot: a folder for the rows that are read, as large as the tables; ``snapshot`` in ``output`` if
            None.
        verify: ``"confirm"`` has the service verify the batches with findings that it can judge, on the
            tables as they are now; ``"repair"`` has it repair them, too.
        progress: whether to say on standard error what it does, and which batches have most findings.

    Raises:
        InvalidRequest: an argument is not what it should be, or something else is where it would write.
        NotConfigured: the environment names no tables.
        ExportDamaged: an export is not complete.
    """
    if (batches_export is None) is not (words_export is None):
        raise InvalidRequest("say what to audit: exports of both tables, or of none, to read the tables")
    if verify not in {None, *_VERIFYING}:
        raise InvalidRequest(f"verify must be one of {', '.join(_VERIFYING)}, or None, not {shown(verify)}")
    folder = path_of("output", output).rstrip("/")
    kept = (f"{folder}/snapshot" if snapshot is None else path_of("snapshot", snapshot)).rstrip("/")
    segments = whole("segments", segments, 1, MOST_SEGMENTS)
    spark = classic(session("fanin"), "audit")

    def tell(line: str) -> None:
        if progress:
            say(f"audit: {line}", sys.stderr)

    began = time.time_ns() // 1_000_000
    _check_folders(spark, kept, folder)
    exports = list[tables.Export]()
    if batches_export is None or words_export is None:
        tell("reads the tables")
        settings = (service := service or Service.from_env()).settings()
        lines = [
            tables.scan(spark, service, table, segments=segments, consistent=not eventually)
            for table in (settings.batches_table, settings.words_table)
        ]
    else:
        tell("reads the exports")
        places = path_of("batches_export", batches_export), path_of("words_export", words_export)
        exports = [tables.read_export(spark, place) for place in places]
        lines = [one.lines(spark) for one in exports]
    # They are written, since a second scan may find others; then it is checked that none were lost.
    batches = replace_dataset(tables.batches(lines[0]), f"{kept}/batches")
    words = replace_dataset(tables.words(lines[1]), f"{kept}/words")
    ended = time.time_ns() // 1_000_000
    counts = batches.count(), words.count()
    for one, count in zip(exports, counts, strict=False):
        one.check(count)
    tell(f"judges {counts[0]:,} batches with {counts[1]:,} words")
    moments = [one.at for one in exports]
    judged = Audit(batches, words, min(moments, default=began), max(moments, default=ended))
    with judged.kept():
        findings = replace_dataset(judged.findings(), f"{folder}/findings")
        audited = replace_dataset(judged.batches(findings), f"{folder}/batches")
        missing = replace_dataset(judged.missing(audited), f"{folder}/missing")
    told = {**_sums(audited, findings, missing), "words": counts[1]}
    if told["wrong"]:
        _name_worst(tell, audited, told["wrong"], f"{folder}/findings")
    if verify:
        service = service or Service.from_env()
        told |= _verified(findings, service, f"{folder}/verified", repair=verify == "repair", tasks=segments)
    return Audited(**told)


def _check_folders(spark: SparkSession, snapshot: str, output: str) -> None:
    results = [f"{output}/{name}" for name in ("findings", "batches", "missing", "verified")]
    read = [f"{snapshot}/{name}" for name in ("batches", "words")]
    for folder in read:
        check_apart(spark, "the rows that are read", folder, results)
    for folder in (*read, *results):
        check_replaceable(spark, folder)


def _sums(batches: DataFrame, findings: DataFrame, missing: DataFrame) -> dict[str, Any]:
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


def _name_worst(tell: Callable[[str], object], batches: DataFrame, wrong: int, folder: str) -> None:
    worst = batches.where("wrong > 0").orderBy(F.desc("wrong"), "batch_id").limit(_MOST_NAMED + 1).collect()
    tell(f"{wrong:,} {'finding is' if wrong == 1 else 'findings are'} wrong. Look at {folder}")
    for row in worst[:_MOST_NAMED]:
        key = f" ({row['user_key']})" if row["user_key"] else ""
        tell(f"batch {row['batch_id']}{key} is {row['state']}: {row['verdict']}, {row['wrong']} wrong")
    if len(worst) > _MOST_NAMED:
        tell("more batches are in the dataset batches, beside it")


def _verified(
    findings: DataFrame, service: Service, folder: str, *, repair: bool, tasks: int
) -> dict[str, Any]:
    """Let the ledger judge what it can, as of now; for the rest the snapshot counts."""

    def verify(batch_id: int) -> Iterator[ArrowBatches]:
        yield pa.RecordBatch.from_pylist([verified_row(service, batch_id, repair=repair)], schema=SCHEMA)

    moving = F.col("kind").isin([kind.value for kind in MOVING])
    doubted = findings.where(moving).select("batch_id").distinct().repartition(tasks, "batch_id")
    looked = replace_dataset(for_each(doubted, verify, ddl(SCHEMA)), folder)  # a task may run twice
    left = "(found > 0 and not repaired) or error not in ('batch-gone', 'batch-not-found')"
    judged = looked.agg(
        F.count("*").alias("verified"),
        F.count_if("repaired").alias("repaired"),
        F.count_if(F.expr(left)).alias("unrepaired"),
    ).collect()[0]
    others = findings.where(~moving & F.col("wrong")).count()
    return {**judged.asDict(), "ok": others == 0 and judged["unrepaired"] == 0}


SCHEMA: Final = pa.schema(
    [
        ("batch_id", pa.int64()),
        ("state", pa.string()),  # afterwards; null if the batch is gone
        ("pending", pa.int64()),  # items that were not done when they were read
        ("found", pa.int64()),  # number of disagreements
        ("first", pa.string()),  # the first of them, in words
        ("repaired", pa.bool_()),  # whether all of them were
        ("error", pa.string()),  # that ended the verification, for example batch-gone or throttled
    ]
)


def verified_row(service: Service, batch_id: int, *, repair: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"batch_id": batch_id, "pending": 0, "found": 0, "repaired": False}
    unrepaired = 0
    try:
        for verdict in pages(service.ledger().verify, batch_id, repair=repair):
            row["state"] = verdict.batch.state.value
            row["pending"] += verdict.pending
            row["found"] += len(verdict.disagreements)
            row["first"] = row.get("first") or next(iter(verdict.disagreements), None)
            unrepaired += bool(verdict.disagreements) and not verdict.repaired
    except FaninError as error:
        row["error"] = error.code
    else:
        row["repaired"] = row["found"] > 0 and not unrepaired
    return row
