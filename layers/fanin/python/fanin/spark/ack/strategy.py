"""From acknowledgements to words: three ways to the same marks, and which of them is taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import pairwise
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import ByteType, IntegerType, LongType, NullType, ShortType

from fanin.errors import InvalidRequest
from fanin.spark.ack import sql_bits
from fanin.spark.ack.containers import PAGE_BITS
from fanin.spark.ack.input_schema import MARKS, MERGED, PAGES, Form, Records
from fanin.spark.ack.issued import Batches
from fanin.spark.ack.lifting import LIFTED, WINDOW_BITS, cover_upper
from fanin.spark.ack.page_merger import merge
from fanin.spark.ack.parquet_files import Files
from fanin.spark.ack.tasks import coalesce

_SAMPLE: Final = 8_192
_ORDERED: Final = 8
"""Input with more acknowledgements to a word than this, in the order it comes, is fast in plain SQL."""
_TASKS: Final = 32
"""Tasks for each core, at most: starting Python's side of a task takes longer than many a partition."""
_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)


class Way(StrEnum):
    """How acknowledgements become words.

    Attributes:
        PARQUET: tasks read the columns of Parquet files themselves, and make pages.
        PAGES: Spark hands the rows of any DataFrame to tasks, and they make pages.
        SQL: aggregation by word in plain SQL: for input that is in order, or small. If it holds an item
            twice, the input is read again, and must then be the same.
    """

    PARQUET = "parquet"
    PAGES = "pages"
    SQL = "sql"


def form_of(columns: Iterable[str], batch_id: int | None) -> Form:
    """How input of these columns names items.

    Args:
        columns: of the input.
        batch_id: of all rows, for input that has only ordinals.

    Raises:
        InvalidRequest: it names none.
    """
    present = set(columns)
    if batch_id is None and "item" in present:
        return Form(ids=True)
    if "ordinal" in present and (batch_id is not None or "batch_id" in present):
        return Form(ids=False, batch_id=batch_id)
    raise InvalidRequest(
        "acknowledgements need a column item, or columns batch_id and ordinal, or a column ordinal and the"
        f" id of the batch; there are: {', '.join(sorted(present))}"
    )


def readable(files: Files, form: Form) -> bool:
    """Whether tasks can read the files themselves: the columns are in them, and need no conversion."""
    schema = files.schema()
    if schema is None:
        return False
    kinds = {field.name: str(field.type) for field in schema}
    fits = ("string", "large_string") if form.ids else ("int8", "int16", "int32", "int64", "uint32")
    return all(kinds.get(name) in fits for name in form.columns)


def way_of(rows: DataFrame, form: Form) -> Way:
    """The way for a DataFrame, by its first rows: plain SQL if they are all, or are in order of items.

    Spark reads a part of the input for it; say the way yourself where that is dear.
    """
    if form.ids:
        few = len(rows.select(F.lit(1)).limit(_SAMPLE).collect()) < _SAMPLE
        return Way.SQL if few else Way.PAGES
    # Rows of a limit come in order, but what is grouped after it need not: so the changes are counted here.
    words = [row[0] for row in normal(rows, form).select(sql_bits.word("ordinal")).limit(_SAMPLE).collect()]
    changes = sum(a != b for a, b in pairwise(words))
    return Way.SQL if len(words) < _SAMPLE or changes * _ORDERED < len(words) else Way.PAGES


def normal(rows: DataFrame, form: Form) -> DataFrame:
    """The columns that name items, as the other functions take them.

    Returns:
        ``item``, as text; or ``batch_id`` and ``ordinal`` as BIGINT, null where they are no whole numbers,
        and ``raw``, the row as JSON where that is so: VOID if it cannot be.
    """
    if form.ids:
        return rows.withColumn("item", F.col("item").cast("string"))
    texts = [name for name in form.columns if not isinstance(rows.schema[name].dataType, _WHOLE)]
    numbers = {
        name: _number(name) if name in texts else F.col(name).cast(LongType()) for name in form.columns
    }
    raw = F.lit(None)
    if texts:
        ragged = [F.col(name).isNotNull() & numbers[name].isNull() for name in texts]
        json = F.to_json(F.struct(*form.columns), {"ignoreNullFields": "false"})
        raw = F.when(ragged[0] | ragged[-1], json)
    given = {} if form.batch_id is None else {"batch_id": F.lit(form.batch_id).cast(LongType())}
    return rows.withColumns({"raw": raw, **numbers, **given})


def _number(name: str) -> Column:
    return F.expr(f"try_cast(CAST(`{name}` AS STRING) AS BIGINT)")


def pages_of_files(
    spark: SparkSession, files: Files, form: Form, batches: Batches, *, reasons: bool = False
) -> DataFrame:
    """``PAGES`` of Parquet files, by the Parquet way; with ``reasons``, of the rows that have none."""
    shares, work = files.shares(spark.sparkContext.defaultParallelism), coalesce(batches, form)

    def run(records: Iterable[Records]) -> Iterator[Records]:
        for record in records:
            for number in record.column(0).to_pylist():
                yield from work(files.read(shares[number], form, reasons=reasons))

    return spark.range(0, len(shares), 1, max(1, len(shares))).mapInArrow(run, PAGES)


def pages_of_rows(rows: DataFrame, form: Form, batches: Batches, *, failed: bool = False) -> DataFrame:
    """``PAGES`` of a DataFrame that ``normal`` gave; of very many partitions, some to a task."""
    # To hand a row to Python costs more than all that is done with it: so only what differs is handed over.
    ragged = not form.ids and not isinstance(rows.schema["raw"].dataType, NullType)
    columns = [*form.columns, *(["raw"] if ragged else [])]
    return _bounded(rows.select(*columns)).mapInArrow(coalesce(batches, form, failed=failed), PAGES)


def _bounded(rows: DataFrame) -> DataFrame:
    """The rows, in no more partitions than there are tasks for.

    Rows that go through a coalesce take a quarter longer to Python, even if it joins none; so partitions are
    counted first, unless Spark must run a part of the plan to know how many there are.
    """
    most = _TASKS * rows.sparkSession.sparkContext.defaultParallelism
    plan = rows._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001
    shuffled = "Exchange" in plan or "AdaptiveSparkPlan" in plan
    return rows.coalesce(most) if shuffled or rows.rdd.getNumPartitions() > most else rows


def merged(pages: DataFrame, form: Form, batches: Batches) -> DataFrame:
    """``MERGED``, of ``PAGES``: each word in one task."""
    window = F.shiftright("page", WINDOW_BITS - PAGE_BITS)
    placed = pages.repartition("batch_id", window)
    ordered = placed.sortWithinPartitions("batch_id", "page", F.col("failed").desc())
    return ordered.mapInArrow(merge(batches, form), MERGED)


def marks(coalesced: DataFrame, batches: Batches) -> DataFrame:
    """The minimal cover of the acknowledged items: ``MARKS``, each word once."""
    columns = ["batch_id", "level", "number", "mask"]
    low = coalesced.where(f"mask IS NOT NULL AND level < {LIFTED}").select(columns)
    bits_above = coalesced.where(f"level = {LIFTED}").groupBy("batch_id", "number")
    above = bits_above.agg(sql_bits.union("mask").alias("mask")).repartition("batch_id")
    high = above.sortWithinPartitions("batch_id").mapInArrow(cover_upper(batches), MARKS)
    return low.unionByName(high)
