"""The audit of a snapshot: batches with their verdicts, missing ranges, and findings."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin.domain.batch import IDLE_STEP, LIVE, STALL_STEP, Kind, Mode, State
from fanin.spark.auditing import progress, sums
from fanin.spark.auditing.findings import (
    FindingKind,
    batch_findings,
    judge,
    level_findings,
    total_findings,
    word_findings,
)
from fanin.spark.auditing.progress import with_places, with_trees

SLACK: Final = 60_000  # milliseconds by which the clocks of tables, functions and this job may differ


class BatchVerdict(StrEnum):
    """What the words say about the stored state of a batch; the worst comes first."""

    EARLY = "early"
    STUCK = "stuck"
    WRONG = "wrong"
    IN_FLUX = "in_flux"
    COUNTED = "counted"
    SOUND = "sound"


@dataclass(frozen=True)
class Audit:
    """What a snapshot of the two tables says. Write its datasets while it is ``kept``."""

    batch_rows: DataFrame  # of ``rows.batches``
    word_rows: DataFrame  # of ``rows.words``
    since: int  # milliseconds since the epoch; when reading the earlier table began
    until: int  # when reading the later table ended

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Compute ``measured`` and ``advanced`` once within the block, in memory and on disk.

        If the block fails they stay, so that nothing hides its error.
        """
        shared = (self.measured, self.advanced)
        for rows in shared:
            rows.persist(StorageLevel.MEMORY_AND_DISK)
        yield
        for rows in reversed(shared):  # Spark plans kept rows anew if those that they come from are let go
            rows.unpersist()

    def batches(self, findings: DataFrame) -> DataFrame:
        """Every batch: what it is, how far it has come, and the verdict; docs/how-to/spark/audit.md."""
        counts = findings.groupBy("batch_id").agg(
            F.count_if("wrong").alias("wrong"),
            F.count_if("in_flux").alias("in_flux"),
            *(
                F.bool_or(F.expr(f"wrong and kind = '{kind.value}'")).alias(f"is_{kind.value}")
                for kind in (FindingKind.EARLY, FindingKind.STUCK)
            ),
        )
        until = F.lit(self.until)
        age = F.greatest(F.lit(0), F.coalesce("ended_at", until) - F.col("created_at")) / 1000
        busy = F.least("active_until", until) - F.col("created_at")
        verdict = (
            F.when(F.col("is_early"), BatchVerdict.EARLY)
            .when(F.col("is_stuck"), BatchVerdict.STUCK)
            .when(F.col("wrong") > 0, BatchVerdict.WRONG)
            .when(F.col("in_flux") > 0, BatchVerdict.IN_FLUX)
            .when(F.col("mode") == Mode.ESTIMATED.value, BatchVerdict.COUNTED)
            .otherwise(BatchVerdict.SOUND)
        )
        return (
            self.advanced.where("fault is null")
            .join(counts, "batch_id", "left")
            .fillna({"wrong": 0, "in_flux": 0, "is_early": False, "is_stuck": False})
            .select(
                *("batch_id", "user_key", "state", "mode", "kind", "items", "done", "pending", "partial"),
                *("created_at", "touched_at", "closed_at", "ended_at", "expires_at"),
                sums.by_name().alias("totals"),
                age.alias("age"),
                F.when(busy > 0, F.col("done") * 1000 / busy).alias("rate"),
                *("wrong", "in_flux"),
                verdict.alias("verdict"),
            )
        )

    def missing(self, batches: DataFrame) -> DataFrame:
        """The ranges of items that are not done; of estimated batches nothing says which these are."""
        return progress.missing(self.measured, batches.where(f"mode = '{Mode.EXACT.value}'"))

    def findings(self) -> DataFrame:
        """Everything that was found; see ``findings.judge``."""
        found = word_findings(self.words).unionByName(level_findings(self.measured))
        found = found.unionByName(batch_findings(self.advanced)).unionByName(total_findings(self.words))
        return judge(found, self.advanced)

    @cached_property
    def measured(self) -> DataFrame:
        """Rows of ``progress.MEASURE``."""
        return progress.measure(self.words.where("in_tree and not gone"))

    @property
    def _present(self) -> DataFrame:
        """The batches that have not expired, with ``ended``."""
        ended = ~F.col("state").isin([state.value for state in LIVE])
        return self.batch_rows.withColumn("ended", ended).where(self._lives)

    @cached_property
    def words(self) -> DataFrame:
        """The words with their batches and their places in the trees.

        Returns:
            The rows of ``rows.words`` with the columns of ``progress.with_places``, and
            gone: whether the word has expired.
            known: whether it has a batch that has not.
            items, closed_at, mode, ended, root, totals, batch_expires_at, batch_fault: of the batch, or null.
            exact_end: ``sums.EXACT_END`` of the batch.
            until: of the snapshot.
            judged: whether the word and its batch can be compared: both are there, and without a fault.
            in_tree: whether it is ``judged``, and where a word of its batch may be.
        """
        beside = with_trees(self._present.where("batch_id is not null")).select(
            *("batch_id", "items", "closed_at", "mode", "ended", "root", "lasts", "edges"),
            F.col("expires_at").alias("batch_expires_at"),
            F.col("fault").alias("batch_fault"),
            *("totals", F.expr(sums.EXACT_END).alias("exact_end")),
            F.lit(True).alias("known"),
        )
        words = self.word_rows.withColumn("gone", ~self._lives).join(beside, "batch_id", "left")
        known = F.coalesce("known", F.lit(False))
        placed = with_places(words.withColumns({"known": known, "until": F.lit(self.until)}))
        judged = "known and batch_fault is null and fault is null"
        return placed.withColumns(
            {"judged": F.expr(judged), "in_tree": F.expr(f"{judged} and inside and mode = '{Mode.EXACT}'")}
        )

    @cached_property
    def advanced(self) -> DataFrame:
        """The batches that have not expired, with how far they have come.

        Returns:
            Their rows with
            done, pending: items.
            active_until: milliseconds since the epoch; the latest possible time of the last activity.
            active: whether the batch may have been active when the snapshot was taken, or later.
            leaf_sums, root_sums: of ``sums.per_batch``.
        """
        marked = self.measured.groupBy("batch_id").agg(F.sum("done").alias("marked"))
        exact = F.col("mode") == Mode.EXACT.value
        done = F.when(exact, F.coalesce("marked", F.lit(0))).otherwise(F.least("acked", "items"))
        active = F.col("active_until") >= self.since - SLACK
        return (
            self._present.join(marked, "batch_id", "left")
            .join(sums.per_batch(self.words), "batch_id", "left")
            .withColumns({"done": done, "active_until": _active_until()})
            .withColumns({"pending": F.col("items") - F.col("done"), "active": active})
            .drop("marked")
        )

    @property
    def _lives(self) -> Column:
        return F.coalesce(F.col("expires_at") * 1000 > self.until, F.lit(True))


def _active_until() -> Column:
    """The latest possible time of the last activity, since ``touched_at`` is rounded down."""
    idle = F.when(F.col("state") == State.OPEN.value, F.col("open_idle_ttl")).otherwise(
        F.col("closed_idle_ttl")
    )
    stalls = (F.col("kind") == Kind.BATCH.value) & (F.col("stall_after") > 0)
    # ``least`` ignores nulls.
    step = F.least(F.greatest(F.lit(1), idle * IDLE_STEP), F.when(stalls, F.col("stall_after") * STALL_STEP))
    return F.coalesce("ended_at", F.col("touched_at") + step)
