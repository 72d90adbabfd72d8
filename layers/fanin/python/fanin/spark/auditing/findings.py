"""The audit of a snapshot: contradictions, the verdict on each batch, and missing ranges.

Contradictions are those within a row, between a word and its batch, and between the levels of a tree.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin import names
from fanin.domain.batch import IDLE_STEP, LIVE, RETENTION, STALL_STEP, Kind, Mode, State
from fanin.domain.limits import MAX_LIFETIME
from fanin.spark.auditing import progress, sums, tables
from fanin.spark.auditing.progress import TOP, Measured, with_places, with_trees


class FindingKind(StrEnum):
    """What the audit found; docs/how-to/spark/audit.md says what each means, and what to do."""

    MALFORMED_KEY = tables.MALFORMED_KEY
    MALFORMED_ROW = tables.MALFORMED_ROW
    CONTRADICTION = "contradiction"
    NO_SUCH_CHILD = "no_such_child"
    OUTSIDE = "outside"
    FORGED = "forged"
    EXPIRES_EARLY = "expires_early"
    MISFILED = "misfiled"
    LOST_PARENT = "lost_parent"
    STUCK = "stuck"
    EARLY = "early"
    WRONG_TOTAL = "wrong_total"
    ORPHAN = "orphan"


NOTICES: Final = (FindingKind.ORPHAN,)  # not wrong: when a batch is removed, its words expire later
MOVING: Final = (FindingKind.LOST_PARENT, FindingKind.STUCK, FindingKind.EARLY)
"""Kinds that a sound batch shows for a moment, between a word and the verdict; ``verify`` can judge them."""
_CARRYING: Final = (*MOVING, FindingKind.WRONG_TOTAL)
"""Kinds that a sound batch shows if a word was read earlier than one below it, or later than its row."""
_GROWING: Final = (FindingKind.NO_SUCH_CHILD, FindingKind.OUTSIDE)
"""Kinds that an open batch shows if the words of a snapshot were read later than its batches."""
_ONE_ABOVE: Final = "one above the root"
"""Stands in ``kind`` until ``find`` knows the batch: a mark one level above the root.

