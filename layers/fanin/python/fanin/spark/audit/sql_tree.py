"""The shape of the tree as SQL: which bits of a word exist, and which words there are.

The same arithmetic as ``fanin.domain.tree.Tree`` with words of 64 bits, for columns ``items``, ``level`` and
``number``. Words are signed here, as all of Spark's integers are: bit 63 is the sign.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin.domain.ids import MAX_ITEMS
from fanin.domain.tree import Tree

TREE: Final = Tree()
TOP: Final = TREE.root_level(MAX_ITEMS)
"""The highest level any tree has."""

TIER: Final = 3
"""Levels of a tier: its words below one of its topmost words are one *block*, at most 4,161 rows."""

_LAST: Final = "shiftright(items - 1, cast(6 * (level + 1) as int))"
_EDGE: Final = f"shiftright(items - 1, cast(6 * level as int)) + 1 - {_LAST} * 64"
_LEVELS: Final = f"transform(sequence(0, {TOP}), level -> {{}})"


def trees(batches: DataFrame) -> DataFrame:
    """Work the arithmetic of each batch's tree out, once for all of its words.

    Args:
        batches: with ``items``.

    Returns:
        The same with
        root: the level on which one word covers all items; null in a batch without items.
        lasts: level → number of its last word.
        edges: level → mask of that word's bits that stand for children.
    """
    root = F.when(F.col("items") <= 0, None)
    for level in range(TOP + 1):
        root = root.when(F.col("items") <= TREE.span(level), level)
    mask = f"if({_EDGE} >= 64, -1L, ~shiftleft(-1L, cast({_EDGE} as int)))"
    return batches.select(
        "*",
        root.alias("root"),
        F.expr(_LEVELS.format(_LAST)).alias("lasts"),
        F.expr(_LEVELS.format(mask)).alias("edges"),
    )


def placed(words: DataFrame) -> DataFrame:
    """Say where each word stands in the tree of its batch.

    Args:
        words: ``level``, ``number`` and ``bits`` of words, with ``closed_at`` and the columns of ``trees`` of
            their batches.

    Returns:
        The same with
        inside: whether the word is one of the tree.
        existing: mask of its bits that stand for children.
        cleared: those of them that are clear.
        settled: whether its value is that of a done word. While a batch is open, and in one that ended
            without having been closed, only 0 is done, since nothing settles its edge.
        tier, block: of the block it belongs to.
    """
    inside = F.expr("coalesce(level <= root and number <= get(lasts, level), false)")
    existing = F.expr(
        "case when not inside then 0L when number < get(lasts, level) then -1L else get(edges, level) end"
    )
    return (
        words.withColumn("inside", inside)
        .withColumn("existing", existing)
        .withColumn("cleared", F.expr("~bits & existing"))
        .withColumn("settled", F.expr("inside and bits = if(closed_at is null, 0L, ~existing)"))
        .withColumn("tier", F.expr(f"cast(level div {TIER} as int)"))
        .withColumn("block", F.expr(f"shiftright(number, cast(6 * ({TIER - 1} - level % {TIER}) as int))"))
        .drop("lasts", "edges")
    )
