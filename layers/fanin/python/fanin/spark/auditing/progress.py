"""What is done and what is missing, in one pass over the words and in time linear in their number.

An item is done if its bit or any bit above it is clear. So every run of cleared bits is an interval of items,
and the union of all intervals is done. Rows are grouped by *block*: the words of three levels below one word,
at most 4,161. ``sweep`` computes the union of a block in numpy, thousands of blocks at once. Blocks that a
cleared bit above them covers as a whole are left out before. Items between the blocks are missing, or are
done on a higher level.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from fanin.spark.auditing.sql_tree import TIER
from fanin.spark.auditing.sweep import BLOCK, MEASURE, TAKEN, Measured, measure_blocks


def measure(words: DataFrame) -> DataFrame:
    """Measure the words of exact batches.

    Args:
        words: of ``sql_tree.with_places``; only those inside their trees.

    Returns:
        Rows of ``MEASURE``. The hulls of a batch do not overlap, nor do the gaps within them.
    """
    taken = words.withColumn("finished", F.expr("settled and level < root")).select(*TAKEN, "root")
    alive = taken.join(_covered(taken), list(BLOCK), "left_anti").select(*TAKEN)
    together = alive.repartition(*BLOCK).sortWithinPartitions(*BLOCK)
    return together.mapInArrow(measure_blocks, MEASURE)


def missing(measured: DataFrame, batches: DataFrame) -> DataFrame:
    """The ranges of items that are not done.

    Args:
        measured: rows of ``MEASURE``.
        batches: ``batch_id`` and ``items`` of the batches to look at.

    Returns:
        batch_id, start, stop: half-open, disjoint and not adjacent.
    """
    hulls = measured.where(F.col("part") == Measured.HULL.value)
    order = Window.partitionBy("batch_id").orderBy("start")
    between = hulls.select(
        "batch_id",
        F.coalesce(F.lag("stop").over(order), F.lit(0)).alias("start"),
        F.col("start").alias("stop"),
    ).where("start < stop")
    ends = hulls.groupBy("batch_id").agg(F.max("stop").alias("start"))
    wanted = batches.select("batch_id", "items")
    behind = (
        wanted.join(ends, "batch_id", "left")
        .select("batch_id", F.coalesce("start", F.lit(0)).alias("start"), F.col("items").alias("stop"))
        .where("start < stop")
    )
    inner = measured.where(F.col("part") == Measured.GAP.value).select("batch_id", "start", "stop")
    return inner.unionByName(between).join(wanted, "batch_id", "left_semi").unionByName(behind)


def _covered(words: DataFrame) -> DataFrame:
    """The blocks below a clear bit, each once.

    Only trees of more than 262,144 items have levels above a block.
    """
    top = f"{TIER} * tier + {TIER - 1}"
    above = F.explode(F.expr(f"sequence({top} + 1, root)"))
    paths = (
        words.where(f"root > {top}")
        .select(*BLOCK, "root")
        .distinct()
        .select(*BLOCK, above.alias("level"))
        .withColumn(
            "bit", F.expr(f"cast(shiftright(block, cast(6 * (level - 1 - ({top})) as int)) & 63 as int)")
        )
        .withColumn("number", F.expr(f"shiftright(block, cast(6 * (level - ({top})) as int))"))
    )
    clear = words.where(f"level >= {TIER} and cleared <> 0").select("batch_id", "level", "number", "cleared")
    met = paths.join(clear, ["batch_id", "level", "number"])
    return met.where("shiftright(cleared, bit) & 1 = 1").select(*BLOCK).distinct()
