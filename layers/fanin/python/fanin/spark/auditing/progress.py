"""What is done and what is missing, in one pass over the words and in time linear in their number.

An item is done if its bit or any bit above it is clear. So every run of cleared bits is an interval of items,
and the union of all intervals is done. Rows are grouped by *block*: the words of three levels below one word,
at most 4,161. A sweep line in numpy gives the unions of thousands of blocks at once. Blocks that a
cleared bit above them covers as a whole are left out before. Items between the blocks are missing, or are
done on a higher level.

Which words a tree has, and which of their bits stand for children, is the arithmetic of
``fanin.domain.tree.Tree`` in SQL, for columns ``items``, ``level`` and ``number``. Words are signed here,
like all integers of Spark: bit 63 is the sign.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from fanin.domain.ids import MAX_ITEMS
from fanin.domain.tree import Tree
from fanin.spark.runtime.arrow import changes, ddl, filled

Columns: TypeAlias = dict[str, Any]
"""Column → numpy array; all have the same length."""


class Measured(IntEnum):
    """What a row of ``MEASURE`` is."""

    HULL = 0
    """From the first done item of a block to its last, or a run of a higher tier; of these are ``done``."""
    GAP = 1  # a range of missing items within a hull
    LOST = 2  # a finished word that no word above it knows of: no bit above it is clear


_MEASURED: Final = pa.schema(
    [
        *(("part", pa.int8()), ("batch_id", pa.int64()), ("level", pa.int32())),
        *((name, pa.int64()) for name in ("number", "start", "stop", "done")),
    ]
)
MEASURE: Final = ddl(_MEASURED)

BLOCK: Final = ("batch_id", "tier", "block")
TAKEN: Final = (*BLOCK, "level", "number", "cleared", "finished", "items")
"""Columns of a word; ``finished`` says that it is done and below the root."""

_SHIFT: Final = 44  # the items of a block, at most 2^42, fit below it


def measure_blocks(pages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Measure words: of columns ``TAKEN``, sorted by ``BLOCK``, make pages of ``MEASURE`` in any order."""
    for columns in _whole_blocks(pages):
        yield from _unions(columns)


def _whole_blocks(pages: Iterable[pa.RecordBatch]) -> Iterator[Columns]:
    """Cut a sorted stream of rows between blocks; at most a page and a block are held over."""
    held: Columns | None = None
    for page in pages:
        columns = {name: page.column(name).to_numpy(zero_copy_only=False) for name in TAKEN}
        if held is not None:
            columns = {name: np.concatenate((held[name], column)) for name, column in columns.items()}
        held = columns
        starts = _block_starts(columns)
        if len(starts) > 1:
            cut = starts[-1]
            yield {name: column[:cut] for name, column in columns.items()}
            held = {name: column[cut:] for name, column in columns.items()}
    if held is not None and len(held["level"]):
        yield held


def _block_starts(columns: Columns) -> Any:
    return np.flatnonzero(changes(*(columns[name] for name in BLOCK)))


def _unions(columns: Columns) -> Iterator[pa.RecordBatch]:
    """Measure whole blocks. Each gets a range of one number line, so that all are swept at once."""
    level, tier = columns["level"].astype(np.int64), columns["tier"].astype(np.int64)
    starts = _block_starts(columns)
    block = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(level))))
    size = np.left_shift(np.int64(1), 6 * level)
    first = columns["number"] * (size << 6)
    # Is added to an item, and gives its place on the line.
    origin = (block << _SHIFT) - (columns["block"] << (6 * TIER * (tier + 1)))
    row, low, high = _runs(columns["cleared"])
    begin = first[row] + low * size[row] + origin[row]
    end = np.minimum(first[row] + high * size[row], columns["items"][row]) + origin[row]
    order = np.argsort(begin, kind="stable")
    row, begin, end = row[order], begin[order], end[order]

    lost = np.flatnonzero(columns["finished"])
    lost = lost[~_below((level[row], begin, end), level[lost], (first + origin)[lost])]
    if len(lost):
        yield _page(
            Measured.LOST, columns["batch_id"][lost], level=level[lost], number=columns["number"][lost]
        )
    if not len(begin):
        return
    reach = np.maximum.accumulate(end)
    before = np.append(-1, reach[:-1])
    fresh = np.append(True, begin[1:] >> _SHIFT != begin[:-1] >> _SHIFT)
    gap = (begin > before) & ~fresh
    gain = np.maximum(reach - np.where(fresh, begin, np.maximum(before, begin)), 0)
    lowest = tier[row] == 0

    inner = np.flatnonzero(gap & lowest)
    batch, shift = columns["batch_id"][row], origin[row]
    if len(inner):
        yield _page(
            Measured.GAP, batch[inner], start=before[inner] - shift[inner], stop=begin[inner] - shift[inner]
        )
    piece = np.flatnonzero(fresh | (gap & ~lowest))
    last = np.append(piece[1:], len(begin)) - 1
    yield _page(
        Measured.HULL,
        batch[piece],
        start=begin[piece] - shift[piece],
        stop=reach[last] - shift[piece],
        done=np.add.reduceat(gain, piece),
    )


