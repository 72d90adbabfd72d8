"""What does not agree: with itself, with its batch, or between the levels of a tree."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin import names
from fanin.domain.batch import RETENTION, Mode, State
from fanin.domain.limits import MAX_LIFETIME
from fanin.spark.audit.rows import Fault
from fanin.spark.audit.sql_tree import TOP
from fanin.spark.audit.sweep import Part


class Kind(StrEnum):
    """What is wrong.

    Attributes:
        MALFORMED_KEY: a row of the words table whose key is no word's.
        MALFORMED_ROW: an attribute is missing, of another type, or out of its range.
        CONTRADICTION: a row does not agree with itself: a word with the set of its cleared bits, a state
            with its times.
        NO_SUCH_CHILD: a bit is clear that stands for no item and no word.
        OUTSIDE: a word above the root or behind the last of its level, or of a batch that only counts.
        FORGED: words without a batch that expire later than any batch can.
        EXPIRES_EARLY: a word of a live batch goes before the batch does.
        MISFILED: the index has the batch under another state, so the reaper never finds it.
        LOST_PARENT: a word is done, and its parent's bit is pending.
        STUCK: closed, every item is done, and not complete.
        EARLY: complete, and items are pending.
        ORPHAN: words without a batch. Removing a batch leaves them to their own expiry, so this is no error.
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
    ORPHAN = "orphan"


NOTICES: Final = (Kind.ORPHAN,)
"""What is told and is not wrong."""

MOVING: Final = (Kind.LOST_PARENT, Kind.STUCK, Kind.EARLY)
"""What a sound batch shows for a moment, between a word and the verdict; ``verify`` looks at these."""

_GROWING: Final = (Kind.NO_SUCH_CHILD, Kind.OUTSIDE)
"""What an open batch shows to a snapshot whose words are later than its batches."""

_FOUND: Final = ("batch_id", "word_id", "kind", "detail")


def of_words(words: DataFrame) -> DataFrame:
    """What single words show, beside their batch.

    Args:
        words: of ``rows.words`` with their batches' columns, ``known`` (whether there is such a batch) and
            those of ``sql_tree.placed``; ``gone`` says which are past their time.

    Returns:
        batch_id, word_id, kind, detail.
    """
    word, own = "written and done_bits is not null", "bits = ~done_bits"
    # A word that was marked as a whole may be a plain put of 0, without the set.
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
    # A word past its time says nothing more, but that it went too early.
    counts = [(when & (~F.col("gone") | F.lit(kind is Kind.EXPIRES_EARLY)), kind) for when, kind in finds]
    return _explode(words, counts, F.col("word_id"))


def of_batches(batches: DataFrame) -> DataFrame:
    """What single rows of batches show.

    Args:
        batches: of ``rows.batches``, with ``ended`` and, for those that are whole, ``pending``.

    Returns:
        As ``of_words``; ``word_id`` is null.
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


def above_roots(words: DataFrame, batches: DataFrame) -> DataFrame:
    """Marks above a root whose batch is not done.

    The last item of an open batch of exactly 64, 4,096 … may be marked before the close; the mark then goes
    one level above what becomes the root. That is sound if the root is done.
    """
    pending = batches.where("pending > 0").select("batch_id")
    marked = words.where(F.expr("not gone and known and batch_fault is null and not inside") & _grown())
    return marked.join(pending, "batch_id", "left_semi").select(
        "batch_id",
        "word_id",
        F.lit(Kind.OUTSIDE.value).alias("kind"),
        F.lit(None).cast("string").alias("detail"),
    )


def of_levels(measured: DataFrame) -> DataFrame:
    """Finished words whose parent's bit is pending; of ``progress.MEASURE``."""
    lost = measured.where(F.col("part") == Part.LOST.value)
    return lost.select(
        "batch_id",
        F.concat_ws("/", "batch_id", "level", "number").alias("word_id"),
        F.lit(Kind.LOST_PARENT.value).alias("kind"),
        F.lit(None).cast("string").alias("detail"),
    )


def judged(found: DataFrame, batches: DataFrame) -> DataFrame:
    """Tell what is wrong from what may be on its way.

    Args:
        found: of ``of_words``, ``of_batches`` and the others.
        batches: ``batch_id``, ``state`` and ``active`` (whether it may have been active when the
            snapshot was taken, or later).

    Returns:
        batch_id, word_id, kind, detail.
        in_flux: the tables were read while the batch was active, and this may be no more than the difference.
        wrong: neither that, nor a mere notice.
    """
    states = batches.where("fault is null").select("batch_id", "state", "active")
    moving, growing = (F.col("kind").isin([kind.value for kind in kinds]) for kinds in (MOVING, _GROWING))
    flux = F.col("active") & (moving | (growing & (F.col("state") == State.OPEN.value)))
    notice = F.col("kind").isin([kind.value for kind in NOTICES])
    return (
        found.join(states, "batch_id", "left")
        .withColumn("in_flux", F.coalesce(flux, F.lit(False)))
        .withColumn("wrong", ~F.col("in_flux") & ~notice)
        .select(*_FOUND, "in_flux", "wrong")
    )


def _grown() -> Column:
    """A word one above the root of a full tree, with the bit for that root cleared and no other."""
    full = F.expr(f"level between 1 and {TOP} and items = shiftleft(1L, cast(6 * level as int))")
    return F.expr("mode = 'exact' and number = 0 and bits = -2 and level = root + 1") & full


def _explode(rows: DataFrame, finds: list[tuple[Column, Kind | Column]], word_id: Column) -> DataFrame:
    """One row for each condition that holds of a row, in one pass."""
    kinds = F.array(
        *(F.when(when, kind if isinstance(kind, Column) else F.lit(kind.value)) for when, kind in finds)
    )
    return rows.select(
        "batch_id", word_id.alias("word_id"), F.explode(F.array_compact(kinds)).alias("kind"), "detail"
    )
