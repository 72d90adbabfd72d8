"""What the driver does itself, where to start tasks takes longer: few rows in one job, and few words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it

from fanin.spark.ack.coalescer import Coalescer
from fanin.spark.ack.input_schema import InputSchema
from fanin.spark.ack.issued import BatchReader, IssuedItems, StoredBatches
from fanin.spark.ack.ledger_writes import COUNTS, Acknowledged, mark
from fanin.spark.ack.page_merger import LIFTED, lifted, merge_task
from fanin.spark.ack.schemas import MARK_SCHEMA, PAGE_SCHEMA, PAGES, page_records
from fanin.spark.ack.sql_items import normalize
from fanin.spark.inputs.names import with_names
from fanin.spark.runtime.arrow import ArrowBatches, Task, page
from fanin.spark.runtime.rejects import EVERY, Reject, RejectLimit, write_few_rejects
from fanin.spark.runtime.service import Service

ROWS: Final = 10_000
"""Most rows that are acknowledged like this: at worst as many writes, by the driver alone."""
TASKS: Final = 32
"""Most tasks, of at most so many rows each, so that what comes to the driver together is bounded."""
_MORE: Final = "more rows than are acknowledged in one job"
_FAILS: Final = "_fails"


def acknowledge_few(
    rows: DataFrame,
    service: Service,
    *,
    rejects: str,
    batch_id: int | None = None,
    max_rejects: RejectLimit = EVERY,
    write_empty: bool = False,
) -> Acknowledged | None:
    """Acknowledge the items that rows name, if they are few and name no item that failed.

    Args:
        rows: as ``acknowledge`` takes them.
        service: the stack.
        rejects: folder for the rows that are left out; the rejects of an earlier run are replaced.
        batch_id: the batch of all rows, for input that has only ordinals.
        max_rejects: how many rows may be left out.
        write_empty: whether to write the dataset of rejects if there are none.

    Returns:
        What was done; None if the rows are too many, or some fail their items: then nothing was written.

    Raises:
        InvalidRequest: the columns name no items, or something other than rejects is in their folder.
        TooManyRejects: too many rows are left out; no item was acknowledged.
    """
    rows = with_names(rows, ["item", "batch_id", "ordinal", "reason"])
    schema = InputSchema.of(rows.columns, batch_id)
    few = coalesce_few(rows, schema, StoredBatches(service))
    if few is None:
        return None
    counted = write_few_rejects(rows.sparkSession, few.rejects, rejects, write_empty=write_empty)
    max_rejects.check(counted, few.rows, rejects, rows.sparkSession)
    return _mark(few.marks, service, rows=few.rows, rejects=counted)


def acknowledge_words(
    merged: DataFrame, service: Service, *, rows: int, rejects: dict[str, int]
) -> Acknowledged:
    """Clear a few words.

    Args:
        merged: rows of ``MERGED``, no more of which have a mask than the driver can take.
        service: the stack.
        rows: of the input.
        rejects: rows that are left out, by reason.
    """
    words = [row.asDict() for row in merged.where("mask IS NOT NULL").collect()]
    return _mark(_marks(words, StoredBatches(service)), service, rows=rows, rejects=rejects)


def _mark(marks: ArrowBatches, service: Service, *, rows: int, rejects: dict[str, int]) -> Acknowledged:
    before = service.meter().writes.total()
    results = [result for some in mark([marks], service.ledger()) for result in some]
    done = {name: sum(getattr(result, name) for result in results) for name in COUNTS}
    done["writes"] = service.meter().writes.total() - before
    done["completed"] = len({result.batch_id for result in results if result.complete})
    distinct = sum(result.items for result in results)
    return Acknowledged(rows, distinct, failed=0, rejects=rejects, **done)


class Few(NamedTuple):
    """A few rows, coalesced.

    Attributes:
        rows: of the input.
        marks: rows of ``MARKS``.
        rejects: the rows that are left out.
    """

    rows: int
    marks: ArrowBatches
    rejects: list[Reject]


def coalesce_few(rows: DataFrame, schema: InputSchema, batches: BatchReader) -> Few | None:
    """Coalesce the rows if they are few and none of them names an item that failed, in one Spark job.

    Args:
        rows: with the columns that name items, and perhaps a ``reason``.
        schema: how they name items.
        batches: where tasks and the driver read batches.

    Returns:
        None if there are more rows, or a failure. Nothing was written then.
    """
    pages = pages_of_few(rows, schema, batches).collect()
    more = any(page["detail"] == _MORE and page["reason"] is None for page in pages)
    if more or sum(page["rows"] or 0 for page in pages) > ROWS:
        return None
    return _merged(pages, schema, batches)


def pages_of_few(rows: DataFrame, schema: InputSchema, batches: BatchReader) -> DataFrame:
    """Make ``PAGES`` of the rows, which the driver can take."""
    fails = F.col("reason").isNotNull() if "reason" in rows.columns else F.lit(False)
    named = normalize(rows.withColumn(_FAILS, fails), schema)
    ragged = [] if schema.by_id else [F.col("raw").cast("string").alias("raw")]
    task = coalesce_few_task(batches, schema, rows=ROWS)
    # To join partitions takes no shuffle, so it is still one job; a task that has too much stops early.
    return named.select(*schema.columns, *ragged, _FAILS).coalesce(TASKS).mapInArrow(task, PAGES)


def _merged(pages: list[Any], schema: InputSchema, batches: BatchReader) -> Few:
    """Merge the pages of all tasks, and lift what they clear."""
    pages.sort(key=lambda page: (page["batch_id"] or 0, page["page"] or 0))
    # Rows without a partition, such as those of an empty file, have no task, and give not even a count.
    record = page(PAGE_SCHEMA, pages)
    merged = [row for some in merge_task(batches, schema)([record]) for row in some.to_pylist()]
    return Few(
        rows=sum(row["rows"] or 0 for row in merged),
        marks=_marks(merged, batches),
        rejects=[Reject(row["value"], row["reason"], row["detail"]) for row in merged if row["reason"]],
    )


def coalesce_few_task(batches: BatchReader, schema: InputSchema, *, rows: int) -> Task:
    """Make the function of a task that coalesces until there are more rows, or one that fails its item.

    Returns:
        A function that takes the columns of the schema, perhaps ``raw``, and ``_fails``, and gives ``PAGES``;
        or, where it gave up, a single row that says so.
    """

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        coalescer, found, left = Coalescer(batches, schema), list[ArrowBatches](), rows
        for record in records:
            left -= record.num_rows
            if left < 0 or record.column(_FAILS).true_count:
                yield page_records(1, page=[0], detail=[_MORE])
                return
            found += coalescer.add(record.select([n for n in record.schema.names if n != _FAILS]))
        yield from found
        yield from coalescer.finish()

    return run


def _marks(merged: Sequence[dict[str, Any]], batches: BatchReader) -> ArrowBatches:
    """Lift what the merge gave, in the order in which parents are written once."""
    above: dict[int, dict[int, int]] = {}
    marks = list[tuple[int, int, int, int]]()
    for row in merged:
        batch_id, level, number, mask = (row[name] for name in MARK_SCHEMA.names)
        if mask is None:
            continue
        if level < LIFTED:
            marks.append((batch_id, level, number, mask))
        else:
            words = above.setdefault(batch_id, {})
            words[number] = words.get(number, 0) | mask
    for batch_id, top in IssuedItems(batches).top_levels(above).items():
        marks += lifted(batch_id, above[batch_id], top)
    marks.sort(key=lambda one: (one[0], one[2] << 6 * one[1], one[1]))
    return page(MARK_SCHEMA, marks)
