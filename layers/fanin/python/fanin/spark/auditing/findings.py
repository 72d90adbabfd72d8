"""Finds contradictions: within a row, between a word and its batch, and between the levels of a tree."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin import names
from fanin.domain.batch import RETENTION, Mode, State
from fanin.domain.limits import MAX_LIFETIME
from fanin.spark.auditing import sums, tables
from fanin.spark.auditing.progress import TOP, Measured


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
