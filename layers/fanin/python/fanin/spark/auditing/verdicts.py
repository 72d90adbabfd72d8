"""The audit of a snapshot: batches with their verdicts, missing ranges, and findings."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin.domain.batch import IDLE_STEP, LIVE, STALL_STEP, Kind, Mode, State
from fanin.spark.auditing import progress, sums
from fanin.spark.auditing.findings import FindingKind, find
from fanin.spark.auditing.progress import with_places, with_trees

SLACK: Final = 60_000  # milliseconds by which the clocks of tables, functions and this job may differ
_IDLE: Final = f"if(state = '{State.OPEN}', open_idle_ttl, closed_idle_ttl) * {IDLE_STEP}D"
_STALL: Final = f"if(kind = '{Kind.BATCH}' and stall_after > 0, stall_after * {STALL_STEP}D, null)"
_ACTIVE_UNTIL: Final = f"coalesce(ended_at, touched_at + least(greatest(1, {_IDLE}), {_STALL}))"
"""The latest time of the last activity, as ``touched_at`` is rounded down; ``least`` ignores nulls."""


@dataclass(frozen=True)
class Audit:
    """What a snapshot of the two tables says. Write its datasets while it is ``kept``."""

    batch_rows: DataFrame  # of ``tables.batches``
    word_rows: DataFrame  # of ``tables.words``
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
            *(F.count_if(name).alias(name) for name in ("wrong", "in_flux")),
            *(
                F.bool_or(F.expr(f"wrong and kind = '{kind}'")).alias(f"is_{kind}")
                for kind in (FindingKind.EARLY, FindingKind.STUCK)
            ),
        )
        until = F.lit(self.until)
        age = F.greatest(F.lit(0), F.coalesce("ended_at", until) - F.col("created_at")) / 1000
        busy = F.least("active_until", until) - F.col("created_at")
        verdict = (  # the worst comes first
            "case when is_early then 'early' when is_stuck then 'stuck' when wrong > 0 then 'wrong'"
            f" when in_flux > 0 then 'in_flux' when mode = '{Mode.ESTIMATED}' then 'counted' else 'sound' end"
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
                F.expr(verdict).alias("verdict"),
            )
        )

    def missing(self, batches: DataFrame) -> DataFrame:
        """The ranges of items that are not done; of estimated batches nothing says which these are."""
        return progress.missing(self.measured, batches.where(f"mode = '{Mode.EXACT}'"))

    def findings(self) -> DataFrame:
        """Everything that was found."""
        return find(self.words, self.measured, self.advanced)

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
            The rows of ``tables.words`` with the columns of ``progress.with_places``, those of their batches,
            gone: whether the word has expired.
            known: whether it has a batch that has not.
            judged: whether the word and its batch can be compared: both are there, and without a fault.
            in_tree: whether it is ``judged``, and where a word of its batch may be.
        """
        beside = with_trees(self._present.where("batch_id is not null")).selectExpr(
            *("batch_id", "items", "closed_at", "mode", "ended", "root", "lasts", "edges", "totals"),
            *("expires_at as batch_expires_at", "fault as batch_fault", "true as known"),
            f"{sums.EXACT_END} as exact_end",
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
            Their rows with ``done`` and ``pending``, ``leaf_sums`` and ``root_sums`` of ``sums.per_batch``,
            ``active_until``, and ``active``: whether it may be after the snapshot was taken.
        """
        marked = self.measured.groupBy("batch_id").agg(F.sum("done").alias("marked"))
        exact = F.col("mode") == Mode.EXACT.value
        done = F.when(exact, F.coalesce("marked", F.lit(0))).otherwise(F.least("acked", "items"))
        active = F.col("active_until") >= self.since - SLACK
        return (
            self._present.join(marked, "batch_id", "left")
            .join(sums.per_batch(self.words), "batch_id", "left")
            .withColumns({"done": done, "active_until": F.expr(_ACTIVE_UNTIL)})
            .withColumns({"pending": F.col("items") - F.col("done"), "active": active})
            .drop("marked")
        )

    @property
    def _lives(self) -> Column:
        return F.coalesce(F.col("expires_at") * 1000 > self.until, F.lit(True))
