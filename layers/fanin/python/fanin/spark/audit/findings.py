"""Finds contradictions: within a row, between a word and its batch, and between the levels of a tree."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin import names
from fanin.domain.batch import RETENTION, Mode, State
from fanin.domain.limits import MAX_LIFETIME
from fanin.spark.audit import sums
from fanin.spark.audit.rows import Fault
from fanin.spark.audit.sql_tree import TOP
from fanin.spark.audit.sweep import Part


class Kind(StrEnum):
    """What the audit found.

    Attributes:
        MALFORMED_KEY: the key of a row in the words table is not the key of a word.
        MALFORMED_ROW: an attribute is missing, has another type, or is out of its range.
        CONTRADICTION: a row contradicts itself: a word the set of its cleared bits, a state its times.
        NO_SUCH_CHILD: a bit is clear that stands for no item and no word.
        OUTSIDE: a word is above the root, after the last word of its level, or of an estimated batch.
        FORGED: a word without a batch expires later than any batch can.
        EXPIRES_EARLY: a word of a live batch expires before the batch does.
        MISFILED: the index has the batch under another state, so the reaper never finds it.
        LOST_PARENT: a word is done, and its parent's bit is pending.
        STUCK: the batch is closed and every item is done, and it is not complete.
        EARLY: the batch is complete, and items are pending.
        WRONG_TOTAL: the sums of a word are not those of the words below it, or those of a complete batch not
            those of its root.
        ORPHAN: a word has no batch. That is not wrong: when a batch is removed, its words expire later.
    """

    MALFORMED_KEY = Fault.KEY.value
    MALFORMED_ROW = Fault.ROW.value
    CONTRADICTION = "contradiction"
    NO_SUCH_CHILD = "no_such_child"
    OUTSIDE = "outside"
    FORGED = "forged"
    EXPIRES_EARLY = "expires_early"
    MISFILED = "misfiled"
    LOST_PARENT = "lost_parent"
    STUCK = "stuck"
    EARLY = "early"
    WRONG_TOTAL = sums.WRONG_TOTAL
    ORPHAN = "orphan"


NOTICES: Final = (Kind.ORPHAN,)
"""Kinds that are not wrong."""

MOVING: Final = (Kind.LOST_PARENT, Kind.STUCK, Kind.EARLY)
"""Kinds that a sound batch shows for a moment, between a word and the verdict; ``verify`` can judge them."""

_CARRYING: Final = (*MOVING, Kind.WRONG_TOTAL)
"""Kinds that a sound batch shows if a word was read earlier than one below it, or later than its row."""

_GROWING: Final = (Kind.NO_SUCH_CHILD, Kind.OUTSIDE)
"""Kinds that an open batch shows if the words of a snapshot were read later than its batches."""

_FOUND: Final = ("batch_id", "word_id", "kind", "detail")


def word_findings(words: DataFrame) -> DataFrame:
    """Find what single words show, compared with their batch.

    Args:
        words: of ``rows.words``, with the columns of their batches, ``known`` (whether there is such a
            batch), the columns of ``sql_tree.with_places``, and ``gone`` (whether the word has expired).

    Returns:
        batch_id, word_id, kind, detail.
    """
    word, own = "written and done_bits is not null", "bits = ~done_bits"
    # A word that was marked as a whole may have been put as 0, without the set.
    agrees = F.expr(
        f"case when {word} then {own} when written then bits = 0 else done_bits is null end"
        " and bits & failed_bits = 0 and (level = 0 or failed_bits = 0)"
    )
    judged = F.expr("known and batch_fault is null and fault is null")
    exact = F.col("mode") == Mode.EXACT.value
    inside = judged & exact & F.col("inside")
    latest = F.col("until") / 1000 + MAX_LIFETIME + RETENTION
    finds: list[tuple[Column, Kind | Column]] = [
        (F.col("fault").isNotNull(), F.col("fault")),
        (F.col("fault").isNull() & ~agrees, Kind.CONTRADICTION),
        (inside & F.expr("~bits & ~existing <> 0"), Kind.NO_SUCH_CHILD),
        (judged & ~(exact & F.col("inside")) & ~_grown(), Kind.OUTSIDE),
        (judged & F.expr("not ended and expires_at < batch_expires_at"), Kind.EXPIRES_EARLY),
        (F.expr("not known and fault is null") & (F.col("expires_at") > latest), Kind.FORGED),
        (F.expr("not known and fault is null") & (F.col("expires_at") <= latest), Kind.ORPHAN),
    ]
    # A word that has expired can only show that it expired too early.
    counts = [(when & (~F.col("gone") | F.lit(kind is Kind.EXPIRES_EARLY)), kind) for when, kind in finds]
    return _explode(words, counts, F.col("word_id"))


def batch_findings(batches: DataFrame) -> DataFrame:
    """Find what single rows of batches show.

    Args:
        batches: of ``rows.batches``, with ``ended`` and, for well-formed rows, ``pending``.

    Returns:
        The columns of ``word_findings``; ``word_id`` is null.
    """
    consistent = F.expr(
        "case when state = 'open' then closed_at is null and ended_at is null"
        " when state = 'closed' then closed_at is not null and ended_at is null"
        " else ended_at is not null end"
        " and (not partial or state = 'complete')"
        " and (state <> 'complete' or partial or closed_at is not null)"
    )
    filed = F.col("shelf") == F.concat("state", F.lit("#"), (F.col("batch_id") % names.SHARDS).cast("string"))
    whole, exact = F.col("fault").isNull(), F.col("mode") == Mode.EXACT.value
    complete = (F.col("state") == State.COMPLETE.value) & ~F.col("partial")
    finds: list[tuple[Column, Kind | Column]] = [
        (~whole, F.col("fault")),
        (whole & ~consistent, Kind.CONTRADICTION),
        (whole & ~filed, Kind.MISFILED),
        (whole & exact & (F.col("state") == State.CLOSED.value) & (F.col("pending") == 0), Kind.STUCK),
        (whole & exact & complete & (F.col("pending") > 0), Kind.EARLY),
    ]
    return _explode(batches, finds, F.lit(None).cast("string"))


def root_findings(words: DataFrame, batches: DataFrame) -> DataFrame:
    """Find marks above the root of a batch that is not done.

    If the last item of an open batch of exactly 64, 4,096, … items is marked before the close, the mark goes
    one level above the later root. That is sound if the root is done.
    """
    pending = batches.where("pending > 0").select("batch_id")
    marked = words.where(F.expr("not gone and known and batch_fault is null and not inside") & _grown())
    return marked.join(pending, "batch_id", "left_semi").select(
        "batch_id",
        "word_id",
        F.lit(Kind.OUTSIDE.value).alias("kind"),
        F.lit(None).cast("string").alias("detail"),
    )


def level_findings(measured: DataFrame) -> DataFrame:
    """Find finished words whose parent's bit is pending, in rows of ``sweep.MEASURE``."""
    lost = measured.where(F.col("part") == Part.LOST.value)
    return lost.select(
        "batch_id",
        F.concat_ws("/", "batch_id", "level", "number").alias("word_id"),
        F.lit(Kind.LOST_PARENT.value).alias("kind"),
        F.lit(None).cast("string").alias("detail"),
    )