def _runs(words: Any) -> tuple[Any, Any, Any]:
    """The runs of ones of each word, in order: row of the word, first bit, one past the last bit."""
    octets = np.ascontiguousarray(words, "<i8").view(np.uint8).reshape(-1, 8)
    bits = np.zeros((len(words), 66), np.int8)
    bits[:, 1:65] = np.unpackbits(octets, axis=1, bitorder="little")
    steps = np.diff(bits, axis=1)
    row, low = np.nonzero(steps == 1)
    _, high = np.nonzero(steps == -1)
    return row, low, high


def _below(runs: tuple[Any, Any, Any], levels: Any, places: Any) -> Any:
    """Which words, given by level and first item, are below a clear bit of a higher word of their block.

    Runs of clear bits have the level of their word, where they begin on the number line, sorted, and end.
    """
    of, begin, end = runs
    under = np.zeros(len(levels), bool)
    for level in np.unique(levels):
        higher = of > level
        if higher.any():
            reach, ours = np.maximum.accumulate(end[higher]), levels == level
            left = np.searchsorted(begin[higher], places[ours], side="right") - 1
            under[ours] = (left >= 0) & (reach[np.maximum(left, 0)] > places[ours])
    return under


def _page(part: Measured, batch: Any, **columns: Any) -> pa.RecordBatch:
    return filled(
        _MEASURED, len(batch), part=np.full(len(batch), part.value, np.int8), batch_id=batch, **columns
    )


TREE: Final = Tree()
TOP: Final = TREE.root_level(MAX_ITEMS)  # the highest level that a tree can have
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
        lasts, edges: of each level the number of the last word, and the mask of its bits that have children.
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
    """Find the place of each word in the tree of its batch, of ``with_trees``.

    Returns:
        The same rows with
        inside: whether the tree has the word.
        existing, cleared: masks of its bits that stand for children, and of those that are clear.
        settled: whether the word is done. In a batch that is open, or that ended without having been closed,
            only 0 counts as done, since nothing settles its edge.
        tier, block: of the block that the word belongs to.
    """
    places = {
        "tier": f"cast(level div {TIER} as int)",
        "block": f"shiftright(number, cast(6 * ({TIER - 1} - level % {TIER}) as int))",
        "inside": "coalesce(level <= root and number <= get(lasts, level), false)",
        "existing": "if(not inside, 0L, if(number < get(lasts, level), -1L, get(edges, level)))",
        "cleared": "~bits & existing",
        "settled": "inside and bits = if(closed_at is null, 0L, ~existing)",
    }
    for name, expression in places.items():
        words = words.withColumn(name, F.expr(expression))
    return words.drop("lasts", "edges")


def measure(words: DataFrame) -> DataFrame:
    """Measure the words of ``with_places`` that are inside their trees, as rows of ``MEASURE``.

    The hulls of a batch do not overlap, nor do the gaps within them.
    """
    taken = words.withColumn("finished", F.expr("settled and level < root")).select(*TAKEN, "root")
    alive = taken.join(_covered(taken), list(BLOCK), "left_anti").select(*TAKEN)
    together = alive.repartition(*BLOCK).sortWithinPartitions(*BLOCK)
    return together.mapInArrow(measure_blocks, MEASURE)


def missing(measured: DataFrame, batches: DataFrame) -> DataFrame:
    """The ranges of items that are not done: batch_id, start, stop; half-open, disjoint and not adjacent."""
    wanted = batches.select("batch_id", "items")
    hulls, gaps = (
        measured.where(f"part = {part.value}").select("batch_id", "start", "stop")
        for part in (Measured.HULL, Measured.GAP)
    )
    ends = wanted.selectExpr("batch_id", "items as start", "items as stop")
    before = "coalesce(lag(stop) over (partition by batch_id order by start), 0) as start"
    between = hulls.unionByName(ends).selectExpr("batch_id", before, "start as stop")
    missing = gaps.unionByName(between.where("start < stop"))
    return missing.join(wanted, "batch_id", "left_semi")


def _covered(words: DataFrame) -> DataFrame:
    """The blocks below a clear bit, each once; trees of up to 262,144 items have no levels above a block."""
    top = f"{TIER} * tier + {TIER - 1}"
    above = F.explode(F.expr(f"sequence({top} + 1, root)"))
    paths = (
        words.where(f"root > {top}")
        .select(*BLOCK, "root")
        .distinct()
        .select(*BLOCK, above.alias("level"))
        .selectExpr(
            *(*BLOCK, "level"),
            f"cast(shiftright(block, cast(6 * (level - 1 - ({top})) as int)) & 63 as int) as bit",
            f"shiftright(block, cast(6 * (level - ({top})) as int)) as number",
        )
    )
    clear = words.where(f"level >= {TIER} and cleared <> 0").select("batch_id", "level", "number", "cleared")
    met = paths.join(clear, ["batch_id", "level", "number"])
    return met.where("shiftright(cleared, bit) & 1 = 1").select(*BLOCK).distinct()
