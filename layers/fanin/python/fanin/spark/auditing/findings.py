"""Finds contradictions: within a row, between a word and its batch, and between the levels of a tree."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin import names
from fanin.domain.batch import RETENTION, Mode, State
from fanin.domain.limits import MAX_LIFETIME
from fanin.spark.auditing import sums
from fanin.spark.auditing.progress import TOP, Measured
from fanin.spark.auditing.rows import MALFORMED_KEY, MALFORMED_ROW


class FindingKind(StrEnum):
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

    MALFORMED_KEY = MALFORMED_KEY
    MALFORMED_ROW = MALFORMED_ROW
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


NOTICES: Final = (FindingKind.ORPHAN,)
"""Kinds that are not wrong."""

MOVING: Final = (FindingKind.LOST_PARENT, FindingKind.STUCK, FindingKind.EARLY)
"""Kinds that a sound batch shows for a moment, between a word and the verdict; ``verify`` can judge them."""

_CARRYING: Final = (*MOVING, FindingKind.WRONG_TOTAL)
"""Kinds that a sound batch shows if a word was read earlier than one below it, or later than its row."""

_GROWING: Final = (FindingKind.NO_SUCH_CHILD, FindingKind.OUTSIDE)
"""Kinds that an open batch shows if the words of a snapshot were read later than its batches."""

_FOUND: Final = ("batch_id", "word_id", "kind", "detail")

_ONE_ABOVE: Final = "one above the root"
"""Stands in ``kind`` until ``judge`` knows the batch: a mark one level above the root.

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


def word_findings(words: DataFrame) -> DataFrame:
    """Find what single words show, compared with their batch.

    Returns:
        batch_id, word_id, kind, detail; of ``_ONE_ABOVE`` only ``judge`` can say whether it is wrong.
    """
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


def batch_findings(batches: DataFrame) -> DataFrame:
    """Find what single rows of batches show."""
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
    whole = "fault is null"
    finds = [
        _Find(f"not ({whole})", "fault"),
        _Find(f"{whole} and {contradicts} is not null", _sql(FindingKind.CONTRADICTION), contradicts),
        _Find(f"{whole} and not ({filed})", _sql(FindingKind.MISFILED), "concat('under ', shelf)"),
        _Find(
            f"{whole} and mode = '{Mode.EXACT}' and state = '{State.CLOSED}' and pending = 0",
            _sql(FindingKind.STUCK),
        ),
        _Find(
            f"{whole} and {sums.COMPLETE} and pending > 0",
            _sql(FindingKind.EARLY),
            "concat(pending, if(pending = 1, ' item is pending', ' items are pending'))",
        ),
        _Find(f"{sums.ROW_DETAIL} is not null", _sql(FindingKind.WRONG_TOTAL), sums.ROW_DETAIL),
    ]
    return _explode(batches, finds, "cast(null as string)")


def level_findings(measured: DataFrame) -> DataFrame:
    """Find finished words whose parent's bit is pending, in rows of ``progress.MEASURE``."""
    lost = measured.where(F.col("part") == Measured.LOST.value)
    return lost.select(
        "batch_id",
        F.concat_ws("/", "batch_id", "level", "number").alias("word_id"),
        F.lit(FindingKind.LOST_PARENT.value).alias("kind"),
        F.lit(None).cast("string").alias("detail"),
    )


def total_findings(words: DataFrame) -> DataFrame:
    """Find words above the leaves whose sums are not those of what is below."""
    return sums.word_totals(words).select(
        "batch_id", "word_id", F.lit(FindingKind.WRONG_TOTAL.value).alias("kind"), "detail"
    )


def judge(found: DataFrame, batches: DataFrame) -> DataFrame:
    """Separate what is wrong from what may only have been changing.

    Args:
        found: of ``word_findings``, ``batch_findings`` and the others. ``_ONE_ABOVE`` becomes ``OUTSIDE`` if
            items of the batch are pending, and is left out if not.
        batches: of ``Audit.advanced``.

    Returns:
        batch_id, word_id, kind, detail.
        in_flux: the batch was active while the tables were read, which may explain the finding.
        wrong: the finding is not in flux, and not a notice.
    """
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
        .select(*_FOUND, "in_flux", "wrong")
    )


def _sql(text: str) -> str:
    return f"'{text}'"


def _among(kinds: Iterable[FindingKind]) -> str:
    return f"({', '.join(map(_sql, kinds))})"


def _explode(rows: DataFrame, finds: Sequence[_Find], word_id: str) -> DataFrame:
    """Make a row for each condition that holds, in one pass."""
    some = " or ".join(f"({find.when})" for find in finds)
    found = ", ".join(
        f"if({find.when}, struct({find.kind} as kind, {find.detail} as detail), null)" for find in finds
    )
    exploded = F.expr(f"explode(array_compact(array({found})))").alias("found")
    # Nearly all rows are sound. Spark compiles a filter; the array it interprets, twice as slowly.
    return (
        rows.where(some)
        .select("batch_id", F.expr(word_id).alias("word_id"), exploded)
        .select("batch_id", "word_id", "found.*")
    )
