"""Recomputes totals from the leaves: the sums of a word from the words below it, a row's from its root.

A finished word gives its sums to its parent in the write that clears its bit there, and does not change
any more. So the sums of a word are those of the words below its cleared bits, at any time. A version of
fanin without totals gives no sums; ``summed`` counts those who did, and only a word that has them all can be
judged.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin.adapters.dynamodb.rows import SUMS
from fanin.domain.batch import Mode, State
from fanin.domain.totals import MAX_TOTALS, MAX_VALUE

WRONG_TOTAL: Final = "wrong_total"
_SUM: Final = "decimal(38,0)"
_WORD: Final = ("batch_id", "level", "number")
_PLACES: Final = range(MAX_TOTALS)
_FOUND: Final = ("batch_id", "word_id", "kind", "detail")

EXACT_END: Final = (
    f"mode = '{Mode.EXACT.value}' and state = '{State.COMPLETE.value}' and not partial"
    " and coalesce(totals_exact, false)"
)
"""Whether a batch is complete, and its row has the sums of all of its items."""


def word_totals(words: DataFrame) -> DataFrame:
    """Find words whose sums are not those of what is below.

    Args:
        words: of ``verdicts.joined``.

    Returns:
        batch_id, word_id, kind, detail.
    """
    ours = _judged(words)
    below = (
        ours.where("level < root and sums is not null")
        .select(
            "batch_id",
            (F.col("level") + 1).alias("level"),
            F.expr("shiftright(number, 6)").alias("number"),
            F.struct(F.expr("cast(number & 63 as int)").alias("bit"), "sums").alias("child"),
        )
        .groupBy(*_WORD)
        .agg(F.collect_list("child").alias("children"))
    )
    children = "filter(children, c -> shiftright(cleared, c.bit) & 1 = 1)"
    above = (
        ours.where("level > 0")
        .join(below, list(_WORD), "left")
        .withColumn("children", F.expr(children))
        .withColumn("given", F.expr("bit_count(cleared)"))
        .withColumn("whole", F.expr("coalesce(summed, 0) = given"))
    )
    expected = [
        F.expr(
            f"aggregate(coalesce(children, array()), cast(0 as {_SUM}),"
            f" (sum, c) -> cast(sum + coalesce(c.sums[{place}], 0) as {_SUM}))"
        )
        for place in _PLACES
    ]
    differs = [
        F.when(
            F.col("whole") & (F.col("count") > place) & (_stored(place) != expected[place]),
            _told(place, _stored(place), "stored", expected[place], "below"),
        )
        for place in _PLACES
    ]
    tallied = "coalesce(summed, 0) + coalesce(carried, 0)"
    tallies = F.when(
        F.expr(f"count > 0 and {tallied} > given"),
        F.format_string("%d tallies for %d words that are done", F.expr(tallied), "given"),
    ).when(
        F.expr("exact_end and not whole"),
        F.format_string("%d of %d words have given their sums", F.expr("coalesce(summed, 0)"), "given"),
    )
    most = F.expr(f"cast(bit_count(cleared) as {_SUM}) * {MAX_VALUE}")
    too_large = [
        F.when(
            (F.col("count") > place) & (F.abs(_stored(place)) > most),
            F.concat(
                _name(place), F.lit(": "), _text(_stored(place)), F.lit(", more than its items may bring")
            ),
        )
        for place in _PLACES
    ]
    unnamed = [
        F.when(
            (F.col("count") <= place) & (_stored(place) != 0),
            F.concat(F.lit(f"{SUMS[place]}: "), _text(_stored(place)), F.lit(", of no total of its batch")),
        )
        for place in _PLACES
    ]
    leaves = ours.where("level = 0 and sums is not null")
    return _found(above, F.coalesce(*differs, tallies, *unnamed)).unionByName(
        _found(leaves, F.coalesce(*too_large, *unnamed))
    )


def batch_totals(batches: DataFrame, words: DataFrame) -> DataFrame:
    """Find complete batches whose row has other sums than their root.

    Args:
        batches: of ``verdicts.present``.
        words: of ``verdicts.joined``.

    Returns:
        batch_id, word_id, kind, detail.
    """
    roots = _judged(words).where("level = root and number = 0")
    below = roots.select("batch_id", F.col("sums").alias("root_sums"))
    complete = (
        f"fault is null and totals is not null and mode = '{Mode.EXACT.value}'"
        f" and state = '{State.COMPLETE.value}' and not partial"
    )
    # A version of fanin without totals leaves the row as it was opened.
    told = batches.where(complete).where(f"sums is not null or ({EXACT_END})")
    beside = told.join(below, "batch_id", "left").withColumn("count", F.size("totals"))
    root = [F.coalesce(F.col("root_sums")[place], F.lit(0).cast(_SUM)) for place in _PLACES]
    differs = [
        F.when(
            (F.col("count") > place) & (_stored(place) != root[place]),
            _told(place, _stored(place), "in the row", root[place], "in the words"),
        )
        for place in _PLACES
    ]
    none = F.lit(None).cast("string")
    return _found(beside.withColumn("word_id", none), F.coalesce(*differs))


def leaf_totals(words: DataFrame) -> DataFrame:
    """Add up what the leaves of each batch have.

    Args:
        words: of ``verdicts.joined``.

    Returns:
        batch_id and ``leaf_sums``, of batches of which a leaf has any.
    """
    leaves = _judged(words).where("level = 0 and sums is not null")
    added = (F.sum(F.coalesce(F.col("sums")[place], F.lit(0).cast(_SUM))).cast(_SUM) for place in _PLACES)
    return leaves.groupBy("batch_id").agg(F.array(*added).alias("leaf_sums"))


def by_name(sums: str) -> Column:
    """The sums of a batch by the names of its totals; null for a batch without totals."""
    numbers = (F.coalesce(F.col(sums)[place], F.lit(0).cast(_SUM)) for place in _PLACES)
    some = F.slice(F.array(*numbers), 1, F.size("totals"))
    return F.when(F.col("totals").isNotNull(), F.map_from_arrays("totals", some))


def _judged(words: DataFrame) -> DataFrame:
    """The words of exact batches that are where they should be, with the ``count`` of their totals."""
    exact = f"known and batch_fault is null and mode = '{Mode.EXACT.value}'"
    some = "sums is not null or summed is not null or (exact_end and level > 0)"
    count = F.when(F.col("totals").isNull(), 0).otherwise(F.size("totals"))
    placed = "fault is null and inside and not gone"
    return words.where(exact).where(placed).where(some).withColumn("count", count)


def _found(rows: DataFrame, detail: Column) -> DataFrame:
    judged = rows.withColumns({"kind": F.lit(WRONG_TOTAL), "detail": detail})
    return judged.where("detail is not null").select(*_FOUND)


def _stored(place: int) -> Column:
    return F.coalesce(F.col("sums")[place], F.lit(0).cast(_SUM))


def _told(place: int, one: Column, where: str, other: Column, there: str) -> Column:
    return F.concat(
        _name(place), F.lit(": "), _text(one), F.lit(f" {where}, "), _text(other), F.lit(f" {there}")
    )


def _name(place: int) -> Column:
    return F.col("totals")[place]


def _text(number: Column) -> Column:
    return number.cast("string")
