"""Recomputes totals from the leaves: the sums of a word from the words below it, a row's from its root.

A finished word gives its sums to its parent in the write that clears its bit there, and does not change
any more. So the sums of a word are those of the words below its cleared bits, at any time. ``carried`` counts
the whole tallies that a word was given, and only a word that has them all is judged: below any other one is
an item whose own batch did not know its sums.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin.adapters.dynamodb.rows import SUMS
from fanin.domain.batch import Mode, State
from fanin.domain.totals import MAX_CHILD_SUM, MAX_TOTALS
from fanin.spark.auditing.tables import SUM

_ZERO: Final = f"cast(0 as {SUM})"
_PLACES: Final = f"sequence(0, {MAX_TOTALS - 1})"
_NAMED: Final = "coalesce(place < size(totals), false)"
"""Whether the batch has a total for a place; in an expression for ``place`` of ``_PLACES``."""

COMPLETE: Final = f"mode = '{Mode.EXACT}' and state = '{State.COMPLETE}' and not partial"
"""Whether all items of a batch were done when it ended."""
EXACT_END: Final = f"{COMPLETE} and coalesce(totals_exact, false)"
"""Whether a batch is complete, and its row has the sums of all of its items."""
_COMPARED: Final = (
    "in_tree and not gone and (sums is not null or (totals is not null and carried is not null)"
    " or (exact_end and level > 0))"
)
"""Whether a word is where it should be, and has sums or should have some."""


def _at(sums: str) -> str:
    """The sum at ``place``, 0 if there is none."""
    return f"coalesce({sums}[place], {_ZERO})"


def _first(*cases: tuple[str, str]) -> str:
    """What is said of the first place of which a case holds; null if there is none."""
    case = " ".join(f"when {when} then {told}" for when, told in cases)
    return f"get(array_compact(transform({_PLACES}, place -> case {case} end)), 0)"


def _unlike(others: str, here: str, there: str) -> str:
    """What is said of the first of the sums that differs from that of others."""
    told = f"concat(totals[place], ': ', {_at('sums')}, ' {here}, ', {_at(others)}, ' {there}')"
    return _first((f"{_NAMED} and {_at('sums')} <> {_at(others)}", told))


_UNNAMED: Final = (
    f"not {_NAMED} and {_at('sums')} <> 0",
    f"concat(array({', '.join(map(repr, SUMS))})[place], ': ', {_at('sums')}, ', of no total of its batch')",
)
# An item may be the parent of a batch, and then brings the sum of that.
_TOO_LARGE: Final = (
    f"{_NAMED} and abs({_at('sums')}) > cast(bit_count(cleared) as {SUM}) * {MAX_CHILD_SUM}",
    f"concat(totals[place], ': ', {_at('sums')}, ', more than its items may bring')",
)

LEAF_DETAIL: Final = (
    f"if(level = 0 and sums is not null and {_COMPARED}, {_first(_TOO_LARGE, _UNNAMED)}, null)"
)
"""What is wrong with the sums of a leaf, of ``Audit.words``; null if nothing is."""

ROW_DETAIL: Final = (
    f"if(fault is null and totals is not null and {COMPLETE},"
    f" {_unlike('root_sums', 'in the row', 'in the words')}, null)"
)
"""How the sums in the row of a batch differ from its root's, of ``per_batch``; null if they do not."""


def per_batch(words: DataFrame) -> DataFrame:
    """Add up what the leaves of each batch have, and find what its root has, where one of them has sums.

    Returns:
        batch_id.
        leaf_sums: a decimal for each place, 0 where no leaf has that sum; null if it has more than 38 digits.
        root_sums: a decimal for each place, null where the root does not have that sum.
    """
    leaf, root = "level = 0", "level = root and number = 0"
    with_sums = words.where(f"{_COMPARED} and sums is not null and ({leaf} or ({root}))")
    # Numbers, since Spark sorts all rows to find the first array. The largest of one root's are the root's.
    places = range(MAX_TOTALS)
    added = [F.expr(f"try_sum(if({leaf}, coalesce(sums[{one}], {_ZERO}), {_ZERO}))") for one in places]
    found = [F.expr(f"max(if({root}, sums[{one}], null))") for one in places]
    columns = F.array(*added).alias("leaf_sums"), F.array(*found).alias("root_sums")
    return with_sums.groupBy("batch_id").agg(*columns)


def by_name() -> Column:
    """The totals of a batch of ``Audit.advanced``, by name: what its leaves add up to, or what was counted.

    Null for a batch without totals, and in it for one that has more than 38 digits.
    """
    exact = f"coalesce(leaf_sums, array_repeat({_ZERO}, {MAX_TOTALS}))"
    estimated = f"transform({_PLACES}, place -> {_at('sums')})"
    numbers = f"if(mode = '{Mode.EXACT}', {exact}, {estimated})"
    return F.expr(f"if(totals is null, null, map_from_arrays(totals, slice({numbers}, 1, size(totals))))")


def word_totals(words: DataFrame) -> DataFrame:
    """Find words above the leaves whose sums are not those of what is below."""
    # Each word comes to its own place, and what it has given to that of the word above it.
    own = (
        "if(level > 0, struct(level, number,"
        " struct(word_id, cleared, sums, carried, exact_end, totals) as word, null as child), null)"
    )
    given = (
        "if(level < root and sums is not null, struct(level + 1 as level, shiftright(number, 6) as number,"
        " null as word, struct(cast(number & 63 as int) as bit, sums) as child), null)"
    )
    places = (
        words.where(_COMPARED)
        .select("batch_id", F.expr(f"explode(array_compact(array({own}, {given})))").alias("place"))
        .select("batch_id", "place.*")
    )
    together = (
        places.groupBy("batch_id", "level", "number")
        .agg(F.first("word", ignorenulls=True).alias("word"), F.collect_list("child").alias("children"))
        .where("word is not null")
        .select("batch_id", "word.*", "children")
    )
    below = (
        f"transform({_PLACES}, place -> aggregate("
        f"filter(children, child -> shiftright(cleared, child.bit) & 1 = 1), {_ZERO},"
        f" (sum, child) -> cast(sum + {_at('child.sums')} as {SUM})))"
    )
    more = {"below": below, "done": "bit_count(cleared)", "carried": "coalesce(carried, 0)"}
    counted = together.withColumns({name: F.expr(text) for name, text in more.items()})
    detail = (
        f"coalesce(if(carried = done, {_unlike('below', 'stored', 'below')}, null),"
        " case when size(totals) > 0 and carried > done"
        " then format_string('%d tallies for %d words that are done', carried, done)"
        " when exact_end and carried <> done"
        " then format_string('%d of %d words have given their sums', carried, done) end,"
        f" {_first(_UNNAMED)})"
    )
    return counted.select("batch_id", "word_id", F.expr(detail).alias("detail")).where("detail is not null")
