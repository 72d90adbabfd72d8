"""The audit of a snapshot: batches with their verdicts, missing ranges, and findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin.domain.batch import LIVE, Mode, State
from fanin.domain.batch import Kind as BatchKind
from fanin.spark.audit import progress, sums
from fanin.spark.audit.findings import (
    Kind,
    batch_findings,
    judge,
    level_findings,
    root_findings,
    word_findings,
)
from fanin.spark.audit.sql_tree import with_places, with_trees

SLACK: Final = 60_000
"""Milliseconds by which the clocks of tables, functions and this job may differ."""


class Verdict(StrEnum):
    """What the words say about the stored state of a batch; the worst comes first.

    Attributes:
        EARLY: the batch is complete, and items are pending.
        STUCK: the batch is closed and every item is done, and it is not complete.
        WRONG: something else is wrong; the findings say what.
        IN_FLUX: the batch was active while the tables were read, which may explain its findings.
        COUNTED: the batch is estimated, so it has no words to compare with.
        SOUND: nothing was found.
    """

    EARLY = "early"
    STUCK = "stuck"
    WRONG = "wrong"
    IN_FLUX = "in_flux"
    COUNTED = "counted"
    SOUND = "sound"


@dataclass(frozen=True)
class Snapshot:
    """The typed rows of the two tables, and when they were read.

    Attributes:
        batches: of ``rows.batches``.
        words: of ``rows.words``.
        since: milliseconds since the epoch; when reading the earlier table began.
        until: milliseconds since the epoch; when reading the later table ended.
    """

    batches: DataFrame
    words: DataFrame
    since: int
    until: int


@dataclass(frozen=True)
class Audit:
    """What a snapshot says. All datasets come from ``measured``, so persist it while they are written.

    Attributes:
        snapshot: what was audited.
        words: of ``joined``.
        measured: rows of ``sweep.MEASURE``.
    """

    snapshot: Snapshot
    words: DataFrame
    measured: DataFrame

    def batches(self, findings: DataFrame) -> DataFrame:
        """Every batch: what it is, how far it has come, and the verdict.

        Args:
            findings: of this audit.

        Returns:
            batch_id, user_key, state, mode, kind, items, done, pending, partial, created_at, touched_at,
            closed_at, ended_at, expires_at.
            totals: by name, what the leaves add up to, or the counts of an estimated batch; null for a batch
                without totals.
            age: seconds from its creation to its end, or to the snapshot.
            rate: items done per second, from its creation to its end or its last activity.
            wrong, in_flux: number of findings of either sort.
            verdict: a ``Verdict``.
        """
        counts = findings.groupBy("batch_id").agg(
            F.count_if("wrong").alias("wrong"),
            F.count_if("in_flux").alias("in_flux"),
            *(
                F.bool_or(F.expr(f"wrong and kind = '{kind.value}'")).alias(f"is_{kind.value}")
                for kind in (Kind.EARLY, Kind.STUCK)
            ),
        )
        until = F.lit(self.snapshot.until)
        age = F.greatest(F.lit(0), F.coalesce("ended_at", until) - F.col("created_at")) / 1000
        busy = F.least("active_until", until) - F.col("created_at")
        verdict = (
            F.when(F.col("is_early"), Verdict.EARLY)
            .when(F.col("is_stuck"), Verdict.STUCK)
            .when(F.col("wrong") > 0, Verdict.WRONG)
            .when(F.col("in_flux") > 0, Verdict.IN_FLUX)
            .when(F.col("mode") == Mode.ESTIMATED.value, Verdict.COUNTED)
            .otherwise(Verdict.SOUND)
        )
        return (
            self._progress.where("fault is null")
            .join(counts, "batch_id", "left")
            .join(sums.leaf_totals(self.words), "batch_id", "left")
            .withColumn(
                "leaf_sums",
                F.when(F.col("mode") == Mode.EXACT.value, F.col("leaf_sums")).otherwise(F.col("sums")),
            )
            .fillna({"wrong": 0, "in_flux": 0, "is_early": False, "is_stuck": False})
            .select(
                *("batch_id", "user_key", "state", "mode", "kind", "items", "done", "pending", "partial"),
                *("created_at", "touched_at", "closed_at", "ended_at", "expires_at"),
                sums.by_name("leaf_sums").alias("totals"),
                age.alias("age"),
                F.when(busy > 0, F.col("done") * 1000 / busy).alias("rate"),
                *("wrong", "in_flux"),
                verdict.alias("verdict"),
            )
        )

    def missing(self) -> DataFrame:
        """The ranges of items of exact batches that are not done: batch_id, start, stop (half-open)."""
        exact = self._batches.where(f"fault is null and mode = '{Mode.EXACT.value}'")
        return progress.missing(self.measured, exact)

    def findings(self) -> DataFrame:
        """Everything that was found; see ``findings.judge``."""
        words, batches = self.words, self._progress
        found = (
            word_findings(words)
            .unionByName(level_findings(self.measured))
            .unionByName(root_findings(words, batches))
            .unionByName(batch_findings(batches.withColumn("detail", F.lit(None).cast("string"))))
            .unionByName(sums.word_totals(words))
            .unionByName(sums.batch_totals(self._batches, words))
        )
        return judge(found, batches)

    @cached_property
    def _batches(self) -> DataFrame:
        return present(self.snapshot)

    @cached_property
    def _progress(self) -> DataFrame:
        """The batches with ``done``, ``pending`` and ``active``: whether they were active in the snapshot."""
        marked = self.measured.groupBy("batch_id").agg(F.sum("done").alias("marked"))
        exact = F.col("mode") == Mode.EXACT.value
        done = F.when(exact, F.coalesce("marked", F.lit(0))).otherwise(F.least("acked", "items"))
        since = self.snapshot.since - SLACK
        return (
            self._batches.join(marked, "batch_id", "left")
            .withColumns({"done": done, "active_until": _active_until()})
            .withColumns(
                {"pending": F.col("items") - F.col("done"), "active": F.col("active_until") >= since}
            )
            .drop("marked")
        )


def audit(snapshot: Snapshot) -> Audit:
    """Plan the audit of a snapshot; Spark runs nothing yet."""
    words = joined(snapshot)
    measurable = words.where(
        f"inside and not gone and batch_fault is null and fault is null and mode = '{Mode.EXACT.value}'"
    )
    return Audit(snapshot, words, progress.measure(measurable))


def present(snapshot: Snapshot) -> DataFrame:
    """The batches that have not expired, with ``ended``."""
    rows = snapshot.batches.withColumn("ended", ~F.col("state").isin([state.value for state in LIVE]))
    return rows.where(_lives(snapshot))


def joined(snapshot: Snapshot) -> DataFrame:
    """The words with their batches and their places in the trees; ``gone`` says which have expired."""
    rows = present(snapshot).where("batch_id is not null")
    beside = with_trees(rows).select(
        *("batch_id", "items", "closed_at", "mode", "ended", "root", "lasts", "edges"),
        F.col("expires_at").alias("batch_expires_at"),
        F.col("fault").alias("batch_fault"),
        *("totals", F.expr(sums.EXACT_END).alias("exact_end")),
        F.lit(True).alias("known"),
    )
    words = snapshot.words.withColumn("gone", ~_lives(snapshot)).join(beside, "batch_id", "left")
    known = F.coalesce("known", F.lit(False))
    return with_places(words.withColumn("known", known).withColumn("until", F.lit(snapshot.until)))


def _lives(snapshot: Snapshot) -> Column:
    return F.coalesce(F.col("expires_at") * 1000 > snapshot.until, F.lit(True))


def _active_until() -> Column:
    """The latest possible time of the last activity, since ``touched_at`` is rounded down."""
    idle = F.when(F.col("state") == State.OPEN.value, F.col("open_idle_ttl")).otherwise(
        F.col("closed_idle_ttl")
    )
    stalls = (F.col("kind") == BatchKind.BATCH.value) & (F.col("stall_after") > 0)
    # ``least`` ignores nulls.
    step = F.least(F.greatest(F.lit(1), idle * 100), F.when(stalls, F.col("stall_after") * 250))
    return F.coalesce("ended_at", F.col("touched_at") + step)
