"""The arithmetic of the tree in SQL: which words a tree has, and which of their bits stand for children.

It is that of ``fanin.domain.tree.Tree`` with words of 64 bits, for columns ``items``, ``level`` and
``number``. Words are signed here, like all integers of Spark: bit 63 is the sign.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin.domain.ids import MAX_ITEMS
from fanin.domain.tree import Tree

TREE: Final = Tree()
TOP: Final = TREE.root_level(MAX_ITEMS)
"""The highest level that a tree can have."""

TIER: Final = 3
"""Levels of a tier. One of its topmost words and all words below it are a *block*, at most 4,161 rows."""

_LAST: Final = "shiftright(items - 1, cast(6 * (level + 1) as int))"
_EDGE: Final = f"shiftright(items - 1, cast(6 * level as int)) + 1 - {_LAST} * 64"
_LEVELS: Final = f"transform(sequence(0, {TOP}), level -> {{}})"


def with_trees(batches: DataFrame) -> DataFrame:
    """Compute the tree of each batch, once for all of its words.

    Returns:
        The same rows with
        root: the level on which one word covers all items; null for a batch without items.
        lasts: for each level the number of its last word.
        edges: for each level the mask of that word's bits that stand for children.
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


def with_places(words: DataFrame) -> DataFrame:
    """Find the place of each word in the tree of its batch.

    Args:
        words: ``level``, ``number`` and ``bits`` of words; and of their batches ``closed_at`` and the columns
            of ``with_trees``.

    Returns:
        The same rows with
        inside: whether the tree has the word.
        existing: mask of its bits that stand for children.
        cleared: mask of those that are clear.
        settled: whether the word is done. In a batch that is open, or that ended without having been closed,
            only 0 counts as done, since nothing settles its edge.
        tier, block: of the block that the word belongs to.
    """
    inside = F.expr("coalesce(level <= root and number <= get(lasts, level), false)")
    existing = F.expr(
        "case when not inside then 0L when number < get(lasts, level) then -1L else get(edges, level) end"
    )
    tier = F.expr(f"cast(level div {TIER} as int)")
    block = F.expr(f"shiftright(number, cast(6 * ({TIER - 1} - level % {TIER}) as int))")
    settled = F.expr("inside and bits = if(closed_at is null, 0L, ~existing)")
    return (
        words.withColumns({"inside": inside, "tier": tier, "block": block})
        .withColumn("existing", existing)
        .withColumns({"cleared": F.expr("~bits & existing"), "settled": settled})
        .drop("lasts", "edges")
    )