def judge(found: DataFrame, batches: DataFrame) -> DataFrame:
    """Separate what is wrong from what may only have been changing.

    Args:
        found: of ``word_findings``, ``batch_findings`` and the others.
        batches: ``batch_id``, ``state`` and ``active`` (whether the batch may have been active when the
            snapshot was taken, or later).

    Returns:
        batch_id, word_id, kind, detail.
        in_flux: the batch was active while the tables were read, which may explain the finding.
        wrong: the finding is not in flux, and not a notice.
    """
    states = batches.where("fault is null").select("batch_id", "state", "active")
    moving, growing = (F.col("kind").isin([kind.value for kind in kinds]) for kinds in (_CARRYING, _GROWING))
    flux = F.col("active") & (moving | (growing & (F.col("state") == State.OPEN.value)))
    notice = F.col("kind").isin([kind.value for kind in NOTICES])
    return (
        found.join(states, "batch_id", "left")
        .withColumn("in_flux", F.coalesce(flux, F.lit(False)))
        .withColumn("wrong", ~F.col("in_flux") & ~notice)
        .select(*_FOUND, "in_flux", "wrong")
    )


def _grown() -> Column:
    """Whether a word is one above the root of a full tree, and only the bit of that root is clear."""
    full = F.expr(f"level between 1 and {TOP} and items = shiftleft(1L, cast(6 * level as int))")
    return F.expr("mode = 'exact' and number = 0 and bits = -2 and level = root + 1") & full


def _explode(rows: DataFrame, finds: list[tuple[Column, Kind | Column]], word_id: Column) -> DataFrame:
    """Make a row for each condition that holds, in one pass."""
    kinds = F.array(
        *(F.when(when, kind if isinstance(kind, Column) else F.lit(kind.value)) for when, kind in finds)
    )
    return rows.select(
        "batch_id", word_id.alias("word_id"), F.explode(F.array_compact(kinds)).alias("kind"), "detail"
    )