If the last item of an open batch of exactly 64, 4,096, … items is marked before the close, the mark goes one
level above the later root, and stays there. It is wrong only if items are pending.
"""
_GROWN: Final = (
    f"mode = '{Mode.EXACT}' and number = 0 and bits = -2 and level = root + 1"
    f" and level between 1 and {TOP} and items = shiftleft(1L, cast(6 * level as int))"
)
"""Whether a word is one above the root of a full tree, and only the bit of that root is clear."""


class _Find(NamedTuple):
    """A condition of a row, what it shows, and the detail, all in SQL."""

    when: str
    kind: str
    detail: str = "cast(null as string)"


def _of_words(words: DataFrame) -> DataFrame:
    """What single words show, compared with their batch: batch_id, word_id, kind, detail."""
    # A word that was marked as a whole may have been put as 0, without the set.
    agrees = (
        "case when written and done_bits is not null then bits = ~done_bits when written then bits = 0"
        " else done_bits is null end"
    )
    contradicts = (
        f"case when not ({agrees}) then 'word and done disagree'"
        " when bits & failed_bits <> 0 then 'items have failed and are pending'"
        " when level > 0 and failed_bits <> 0 then 'failures above the leaves' end"
    )
    elsewhere = (
        f"case when mode <> '{Mode.EXACT}' then 'of an estimated batch'"
        " when root is null then 'of a batch without items'"
        " when level > root then 'above the root' else 'after the last of its level' end"
    )
    latest = f"until / 1000 + {MAX_LIFETIME + RETENTION}"
    finds = [
        _Find("fault is not null", "fault", "detail"),
        _Find(f"fault is null and {contradicts} is not null", _sql(FindingKind.CONTRADICTION), contradicts),
        _Find("in_tree and ~bits & ~existing <> 0", _sql(FindingKind.NO_SUCH_CHILD)),
        _Find(f"judged and not in_tree and not ({_GROWN})", _sql(FindingKind.OUTSIDE), elsewhere),
        _Find(f"judged and not in_tree and {_GROWN}", _sql(_ONE_ABOVE), elsewhere),
        _Find(f"not known and fault is null and expires_at > {latest}", _sql(FindingKind.FORGED)),
        _Find(f"not known and fault is null and expires_at <= {latest}", _sql(FindingKind.ORPHAN)),
        _Find(f"{sums.LEAF_DETAIL} is not null", _sql(FindingKind.WRONG_TOTAL), sums.LEAF_DETAIL),
    ]
    # A word that has expired can only show that it expired too early.
    present = [find._replace(when=f"not gone and ({find.when})") for find in finds]
    early = _Find(
        "judged and not ended and expires_at < batch_expires_at",
        _sql(FindingKind.EXPIRES_EARLY),
        "concat(batch_expires_at - expires_at, ' s before its batch')",
    )
    return _explode(words, [*present, early], "word_id")


def _of_batches(batches: DataFrame) -> DataFrame:
    live = f"state in ('{State.OPEN}', '{State.CLOSED}')"
    contradicts = (
        f"case when state = '{State.OPEN}' and closed_at is not null then 'open, and it has closed_at'"
        f" when {live} and ended_at is not null then concat(state, ', and it has ended_at')"
        f" when state = '{State.CLOSED}' and closed_at is null then 'closed, and it has no closed_at'"
        f" when not {live} and ended_at is null then concat(state, ', and it has no ended_at')"
        f" when partial and state <> '{State.COMPLETE}' then concat(state, ', and it is partial')"
        f" when state = '{State.COMPLETE}' and not partial and closed_at is null"
        " then 'complete, and it has no closed_at' end"
    )
    filed = f"shelf = concat(state, '#', batch_id % {names.SHARDS})"
    stuck = f"mode = '{Mode.EXACT}' and state = '{State.CLOSED}' and pending = 0"
    pending = "concat(pending, if(pending = 1, ' item is pending', ' items are pending'))"
    sound = [
        _Find(f"{contradicts} is not null", _sql(FindingKind.CONTRADICTION), contradicts),
        _Find(f"not ({filed})", _sql(FindingKind.MISFILED), "concat('under ', shelf)"),
        _Find(stuck, _sql(FindingKind.STUCK)),
        _Find(f"{sums.COMPLETE} and pending > 0", _sql(FindingKind.EARLY), pending),
        _Find(f"{sums.ROW_DETAIL} is not null", _sql(FindingKind.WRONG_TOTAL), sums.ROW_DETAIL),
    ]
    finds = [find._replace(when=f"fault is null and {find.when}") for find in sound]
    return _explode(batches, [_Find("fault is not null", "fault"), *finds], "cast(null as string)")


def find(words: DataFrame, measured: DataFrame, batches: DataFrame) -> DataFrame:
    """Find what words, ``progress.MEASURE`` and batches of an ``Audit`` show.

    What may only have been changing is in flux, and not wrong. ``_ONE_ABOVE`` becomes ``OUTSIDE`` if items of
    the batch are pending, and is left out if not.
    """
    word_id, kind = "concat_ws('/', batch_id, level, number) as word_id", _sql(FindingKind.LOST_PARENT)
    lost = measured.where(f"part = {Measured.LOST.value}")
    lost = lost.selectExpr("batch_id", word_id, f"{kind} as kind", "cast(null as string) as detail")
    kind = _sql(FindingKind.WRONG_TOTAL)
    totals = sums.word_totals(words).selectExpr("batch_id", "word_id", f"{kind} as kind", "detail")
    found = _of_words(words).unionByName(lost).unionByName(_of_batches(batches)).unionByName(totals)
    states = batches.where("fault is null").select("batch_id", "state", "pending", "active")
    flux = (
        f"coalesce(active and (kind in {_among(_CARRYING)}"
        f" or (kind in {_among(_GROWING)} and state = '{State.OPEN}')), false)"
    )
    above = f"kind = {_sql(_ONE_ABOVE)}"
    return (
        found.join(states, "batch_id", "left")
        .where(f"not {above} or pending > 0")
        .withColumn("kind", F.expr(f"if({above}, {_sql(FindingKind.OUTSIDE)}, kind)"))
        .withColumn("in_flux", F.expr(flux))
        .withColumn("wrong", F.expr(f"not in_flux and kind not in {_among(NOTICES)}"))
        .select("batch_id", "word_id", "kind", "detail", "in_flux", "wrong")
    )


def _sql(text: str) -> str:
    return f"'{text}'"


def _among(kinds: Iterable[FindingKind]) -> str:
    return f"({', '.join(map(_sql, kinds))})"


def _explode(read: DataFrame, finds: Sequence[_Find], word_id: str) -> DataFrame:
    """Make a row for each condition that holds, in one pass."""
    some = " or ".join(f"({find.when})" for find in finds)
    found = ", ".join(
        f"if({find.when}, struct({find.kind} as kind, {find.detail} as detail), null)" for find in finds
    )
    exploded = F.expr(f"explode(array_compact(array({found})))").alias("found")
    # Nearly all rows are sound. Spark compiles a filter; the array it interprets, twice as slowly.
    return (
        read.where(some)
        .select("batch_id", F.expr(word_id).alias("word_id"), exploded)
        .select("batch_id", "word_id", "found.*")
    )


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
